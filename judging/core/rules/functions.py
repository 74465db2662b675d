"""The scoring functions, their table, and the aggregates. How to add one: CONTRIBUTING.md, "A rule function"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median, multimode

from judging.core.rules.formats import NotInFormat, read_fields
from judging.core.rules.keywords import Keyword
from judging.core.rules.program import BEST, WORST, Format, Function, Length, Reason, Scored
from judging.core.rules.values import Value, identity, same, text_of

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
    Function("exact_match", Keyword("精确匹配", "exact_match"), "none", True, "machine", exact_match),
    Function("fuzzy_match", Keyword("模糊匹配", "fuzzy_match"), "none", True, "judge"),
    Function("length", Keyword("字数限制", "length"), "length", False, "machine", length),
    Function("format", Keyword("格式限制", "format"), "format", False, "machine", has_format),
    Function("equals", Keyword("常量等于", "equals"), "constant", False, "machine", equals),
    Function("not_equals", Keyword("常量不等于", "not_equals"), "constant", False, "machine", not_equals),
    Function(
        "contained_in",
        Keyword("精确存在于", "contained_in"),
        "replacement",
        True,
        "machine",
        contained_in,
    ),
    Function("contains", Keyword("精确全包括", "contains"), "replacement", True, "machine", contains),
    Function("rule", Keyword("自然语言规则", "rule"), "rule", True, "judge"),
    Function("python", Keyword("Python代码", "python"), "code", True, "code"),
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
