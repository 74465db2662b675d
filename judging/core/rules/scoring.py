"""The mechanical functions: the answer's value, the reference's, an argument → 5 or 1 and why."""

from __future__ import annotations

from typing import Any

import msgspec

from judging.core.rules.formats import NotInFormat, read_fields
from judging.core.rules.program import Format, Length
from judging.core.rules.values import Value, identity, same, text_of

BEST, WORST = 5, 1


class Reason(msgspec.Struct, frozen=True):  # four for every answer: made in a quarter of a dataclass's time
    """Why a line has its score, or none: a code, and what the sentence about it needs to know."""

    code: str
    params: dict[str, str] = {}


class Scored(msgspec.Struct, frozen=True):
    """A line's score, 1 to 5, with its reason."""

    score: int | float
    reason: Reason


def _verdict(passed: bool, code: str, otherwise: str, **params: str) -> Scored:
    return Scored(BEST if passed else WORST, Reason(code if passed else otherwise, params))


def exact_match(answer: Value, reference: Value, _argument: None) -> Scored:
    """5 if equal by value."""
    return _verdict(same(answer, reference), "equal", "different")


def length(answer: Value, _reference: Value, limit: Length) -> Scored:
    """5 if the text, white space at its ends left out, has a length within the limit (code points)."""
    count = len(text_of(answer).strip())
    params = {"length": str(count), "low": str(limit.low), "high": str(limit.high)}
    return _verdict(limit.low <= count <= limit.high, "length_within", "length_beyond", **params)


def has_format(answer: Value, _reference: Value, form: Format) -> Scored:
    """5 if the field's text has the format."""
    try:
        read_fields(form, text_of(answer))
    except NotInFormat as error:
        return Scored(WORST, Reason(error.reason, error.params))
    return Scored(BEST, Reason("format_held"))


def equals(answer: Value, _reference: Value, constant: str) -> Scored:
    """5 if the field's text is the constant."""
    return _verdict(text_of(answer) == constant, "is_constant", "is_not_constant", constant=constant)


def not_equals(answer: Value, _reference: Value, constant: str) -> Scored:
    """5 if the field's text is not the constant."""
    return _verdict(text_of(answer) != constant, "is_not_constant", "is_constant", constant=constant)


def contained_in(answer: Value, reference: Value, _argument: Any) -> Scored:
    """5 if the answer is a part of the reference."""
    return _verdict(is_part(answer, reference), "part_of_reference", "not_part_of_reference")


def contains(answer: Value, reference: Value, _argument: Any) -> Scored:
    """5 if the reference is a part of the answer."""
    return _verdict(is_part(reference, answer), "holds_reference", "does_not_hold_reference")


def is_part(part: Value, whole: Value) -> bool:
    """Substring; of lists every element; of objects every pair; other values must be equal.

    A single value beside a list counts as a list of one.
    """
    if isinstance(part, list) or isinstance(whole, list):
        return set(map(identity, _as_list(part))) <= set(map(identity, _as_list(whole)))
    if isinstance(part, str) and isinstance(whole, str):
        return part in whole
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and same(value, whole[key]) for key, value in part.items())
    return same(part, whole)


def _as_list(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]
