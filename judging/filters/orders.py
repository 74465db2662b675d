"""Sort orders of judgements, and a judgement's place in one.

Each order has an index (run, current, its field, position, …) that lists the judgements and also contains the columns
most filters need. To add an order: an entry in ORDERS and its index in models.py.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evalsite.web.numbers import whole
from judging.filters.judgement_filter import Filters
from judging.records.models import Judgement


@dataclass(frozen=True, slots=True)
class Order:
    """A sort order: the judgement's field and its label."""

    field: str
    label: Any


ORDERS = {
    "position": Order("position", _("Row")),
    "score": Order("score_in_force", _("Score")),
    "seconds": Order("seconds", _("Time")),
    "changed": Order("changed_at", _("Last change")),
}
"""By their name in addresses, where a leading `-` means descending."""

FORMER_ORDERS = {
    "candidate": _("Candidate"),
    "metric": _("Metric"),
    "state": _("State"),
    "spread": _("Spread of judges"),
    "differs": _("Judge − people"),
}
"""Orders that addresses and saved views may still name; lists are then sorted by position."""


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A place in a sorted list: the sort key and, to break ties, the position, or -1."""

    key: float
    position: int

    def beside(self, filters: Filters, *, back: bool = False) -> ListPosition:
        """The place directly after this one in the list of `filters`, or before it."""
        return ListPosition(self.key, self.position + (-1 if filters.falling != back else 1))

    def rank(self, filters: Filters, *, back: bool = False) -> tuple[float, int]:
        """Increases along the list of `filters`, or backwards."""
        sign = -1 if filters.falling != back else 1
        return sign * self.key, sign * self.position

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
    return place_at(getattr(judgement, field_of(filters)), judgement.position, filters)


def place_at(key: float | None, position: int, filters: Filters) -> ListPosition:
    """The place of a judgement with this value in the order's field."""
    return ListPosition(_last_key(filters) if key is None else key, position)


def field_of(filters: Filters) -> str:
    """The field of a judgement that the list is sorted by."""
    return ORDERS[filters.sorted_by].field


def _last_key(filters: Filters) -> float:
    """The key of judgements without a value, which come last in both directions."""
    return -sys.float_info.max if filters.falling else sys.float_info.max


def beyond(filters: Filters, place: ListPosition | None, *, back: bool) -> Iterator[Q]:
    """The list's parts after a place (or before it), nearest first: ties, other values, then those without a value.
    Each is one range of the order's index."""
    field, further = field_of(filters), "lt" if filters.falling != back else "gt"
    if field == "position":
        yield Q(**{f"position__{further}": place.position}) if place else Q()
        return
    valued, without = Q(**{f"{field}__isnull": False}), Q(**{f"{field}__isnull": True})
    tied = Q(**{f"position__{further}": place.position}) if place else Q()
    if field == "score_in_force" and filters.unscored:
        yield without & tied
        return
    if place is None:
        yield from (valued, without)
        return
    if place.key == _last_key(filters):
        yield without & tied
        if back:
            yield valued
        return
    yield Q(**{field: place.key}) & tied
    yield Q(**{f"{field}__{further}": place.key})
    if not back:
        yield without


def in_direction(filters: Filters, *, back: bool) -> list[str]:
    """The fields that the index is read by, from the place on."""
    sign = "-" if filters.falling != back else ""
    return [f"{sign}{field}" for field in dict.fromkeys((field_of(filters), "position"))]
