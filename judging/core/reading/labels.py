"""Verdicts in words: pairs, labels and sides, read whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from datasets.core.kinds import BOTH_BAD, CATEGORY, COMPARISON, COMPARISON_CODES, TIE
from judging.core.reading.clauses import number_of_words
from judging.core.reading.gives import Gives, ReadValue, Value, unfit
from judging.core.reading.reasons import UNKNOWN_LABEL
from judging.core.reading.words import (
    BOTH_BAD_WORDS,
    PASS_FAIL_WORDS,
    SIDE_WORDS,
    TIE_WORDS,
)

_MOST_WORDS = 4
_BLANKS = re.compile(r"[\s_-]+")
_BRACKET = re.compile(r"[(\[【「（]")
_AROUND_SIGNS = re.compile(r"\s*([>=])\s*")
_DIGIT_OR_TAG = re.compile(r"[0-9<]")
_BETTER = re.compile(
    rf"(?:(?:{'|'.join(SIDE_WORDS)})\s?)?(?P<side>[ab])(?:\s(?:is\s)?(?:(?:slightly|clearly|much)\s)?better"
    rf"(?:\sthan\s(?:(?:{'|'.join(SIDE_WORDS)})\s?)?[ab])?|\s?更好)"
)
_WINS = {"a": "A>B", "b": "B>A"}


def read_word(text: str, gives: Gives, in_form: bool = True) -> Value | None:
    """The value that the text, up to a bracket, states in words; None if it states nothing.

    `in_form`: sentences about which side is better count too, and a short text without a digit is an unknown label.
    """
    text = _BRACKET.split(text, maxsplit=1)[0]
    folded = fold(text)
    value = _words(gives).get(folded)
    if value is None and in_form and gives.kind == COMPARISON and (better := _BETTER.fullmatch(folded)):
        value = _WINS[better["side"]]
    if value is not None:
        return Value(value)
    if not in_form or not folded or _DIGIT_OR_TAG.search(folded) or number_of_words(folded) > _MOST_WORDS:
        return None
    return unfit(UNKNOWN_LABEL, text)


def fold(text: str) -> str:
    """The text for comparison: case, blanks, _, - and a stop at its end do not count."""
    folded = _BLANKS.sub(" ", text.casefold()).strip(" .。!！,，;；*\"'")
    return _AROUND_SIGNS.sub(r"\1", folded)


@lru_cache(maxsize=256)
def _words(gives: Gives) -> Mapping[str, ReadValue]:
    if gives.kind == CATEGORY:
        return {fold(label): label for label in gives.labels}
    if gives.kind == COMPARISON:
        return _sides(gives.both_bad)
    return PASS_FAIL_WORDS


def _sides(both_bad: bool) -> dict[str, ReadValue]:
    words: dict[str, ReadValue] = {fold(code): code for code in COMPARISON_CODES}
    for side, code in _WINS.items():
        words[side] = code
        words |= {f"{word}{gap}{side}": code for word in SIDE_WORDS for gap in ("", " ")}
    words |= dict.fromkeys(TIE_WORDS, TIE)
    return words | (dict.fromkeys(BOTH_BAD_WORDS, BOTH_BAD) if both_bad else {})
