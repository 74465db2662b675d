"""Exported JSON is valid for strict parsers."""

from __future__ import annotations

import json
import math

import pytest

from evalsite.cells import clean_text, cut_text
from judging.records.json_text import dumps, loads

LIMIT = 2**20


def strictly(text: bytes) -> object:
    """Parse JSON; fail on NaN and infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text.decode("utf-8"), parse_constant=refuse)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_becomes_null(number: float) -> None:
    assert strictly(dumps({"a": [1.5, number]}, LIMIT)) == {"a": [1.5, None]}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_stored_texts_with_constants_that_are_no_json_are_read_as_null(text: str) -> None:
    assert loads(f'{{"a": {text}}}') == {"a": None}


def test_nul_and_half_characters_are_replaced_in_texts_and_names() -> None:
    line = dumps({"a\0": "b\ud83d", "c": ["\0"]}, LIMIT)
    assert b"\\u0000" not in line
    assert strictly(line) == {"a\ufffd": "b?", "c": ["\ufffd"]}


def test_a_backslash_before_u0000_stays_what_it_is() -> None:
    assert strictly(dumps({"a": "\\u0000"}, LIMIT)) == {"a": "\\u0000"}


def test_chinese_is_written_as_it_is() -> None:
    assert "数学" in dumps({"a": "数学"}, LIMIT).decode()


def test_integers_of_64_bits_are_exact() -> None:
    assert strictly(dumps({"a": 9007199254740993}, LIMIT)) == {"a": 9007199254740993}


@pytest.mark.parametrize(
    "value",
    ["长" * 3_000_000, ["a" * 1000] * 5000, {str(n): "b" * 900 for n in range(5000)}, [[1] * 900] * 600],
    ids=["text", "list", "names", "nested"],
)
def test_what_is_too_large_is_cut_to_the_limit_and_stays_json(value: object) -> None:
    line = dumps({"small": "kept", "large": value}, LIMIT)
    assert len(line) <= LIMIT
    assert strictly(line)["small"] == "kept"  # type: ignore[index]


def test_what_was_cut_says_how_much_is_missing() -> None:
    assert cut_text("abcdef", 4) == "abcd… [+2]"
    assert cut_text("abcd", 4) == "abcd"


def test_clean_text_leaves_whole_emoji_alone() -> None:
    assert clean_text("🙂") == "🙂"
