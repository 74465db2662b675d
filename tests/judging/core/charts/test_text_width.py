from hypothesis import given
from hypothesis import strategies as some

from judging.core.charts.svg import shorten, width, wrap


def test_a_chinese_character_is_wider_than_a_latin_one():
    assert width("模型") == 2
    assert width("ab") < width("模型")


def test_combining_marks_have_no_width():
    assert width("e\u0301") == width("e")


def test_words_break_after_blanks_and_hyphens():
    assert wrap("llama-2-chat finetuned", 8, 2) == ["llama-2-chat", "finetuned"]


def test_chinese_breaks_anywhere():
    assert wrap("一二三四五六", 3, 2) == ["一二三", "四五六"]


def test_what_does_not_fit_ends_in_an_ellipsis():
    assert wrap("一二三四五六七八", 3, 2) == ["一二三", "四五…"]
    assert shorten("一二三四", 3) == "一二…"


def test_what_fits_is_left_alone():
    assert wrap("gpt", 10, 2) == ["gpt"]


def test_a_mark_stays_with_its_letter():
    assert wrap("e\u0301" * 8, 2, 2)[0] == "e\u0301" * 3


@given(some.text(max_size=60), some.floats(0, 30), some.integers(1, 4))
def test_lines_never_exceed_their_number_or_width(words, most, lines):
    wrapped = wrap(words, most, lines)
    assert 1 <= len(wrapped) <= lines
    assert all(width(line) <= max(most, 2) + 1e-9 for line in wrapped)
