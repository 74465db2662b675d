"""Defects planted in answers."""

import random

import pytest

from judging.core.drill.changed_figures import changed_figure
from judging.core.drill.formatting import reformatted
from judging.core.drill.negation import negated
from judging.core.drill.planting import Answer, drawn, plant, row_language
from judging.core.drill.stored_texts import text_of_length
from judging.core.statistics.drill import DEFECTS
from judging.core.writings import language_of

ENGLISH = "The bridge was closed. It took 12 hours."
CHINESE = "这座桥是去年关闭的。工程用了12小时。"


def answer(line, text, language="en", model="alpha"):
    return Answer(line, model, 1, language, text)


def planted(*answers, seed=0):
    return [each.texts for each in plant(answers, seed, lambda language: f"[[10]] {language}")]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("It is here. He was not.", "It is not here. He was not."),
        ("He was not here.", "He was here."),
        ("I can't go.", "I can go."),
        ("We cannot see it.", "We can see it."),
        ("Won't it rain?", "Will it rain?"),
        ("IT CAN'T", "IT CAN"),
        ("We won the game and will celebrate.", "We won the game and will not celebrate."),
        ("I want to have it. It has gone.", "I want to have it. It has not gone."),
        ("Sales rose in May 2020 and may fall.", "Sales rose in May 2020 and may not fall."),
        ("Write `is` here, as it is shorter.", "Write `is` here, as it is not shorter."),
        ("但是这座桥是旧的。", "但是这座桥不是旧的。"),
        ("社会上所有人都可以来。", "社会上所有人都不可以来。"),
        ("这里有水。", "这里没有水。"),
        ("这不是旧桥。", "这是旧桥。"),
        ("是不是这样？", "是不是这样？"),
        ("Nothing to change.", "Nothing to change."),
    ],
)
def test_the_first_statement_is_negated_or_its_negation_removed(text, changed):
    assert negated(text) == changed


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("1. First 250 apples, then 30.", "1. First ", " apples, then 30."),
        ("On 2024-01-05 it sold 1,200 items.", "On 2024-01-05 it sold ", " items."),
        ("In 2019 it cost 3.50 euros.", "In 2019 it cost ", " euros."),
        ("On May 5, 2020 there were 40.", "On May 5, 2020 there were ", "."),
        ("2024年3月5日增长了15%。", "2024年3月5日增长了", "%。"),
        ("GPT4 got 80 points at 10:30.", "GPT4 got ", " points at 10:30."),
    ],
)
def test_the_first_figure_outside_list_marks_and_dates_changes(text, before, after):
    old = text.removeprefix(before).removesuffix(after)
    for seed in range(20):
        changed = changed_figure(text, random.Random(seed))
        assert changed.startswith(before)
        assert changed.endswith(after)
        new = changed.removeprefix(before).removesuffix(after)
        ratio = float(new.replace(",", "")) / float(old.replace(",", ""))
        assert abs(ratio - 1) + 1e-9 >= 0.1
        assert abs(ratio - 1) <= 0.5 + 1e-9
        assert len(new.partition(".")[2]) == len(old.partition(".")[2])


def test_a_text_without_a_figure_that_can_change_stays():
    for text in ("No figure.", "1 of 0", "1. only a list mark", "2024-01-05"):
        assert changed_figure(text, random.Random(0)) == text


def test_markdown_is_removed_where_there_is_some():
    text = "# Title\n\n- **bold** and `code`\n- [link](http://a.b)\n\n2 * 3 * 4 and a_b_c"
    assert reformatted(text, "en") == "Title\n\nbold and code\nlink\n\n2 * 3 * 4 and a_b_c"


def test_markdown_is_added_where_there_is_none():
    assert reformatted("One.\nTwo.", "en") == "## Answer\n\n- One.\n- Two."
    assert reformatted("一。", "zh").startswith("## 回答")


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_every_defect_changes_the_answer(text, language):
    other = answer(2, "Another answer altogether.", "en")
    texts = planted(answer(1, text, language), other)[0]
    assert tuple(texts) == DEFECTS
    assert text not in texts.values()
    assert texts["truncated"] == text[: len(text) - len(text) // 3]
    assert (texts["empty"], texts["padded"].count(text)) == ("", 3)
    assert texts["verdict"].endswith(f"[[10]] {language}")


def test_a_defect_that_changes_nothing_is_left_out():
    (texts,) = planted(answer(1, "Hm"))
    assert {"truncated", "negated", "numbers", "swapped"}.isdisjoint(texts)


def test_the_other_language_is_another_rows_answer_or_a_stored_text():
    both = planted(answer(1, ENGLISH), answer(2, CHINESE, "zh"))
    assert [texts["language"] for texts in both] == [CHINESE, ENGLISH]
    (alone,) = planted(answer(1, ENGLISH * 5))
    assert language_of(alone["language"]) == "Chinese"
    assert 0.7 < len(alone["language"]) / len(ENGLISH * 5) < 1.3


@pytest.mark.parametrize(("language", "script"), [("en", "Latin script"), ("zh", "Chinese")])
def test_a_stored_text_has_about_the_length(language, script):
    for length in (1, 200, 3000):
        text = text_of_length(language, length, random.Random(1))
        assert language_of(text) == script
        assert len(text) <= length + 100


def test_swapped_answers_keep_the_language_where_they_can():
    rows = [answer(1, ENGLISH), answer(2, CHINESE, "zh"), answer(3, "Some other answer.")]
    assert planted(*rows)[0]["swapped"] == "Some other answer."


def test_planting_is_the_same_for_the_same_seed():
    rows = [answer(line, f"{ENGLISH} {line * 10} more.") for line in range(1, 9)]
    assert planted(*rows, seed=3) == planted(*rows, seed=3)
    assert planted(*rows, seed=3) != planted(*rows, seed=4)


def test_one_answer_a_row_is_drawn_by_the_seed():
    answers = [answer(line, f"{model} {line}", model=model) for line in range(1, 41) for model in "ab"]
    one = drawn(answers, 5, 10)
    assert one == drawn(answers, 5, 10) != drawn(answers, 6, 10)
    assert len({each.line for each in one}) == 10
    assert {each.model for each in drawn(answers, 5)} == {"a", "b"}


def test_blank_answers_are_not_drawn():
    assert drawn([answer(1, " "), answer(2, "x")], 0) == [answer(2, "x")]


def test_the_language_of_a_row_is_that_of_its_question():
    assert row_language("你好吗", "fine") == "zh"
    assert row_language("?", "fine") == "en"
    assert row_language("Привет", "fine") == "Cyrillic script"
