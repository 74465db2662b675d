"""Sort orders of a list of judgements, and a judgement's place in it.

Sorted by candidate, metric or state, the key is the index of its name; sorted by a further filter, that filter's
number.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

from evalsite.web.numbers import whole
from judging.runs.filters import FURTHER, Filters, states_of
from judging.runs.models import Judgement, Run

GROUPS = {
    "candidate": attrgetter("candidate.name"),
    "metric": attrgetter("run_metric.name"),
    "state": attrgetter("state_in_force"),
}


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A place in a sorted list: the sort key and, to break ties, the position, or -1."""

    key: float
    position: int

    def beside(self, filters: Filters, *, back: bool = False) -> ListPosition:
        """The place directly after this one in the list of `filters`, or before it."""
        return ListPosition(self.key, self.position + (-1 if filters.falling != back else 1))

    def __str__(self) -> str:
        return f"{self.key!r}~{self.position}"


def place_from(text: str) -> ListPosition | None:
    """Parse a place from a query string; None if it is invalid."""
    key, _, position = text.partition("~")
    number = -1 if position == "-1" else whole(position)
    try:
        place = float(key)
    except ValueError:
        return None
    return ListPosition(place, number) if number is not None and math.isfinite(place) else None


def place_of(judgement: Judgement, filters: Filters) -> ListPosition:
    """The judgement's place in the list of `filters`."""
    key = _key_of(judgement, filters)
    return ListPosition(last_key(filters) if key is None else float(key), judgement.position)


def _key_of(judgement: Judgement, filters: Filters) -> float | None:
    name = filters.sorted_by
    if name in FURTHER:
        return keys_of(judgement.run, filters).get(judgement.pk)
    if name in GROUPS:
        group, groups = GROUPS[name](judgement), groups_of(judgement.run, filters)
        return groups.index(group) if group in groups else None
    found: float | None = getattr(judgement, field_of(filters))
    return found


def field_of(filters: Filters) -> str:
    """The field of a judgement that the list is sorted by."""
    return "score_in_force" if filters.sorted_by == "score" else filters.sorted_by


def groups_of(run: Run, filters: Filters) -> list[str]:
    """The candidates, metrics or states that the list is sorted by, in order."""
    if filters.sorted_by == "state":
        return list(states_of(filters))
    if asked := getattr(filters, filters.sorted_by):
        return [asked]
    if filters.sorted_by == "metric":
        return sorted(set(run.metrics.values_list("name", flat=True)))
    return sorted(set(run.run_candidates.values_list("candidate__name", flat=True)))


def keys_of(run: Run, filters: Filters) -> Mapping[int, float]:
    """{judgement: sort key} if the list is sorted by a further filter."""
    keys = FURTHER[filters.sorted_by].keys
    return keys(run, filters.further.get(filters.sorted_by, "0")) if keys else {}


def last_key(filters: Filters) -> float:
    """The key of judgements without a value, which come last in both directions."""
    return -sys.float_info.max if filters.falling else sys.float_info.max
