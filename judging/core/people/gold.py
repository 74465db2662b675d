"""Known answers of gold items: one accepted value of a criterion, or several of which the first is the expected one;
where spans are marked, known spans and how far the sum may be off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from datasets.core.kinds import BOTH_BAD
from judging.core.people.criteria import Criterion
from judging.core.people.spans import finds, records_of
from judging.core.statistics.intervals import wilson
from judging.core.values import Value

SUM_WITHIN = 4  # less than a major error


class KnownSpans(TypedDict):
    """`spans`: their text (spans.py). `within`: how far the sum of a rater's severities may be from theirs."""

    spans: str
    within: int


Accepted = Value | list[Value] | KnownSpans


def accepted_values(accepted: Accepted) -> list[Value]:
    """The accepted values, the expected one first."""
    if isinstance(accepted, dict):
        return [accepted["spans"]]
    return list(accepted) if isinstance(accepted, list) else [accepted]


def is_hit(accepted: Accepted, value: Value | None) -> bool:
    """Whether a rater's value is accepted."""
    if value is not None and isinstance(accepted, dict):
        return finds(str(value), accepted["spans"], accepted["within"])
    return value is not None and value in accepted_values(accepted)


def accepted_for_files(accepted: Accepted) -> Any:
    """As files and the API write it: spans as records."""
    if not isinstance(accepted, dict):
        return accepted
    return {"value": records_of(accepted["spans"]), "within": accepted["within"]}


def hits_of(answers: Mapping[int, Accepted], values: Mapping[int, Value]) -> int:
    """How many of an item's known answers a rating hits."""
    return sum(is_hit(accepted, values.get(number)) for number, accepted in answers.items())


def within(criterion: Criterion, value: Value, steps: int) -> list[Value]:
    """The value, then all others of its scale that are at most `steps` away, nearest first. Only the value itself where
    the scale has no order, and for “both bad”."""
    choices = [choice for choice in criterion.choices if choice != BOTH_BAD]
    if not criterion.is_ordered or value not in choices:
        return [value]
    place = choices.index(value)
    near = [choice for choice in choices if abs(choices.index(choice) - place) <= steps]
    return sorted(near, key=lambda choice: abs(choices.index(choice) - place))


FEWEST_GOLD = 5  # gold items before the rule says anything


def misses_mark(hits: int, items: int, mark: float) -> bool:
    """Whether a rater's share of gold items that are right is under the pass mark (0…1) beyond chance: after at least
    five, the upper end of its Wilson interval lies under it. A bare share would stop many raters who are right often
    enough."""
    return items >= FEWEST_GOLD and wilson(hits / items, items)[1] < mark
