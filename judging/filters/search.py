"""The judgements nearest to a place in a filtered, sorted list, within a bounded amount of reading.

If an index finds few matches, they are sorted. Otherwise the index of the sort order is read from the place on, until
the page is full or as many judgements have been looked at as `Limits` allows; the search can be continued there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from django.db import connection
from django.db.models import F

from judging.filters.conditions import Conditions
from judging.filters.judgement_filter import ALL, CURRENT, OLDER, Filters
from judging.filters.orders import ListPosition, beyond, field_of, in_direction, place_at
from judging.filters.page_limits import LIMITS, Limits
from judging.records.models import Judgement, JudgementQuerySet, Run


class Match(NamedTuple):
    """A judgement's id and its place."""

    pk: int
    place: ListPosition


@dataclass(frozen=True, slots=True)
class Nearest:
    """Judgements in search order. `stopped`: the place where the search ended early, after `looked_at` judgements."""

    matches: list[Match]
    stopped: ListPosition | None = None
    looked_at: int = 0


def nearest(
    run: Run,
    filters: Filters,
    place: ListPosition | None,
    count: int,
    *,
    back: bool = False,
    limits: Limits = LIMITS,
) -> Nearest:
    """Up to `count` judgements after `place` (or before it, nearest first), or from the beginning."""
    attempts = (CURRENT, OLDER) if filters.attempts == ALL else (filters.attempts,)
    return _merged(
        [
            _Search(run, replace(filters, attempts=part), place, count, back, limits).nearest()
            for part in attempts
        ],
        filters,
        count,
        back=back,
    )


def _merged(parts: Sequence[Nearest], filters: Filters, count: int, *, back: bool) -> Nearest:
    """The nearest of all parts, up to the place where the first of them stopped."""
    if len(parts) == 1:
        return parts[0]

    def rank(place: ListPosition) -> tuple[float, int]:
        return place.rank(filters, back=back)

    matches = sorted((match for part in parts for match in part.matches), key=lambda match: rank(match.place))
    stopped = min((part.stopped for part in parts if part.stopped), key=rank, default=None)
    if stopped:
        matches = [match for match in matches if rank(match.place) <= rank(stopped)]
    if stopped is None or len(matches) >= count:
        return Nearest(matches[:count])
    return Nearest(matches, stopped, sum(part.looked_at for part in parts))


@dataclass(frozen=True)
class _Search:
    """A search among the current or the older attempts."""

    run: Run
    filters: Filters
    place: ListPosition | None
    count: int
    back: bool
    limits: Limits

    def nearest(self) -> Nearest:
        conditions = Conditions(self.run, self.filters, self.limits)
        few = conditions.few(self.limits.few)
        return self.in_order(conditions) if few is None else Nearest(self.sorted(conditions, few))

    def sorted(self, conditions: Conditions, few: JudgementQuerySet) -> list[Match]:
        """The nearest of a few judgements."""
        rows = conditions.among(few, field_of(self.filters), "position")
        matches = [self.match(pk, key, position) for pk, _, key, position in rows]
        matches.sort(key=lambda match: self.rank(match.place))
        beyond_place = (
            match for match in matches if not self.place or self.rank(match.place) > self.rank(self.place)
        )
        return list(islice(beyond_place, self.count))

    def rank(self, place: ListPosition) -> tuple[float, int]:
        return place.rank(self.filters, back=self.back)

    def in_order(self, conditions: Conditions) -> Nearest:
        """The next matches in the order's index."""
        matches: list[Match] = []
        place, looked_at = self.place, 0
        by_position = self.filters.sorted_by == "position"
        for size in self.limits.windows(covered=conditions.covered, by_position=by_position):
            more, place = self.within(conditions, place, size, self.count - len(matches))
            matches += more
            looked_at += size
            if len(matches) >= self.count or place is None:
                return Nearest(matches[: self.count])
        return Nearest(matches, place, looked_at)

    def within(
        self, conditions: Conditions, place: ListPosition | None, size: int, count: int
    ) -> tuple[list[Match], ListPosition | None]:
        """Matches among the next `size` judgements, and the place of the last of these; None if there are enough
        matches or the list ends."""
        matches: list[Match] = []
        parts = list(beyond(self.filters, place, back=self.back))
        for part in parts:
            entries = self.entries().filter(part).order_by(*in_direction(self.filters, back=self.back))
            matches += self.matches(conditions, entries[:size], count - len(matches))
            if len(matches) >= count:
                break
            for key, position in entries.values_list(F(field_of(self.filters)), "position")[size - 1 : size]:
                return matches, place_at(key, position, self.filters)
            if part is not parts[-1]:
                size -= entries[:size].count()
        return matches, None

    def entries(self) -> JudgementQuerySet:
        """All judgements that the order's index lists. By position, those of each state have an index of their own."""
        # SQLite looks up a list of values in an index, but not a plain boolean.
        entries = Judgement.objects.filter(run=self.run, current__in=[self.filters.attempts == CURRENT])
        if self.filters.state and self.filters.sorted_by == "position":
            entries = entries.filter(state_in_force=self.filters.state)
        return entries

    def matches(self, conditions: Conditions, entries: JudgementQuerySet, count: int) -> list[Match]:
        """The first matches among the judgements that `entries`, which has a limit, reads in order."""
        read = entries.annotate(sort_key=F(field_of(self.filters)), matches=conditions.in_database)
        row = "row_id" if conditions.of_row else "pk"  # rows are not in the index: all of them would be read
        columns = read.values_list("pk", row, "sort_key", "position", "matches")
        sql, parameters = columns.query.sql_with_params()
        limit = "" if conditions.of_row else f" LIMIT {count}"
        with connection.cursor() as cursor:
            # Outside of the subquery, a condition can't change how many judgements are looked at, or by which index.
            cursor.execute(f"SELECT * FROM ({sql}) AS entries WHERE matches{limit}", parameters)  # noqa: S608
            rows = conditions.passing(cursor.fetchall())
        return [self.match(pk, key, position) for pk, _, key, position, _ in rows]

    def match(self, pk: int, key: float | None, position: int) -> Match:
        return Match(pk, place_at(key, position, self.filters))
