import pytest

from judging.core.judges.outside_text import (
    HIDDEN,
    MAX_MESSAGE,
    PART,
    clean,
    clean_json,
    redacted,
    shown_message,
)

KEY = "sk-proj-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"key {KEY} is wrong", "key ••• is wrong"),
        (f"{KEY} and {KEY}", "••• and •••"),
        ("sk-proj-<b>0123456789</b>abcdefghij!", "•••!"),
        ("sk-proj-01234\n  56789abcdefghij", "•••"),
        ("sk-proj-\u200b0123456789\0abcdefghij", "•••"),
        ("wrong: sk-proj-0123456789ab", "wrong: •••"),
        ("wrong: sk-proj-<i>0123", "wrong: •••"),
        ("sk-other", "sk-other"),
        ("", ""),
    ],
)
def test_a_secret_is_taken_out_of_messages(message: str, expected: str) -> None:
    assert redacted(message, (KEY,)) == expected


LONG_KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.mark.parametrize(
    "message",
    [
        f"see <a href='{LONG_KEY}'>here</a>",
        f"no key <{LONG_KEY}>",
        f"<a title='{LONG_KEY[:20]} {LONG_KEY[20:]}'>",
        f"{LONG_KEY[:12]}<b>{LONG_KEY[12:]}</b>",
        f'{LONG_KEY[:12]}"{LONG_KEY[12:]}',
        LONG_KEY.replace("-", "%2D"),
        f"…{LONG_KEY[5:]}",
        f"{LONG_KEY[:20]}…",
    ],
)
def test_no_part_of_a_long_secret_is_left(message: str) -> None:
    left = redacted(message, (LONG_KEY,))
    parts = {LONG_KEY[at : at + PART] for at in range(len(LONG_KEY) - PART + 1)}
    assert not [part for part in parts if part in left]
    assert HIDDEN in left


def test_a_short_secret_is_not_looked_for_in_parts() -> None:
    assert redacted("the application failed", ("application/json",)) == "the application failed"


def test_the_longest_secret_is_taken_out_first() -> None:
    assert redacted("Bearer abcd-efgh", ("abcd", "Bearer abcd-efgh")) == "•••"


def test_a_secret_that_repeats_itself_is_taken_out() -> None:
    assert redacted("aaaaaaaaaaaaaa", ("aaaaaaaa",)) == "•••"


@pytest.mark.parametrize("at", range(MAX_MESSAGE - len(KEY) - 2, MAX_MESSAGE + 2))
def test_no_part_of_a_secret_is_left_where_a_message_is_cut(at: int) -> None:
    message = shown_message("x" * at + KEY + "y" * 99, (KEY,))
    assert "sk-" not in message
    assert len(message) <= MAX_MESSAGE


def test_nul_and_half_characters_are_replaced_also_in_json() -> None:
    assert clean("a\0b\ud83d") == "a\ufffdb\ufffd"
    assert clean("\ud83d\ude00") == "😀"
    assert clean_json({"a\0": ["\0", 1, None]}) == {"a\ufffd": ["\ufffd", 1, None]}
