"""Numbers on a scale, read whole."""

from __future__ import annotations

import math
import re
from itertools import islice

from judging.core.reading.clauses import alternatives
from judging.core.reading.gives import Gives, Value, unfit
from judging.core.reading.reasons import NOT_A_NUMBER, NOT_WHOLE, OFF_STEP, OTHER_SCALE, OUT_OF_RANGE, RANGE
from judging.core.reading.words import NUMBER_WORDS, ROUGHLY, SCALE_NOTE_WORDS, SCALE_WORDS, UNITS

_MOST_DIGITS = 15
_PERCENT = 100
_MOST_SCALES = 200

_DIGITS = r"[+-]?(?:[0-9]+(?:[.,][0-9]+)?|\.[0-9]+)"
_END_WORDS = {"五": 5, "十": 10, "百": 100, "一百": 100}
_END = rf"(?:[0-9]{{1,15}}(?:\.[0-9]{{1,15}})?|{'|'.join(_END_WORDS)})"  # of a scale
_WORDS = alternatives(NUMBER_WORDS)
_UNIT = rf"(?:{alternatives([*UNITS, '%'])})\.?"
_OF = "|".join(word if word == "/" else rf"{word}(?!\w)" for word in SCALE_WORDS)
_RANGE_MARKS = "-|–|—|~|～|〜|to|or|到|至|或"

_WHOLE_NUMBER = (
    rf"(?P<number>{_DIGITS}|{_WORDS})\s{{0,3}}(?P<unit>{_UNIT})?"
    rf"(?:\s{{0,3}},?\s{{0,3}}(?:{_OF})\s{{0,3}}(?P<end>{_END}))?\s{{0,3}}(?P<last_unit>{_UNIT})?(?:\s?です)?"
)
_NUMBER = re.compile(_WHOLE_NUMBER, re.IGNORECASE)
NUMBER_AT_END = re.compile(rf"(?<![A-Za-z0-9.,/_+–—~-]){_WHOLE_NUMBER}\s*\Z", re.IGNORECASE)
ANY_NUMBER = re.compile(rf"[0-9]|{_WORDS}", re.IGNORECASE)

_BEGINS = re.compile(
    rf"(?:(?:{alternatives(ROUGHLY)})\s?)?(?:[+-]?\.?[0-9]|(?:{_WORDS})(?!\w))", re.IGNORECASE
)
RANGE_OF_NUMBERS = re.compile(
    rf"{_DIGITS}\s{{0,3}}(?:{_UNIT})?\s{{0,3}}(?:\+|(?:{_RANGE_MARKS})\s{{0,3}}{_DIGITS}\s?(?:{_UNIT})?)",
    re.IGNORECASE,
)
_NO_SCORE = re.compile(rf"{_DIGITS}\s{{0,3}}分?\s{{0,3}}[钟制之]")  # 8分钟, 10分制
_TAIL = re.compile(r"=>|->|=|→|⇒|➔")

_SCALE_NOTE = re.compile(
    rf"(?![0-9.\s]*(?:{_UNIT})?\Z)(?:[0-9.:\s/–~-]|{alternatives(SCALE_NOTE_WORDS)})+", re.IGNORECASE
)
Scales = tuple[tuple[str, re.Pattern[str]], ...]
"""Words that stand in what names a scale, and expressions whose group is its end."""
_SCALES: Scales = tuple(
    (word, re.compile(pattern, re.IGNORECASE))
    for word, pattern in (
        (
            "max",
            rf"max(?:imum)?[\s_](?:possible[\s_])?(?:score|rating|points)[\"'\s:=]{{0,4}}(?:(?:is|of)\s)?({_END})",
        ),
        ("满分", rf"满分[\s为是:]{{0,4}}({_END})"),
        ("最高分", rf"最高分[\s为是:]{{0,4}}({_END})"),
        ("分制", rf"(?<![0-9.])({_END})\s?分制"),
    )
)
_SCALES_OF_SENTENCE: Scales = (
    ("scale", re.compile(rf"scale:?\s(?:(?:of|from)\s)?{_END}\s?(?:-|–|~|to)\s?({_END})", re.IGNORECASE)),
    ("scale", re.compile(rf"({_END})[\s-]points?\sscale", re.IGNORECASE)),
)
_LAST_NUMBER = re.compile(rf"({_END})[^0-9]*\Z")


def names_other_scale(text: str, max_score: float, scales: Scales = _SCALES) -> bool:
    """Whether the text names a scale with another end."""
    lower = text.lower()
    matches = (scale.finditer(text) for word, scale in scales if word in lower)
    return any(_is_other(match[1], max_score) for found in matches for match in islice(found, _MOST_SCALES))


def rates_on_other_scale(sentence: str, max_score: float) -> bool:
    """Whether a sentence that rates names a "scale" with another end; elsewhere it may be one of the task."""
    return names_other_scale(sentence, max_score, _SCALES_OF_SENTENCE)


def ends_elsewhere(note: str, max_score: float) -> bool:
    """Whether the last number of a note on the scale, such as 1-5, is another end."""
    last = _LAST_NUMBER.search(note[-80:])
    return last is not None and _is_other(last[1], max_score)


def _is_other(end: str, max_score: float) -> bool:
    return (_END_WORDS.get(end) or float(end)) != max_score


def read_number(text: str, notes: tuple[str, ...], gives: Gives, other_scale: bool) -> Value | None:
    """The number that the text states, with the notes in brackets after it; None if it states nothing.

    `other_scale`: another scale was named.
    """
    text = text.strip()
    tails = _TAIL.split(text)
    number = _NUMBER.fullmatch(tails[-1].strip())
    if number is not None:
        return value_of(number, notes, gives, other_scale)
    if _NO_SCORE.match(text) or not _BEGINS.match(text):
        return None
    return unfit(RANGE if RANGE_OF_NUMBERS.match(text) else NOT_A_NUMBER, text)


def value_of(number: re.Match[str], notes: tuple[str, ...], gives: Gives, other_scale: bool) -> Value:
    """The number checked against scale, steps and range."""
    written = number["number"]
    plain = written.replace(",", ".")
    if "," in written and len(written.split(",")[1]) == 3:
        return unfit(NOT_A_NUMBER, number[0])
    word = NUMBER_WORDS.get(plain.lower())
    if word is None and sum(map(str.isdigit, plain)) > _MOST_DIGITS:
        return unfit(OUT_OF_RANGE, number[0])
    value = word if word is not None else float(plain) if "." in plain else int(plain)
    percent = "%" in (number["unit"] or "", number["last_unit"] or "")
    if (
        other_scale
        or (percent and gives.max_score != _PERCENT)
        or (number["end"] is not None and _is_other(number["end"], gives.max_score))
        or any(_SCALE_NOTE.fullmatch(note) and ends_elsewhere(note, gives.max_score) for note in notes)
    ):
        return unfit(OTHER_SCALE, number[0])
    return on_scale(value, number[0], gives)


def on_scale(value: int | float, written: str, gives: Gives) -> Value:
    if not gives.min_score <= value <= gives.max_score:
        return unfit(OUT_OF_RANGE, written)
    if gives.whole and value != int(value):
        return unfit(NOT_WHOLE, written)
    if gives.step and not _is_on_step(value - gives.min_score, gives.step):
        return unfit(OFF_STEP, written)
    return Value(value)


def _is_on_step(distance: float, step: float) -> bool:
    return abs(math.remainder(distance, step)) < 1e-9 * step


def has_unit(number: re.Match[str]) -> bool:
    return any(number[group] is not None for group in ("unit", "end", "last_unit"))


def whole_number(text: str) -> re.Match[str] | None:
    """The match if the text is nothing but a number, with its unit and scale."""
    return _NUMBER.fullmatch(text.strip())
