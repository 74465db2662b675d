"""The scoring functions, their table, and the aggregates. How to add one: CONTRIBUTING.md, "A rule function"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median, multimode

from datasets.core.texts import Text, gettext_noop
from judging.core.rules.formats import NotInFormat, read_fields
from judging.core.rules.keywords import Keyword
from judging.core.rules.program import BEST, WORST, Format, Function, Length, Reason, Scored
from judging.core.rules.values import Value, identity, same, text_of

REASONS: dict[str, Text] = {
    "equal": gettext_noop("Equal to the reference."),
    "different": gettext_noop("Not equal to the reference."),
    "length_within": gettext_noop("Length %(length)s; %(low)s to %(high)s characters are allowed."),
    "length_beyond": gettext_noop("Length %(length)s, but only %(low)s to %(high)s characters are allowed."),
    "format_held": gettext_noop("Matches the format."),
    "is_constant": gettext_noop("It is “%(constant)s”."),
    "is_not_constant": gettext_noop("It is not “%(constant)s”."),
    "part_of_reference": gettext_noop("A part of the reference."),
    "not_part_of_reference": gettext_noop("Not a part of the reference."),
    "holds_reference": gettext_noop("Contains the whole reference."),
    "does_not_hold_reference": gettext_noop("Does not contain the whole reference."),
    "part_of_argument": gettext_noop("A part of “%(argument)s”."),
    "not_part_of_argument": gettext_noop("Not a part of “%(argument)s”."),
    "holds_argument": gettext_noop("Contains “%(argument)s”."),
    "does_not_hold_argument": gettext_noop("Does not contain “%(argument)s”."),
}
"""Why a line has its score, by code."""

_EQUAL, _DIFFERENT = Scored(BEST, Reason("equal")), Scored(WORST, Reason("different"))
_FORMAT_HELD = Scored(BEST, Reason("format_held"))


def exact_match(answer: Value, reference: Value, _argument: None) -> Scored:
    """5 if answer and reference are equal by value."""
    return _EQUAL if same(answer, reference) else _DIFFERENT


def length(answer: Value, _reference: Value, limit: Length) -> Scored:
    """5 if the length of the stripped text in code points is within the limit."""
    count = len(text_of(answer).strip())
    params = {"length": str(count), "low": str(limit.low), "high": str(limit.high)}
    if limit.low <= count <= limit.high:
        return Scored(BEST, Reason("length_within", params))
    return Scored(WORST, Reason("length_beyond", params))


def has_format(answer: Value, _reference: Value, form: Format) -> Scored:
    """5 if the field's text has the required format."""
    try:
        read_fields(form, text_of(answer))
    except NotInFormat as error:
        return Scored(WORST, Reason(error.reason, error.params))
    return _FORMAT_HELD


def equals(answer: Value, _reference: Value, constant: str) -> Scored:
    """5 if the field's text equals the constant."""
    same_text = text_of(answer) == constant
    return Scored(BEST if same_text else WORST, _compared(same_text, constant))


def not_equals(answer: Value, _reference: Value, constant: str) -> Scored:
    """5 if the field's text differs from the constant."""
    same_text = text_of(answer) == constant
    return Scored(WORST if same_text else BEST, _compared(same_text, constant))


def _compared(same_text: bool, constant: str) -> Reason:
    return Reason("is_constant" if same_text else "is_not_constant", {"constant": constant})


def contained_in(answer: Value, reference: Value, argument: str | None) -> Scored:
    """5 if the answer is part of the reference, or of the argument if there is one."""
    if is_part(answer, reference):
        return _compared_with("part_of", BEST, argument)
    return _compared_with("not_part_of", WORST, argument)


def contains(answer: Value, reference: Value, argument: str | None) -> Scored:
    """5 if the answer contains the reference, or the argument if there is one."""
    if is_part(reference, answer):
        return _compared_with("holds", BEST, argument)
    return _compared_with("does_not_hold", WORST, argument)


def _compared_with(what: str, score: int, argument: str | None) -> Scored:
    if argument is None:
        return Scored(score, Reason(f"{what}_reference"))
    return Scored(score, Reason(f"{what}_argument", {"argument": argument}))


def is_part(part: Value, whole: Value) -> bool:
    """Whether `part` is a substring, a subset of list elements or of object pairs, or an equal value.

    Next to a list, a single value counts as a list of one.
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


FUNCTIONS: tuple[Function, ...] = (
    Function(
        "exact_match",
        Keyword("精确匹配", "exact_match"),
        gettext_noop(
            "5 if the answer equals the reference, else 1. Texts by their characters, numbers by value."
        ),
        "none",
        True,
        "machine",
        exact_match,
    ),
    Function(
        "fuzzy_match",
        Keyword("模糊匹配", "fuzzy_match"),
        gettext_noop("A whole number from 1 to 5 from the judge model: how far the two mean the same."),
        "none",
        True,
        "judge",
    ),
    Function(
        "length",
        Keyword("字数限制", "length"),
        gettext_noop(
            "5 if the length in characters is within the limit, else 1. White space at the ends does not count."
        ),
        "length",
        False,
        "machine",
        length,
    ),
    Function(
        "format",
        Keyword("格式限制", "format"),
        gettext_noop("5 if the field's text has the format, else 1."),
        "format",
        False,
        "machine",
        has_format,
    ),
    Function(
        "equals",
        Keyword("常量等于", "equals"),
        gettext_noop("5 if the field's text is the constant, else 1."),
        "constant",
        False,
        "machine",
        equals,
    ),
    Function(
        "not_equals",
        Keyword("常量不等于", "not_equals"),
        gettext_noop("5 if the field's text is not the constant, else 1."),
        "constant",
        False,
        "machine",
        not_equals,
    ),
    Function(
        "contained_in",
        Keyword("精确存在于", "contained_in"),
        gettext_noop(
            "5 if the answer is a part of the reference (or of the argument), else 1: of a text a piece, of a list "
            "every element, of an object every pair."
        ),
        "replacement",
        True,
        "machine",
        contained_in,
    ),
    Function(
        "contains",
        Keyword("精确全包括", "contains"),
        gettext_noop("5 if the reference (or the argument) is a part of the answer, else 1."),
        "replacement",
        True,
        "machine",
        contains,
    ),
    Function(
        "rule",
        Keyword("自然语言规则", "rule"),
        gettext_noop("A whole number from 1 to 5 from the judge model, by a rule in your own words."),
        "rule",
        True,
        "judge",
    ),
    Function(
        "python",
        Keyword("Python代码", "python"),
        gettext_noop("The number from 1 to 5 that your Python function returns."),
        "code",
        True,
        "code",
    ),
)

BY_WORD: dict[str, Function] = {word: function for function in FUNCTIONS for word in function.name.both()}


Score = int | float


def aggregate(name: str, scores: Sequence[Score]) -> Score:
    """The min, max, mean, median or mode (the lowest one if several tie) of at least one score."""
    return _AGGREGATES[name](scores)


def _mean(scores: Sequence[Score]) -> Score:
    # Rounding must not move the mean outside the range of the scores.
    return min(max(fmean(scores), min(scores)), max(scores))


_AGGREGATES: dict[str, Callable[[Sequence[Score]], Score]] = {
    "min": min,
    "max": max,
    "mean": _mean,
    "median": median,
    "mode": lambda scores: min(multimode(scores)),
}
