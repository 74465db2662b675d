"""Places of judgements in a sorted list, and the next ones, with queries whose cost does not grow with the run.

In the index of the figures, each combination of metric, candidate and state is a range ordered by score, or by position
if there is no score: the first entries of each range are read and merged. Time and spread have their own indexes.
Sorted by candidate, metric or state, these are searched one after another. In all other cases the run is scanned by
position, until a page is full or the limit is reached.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, Q, QuerySet

from judging.review.orders import GROUPS, ListPosition, field_of, groups_of, keys_of, last_key
from judging.runs.counts import limited_counts, union_rows
from judging.runs.filters import (
    ALL,
    ANYTHING,
    CURRENT,
    FURTHER,
    NO,
    OLDER,
    YES,
    Filters,
    among,
    lines_of,
    matching,
    ranges_of,
)
from judging.runs.models import PLACE, Judgement, JudgementQuerySet, JudgementState, Run
from judging.runs.row_filters import these

WINDOW = 1_000  # positions in the first window; each window is twice as long as the one before
LONGEST_WINDOW = 4_000
"""In positions: a database looks up the replies of so few judgements one by one instead of scanning the table."""
MOST_LOOKED_AT = 15_000
SCATTERED = 5
FEW = 2_000  # up to this many are sorted instead of searched
LAST_POSITION = 2**31 - 1

Found = tuple[int, float, int]
"""A judgement's id, sort key and position."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """Judgements in search order. `stopped`: the place where the search stopped early."""

    found: list[Found]
    stopped: ListPosition | None = None


def nearest(
    run: Run, filters: Filters, beside: ListPosition | None, limit: int, *, back: bool = False
) -> Nearest:
    """Up to `limit` judgements after `beside` (or before it, nearest first), or from the beginning."""
    search = _Search(run, filters, beside, limit, back)
    if filters.sorted_by in GROUPS:
        return search.by_groups()
    if filters.sorted_by in FURTHER:
        return Nearest(search.by_keys())
    few = filters.line is not None or lines_of(run, filters) is not None
    if filters.looks_inside and not few:
        return search.by_position() if search.inside_alone else search.through()
    if few or filters.further or (filters.indexed and search.name != "position"):
        return Nearest(search.sorted())
    if search.few:
        return Nearest(search.picked() if filters.by_figures else search.sorted())
    if search.name == "position":
        one_score = filters.one_score
        if one_score is None:
            return search.by_position()
        # With both bounds next to the score itself, SQLite would search by them, and sort.
        bare = replace(search, filters=filters.without_bounds) if filters.least is not None else search
        return Nearest(bare.merged([one_score & search.beyond_position]))
    if filters.attempts == ALL:
        return Nearest(search.of_all_attempts())
    if search.name == "score_in_force":
        return Nearest(search.merged(search.conditions()))
    return Nearest(search.by_number())


@dataclass(frozen=True, slots=True)
class _Search:
    """A search for the judgements nearest to a place. Values and positions have the same direction, so that an index
    applies."""

    run: Run
    filters: Filters
    beside: ListPosition | None
    limit: int
    back: bool

    @property
    def name(self) -> str:
        return field_of(self.filters)

    @property
    def falling(self) -> bool:
        return self.filters.falling != self.back

    @property
    def few(self) -> bool:
        """Whether so few match that all can be sorted, according to the index of the figures or of spreads."""
        asked = self.filters
        if asked.by_figures:
            return limited_counts([ranges_of(self.run, asked, ordered=False)], FEW + 1)[0] <= FEW
        return asked.spread is not None and matching(self.run, asked)[: FEW + 1].count() <= FEW

    @property
    def inside_alone(self) -> bool:
        """Whether the filter needs only a scan of judgements, answers and replies in order of position. Older
        attempts have their own index, which is not read by windows."""
        rest = replace(self.filters.outside, sort="position")
        others = rest.attempts == OLDER or self.filters.of_row or self.name != "position"
        return not others and rest.without("attempts") == ANYTHING

    @property
    def beyond_position(self) -> Q:
        return Q() if self.beside is None else self._further("position", self.beside.position)

    def _further(self, name: str, than: float) -> Q:
        return Q(**{f"{name}__{'lt' if self.falling else 'gt'}": than})

    def conditions(self) -> Iterator[Q]:
        """Conditions for the list's parts beyond the place, in order: ties, other values, then no value."""
        valued, without = Q(**{f"{self.name}__isnull": False}), Q(**{f"{self.name}__isnull": True})
        if self.beside is None:
            yield from (valued, without)
            return
        tied = self._further("position", self.beside.position)
        if self.beside.key == last_key(self.filters):
            yield without & tied
            if self.back:
                yield valued
            return
        yield Q(**{self.name: self.beside.key}) & tied
        yield self._further(self.name, self.beside.key)
        if not self.back:
            yield without

    def sorted(self) -> list[Found]:
        """All matches, sorted by the database."""
        found: list[Found] = []
        conditions = [self.beyond_position] if self.name == "position" else self.conditions()
        for condition in conditions:
            if len(found) < self.limit:
                # +0 keeps the database from scanning the whole run by position for a few matches.
                part = matching(self.run, self.filters).filter(condition).annotate(place=F("position") + 0)
                by = ("place",) if self.name == "position" else (self.name, "place")
                found += self._read(part.order_by(*self._signed(by)), len(found))
        return found

    def picked(self) -> list[Found]:
        """The same for few matches, read from the index of the figures."""
        rows = union_rows([self._named(part) for part in ranges_of(self.run, self.filters)])
        return self._nearest_of(list(map(self._found, rows)))

    def _nearest_of(self, found: list[Found]) -> list[Found]:
        """The nearest of all matches."""
        found.sort(key=self._rank, reverse=self.back)
        if self.beside is not None:
            here = self._rank((0, self.beside.key, self.beside.position))
            found = [
                one for one in found if (self._rank(one) < here if self.back else self._rank(one) > here)
            ]
        return found[: self.limit]

    def merged(self, conditions: Iterator[Q] | Sequence[Q]) -> list[Found]:
        """The nearest over all metrics, candidates and states."""
        found: list[Found] = []
        by = self._signed(("score_in_force", "position"))
        for condition in conditions:
            if len(found) >= self.limit:
                break
            parts = [one.filter(condition).order_by(*by) for one in self._ranges(condition)]
            left = self.limit - len(found)
            rows = union_rows([self._named(part)[:left] for part in parts])
            found += sorted(map(self._found, rows), key=self._rank, reverse=self.back)[:left]
        return found

    def _ranges(self, condition: Q) -> list[JudgementQuerySet]:
        """Only scored judgements have a score, so other states are skipped: PostgreSQL needs a millisecond to plan
        each part."""
        filters = self.filters
        if self.name == "score_in_force" and ("score_in_force__isnull", True) not in condition.children:
            if filters.state not in ("", JudgementState.SCORED):
                return []
            filters = replace(filters, state=JudgementState.SCORED)
        return ranges_of(self.run, filters)

    def by_number(self) -> list[Found]:
        """Judgements with a spread or a duration, by its index, and those that were not run, which have no duration."""
        found: list[Found] = []
        anything = matching(self.run, self.filters, by_figures=False)
        for condition in self.conditions():
            if len(found) >= self.limit:
                break
            if (f"{self.name}__isnull", True) in condition.children:
                found += self._not_run(condition)[: self.limit - len(found)] if self.name == "seconds" else []
            elif self.filters.state != JudgementState.NOT_RUN:
                part = anything.filter(condition, **{f"{self.name}__isnull": False})
                found += self._read(part.order_by(*self._signed((self.name, "position"))), len(found))
        return found

    def _not_run(self, condition: Q) -> list[Found]:
        """Judgements that were not run: those already overridden (few), and the others."""
        found: list[Found] = []
        if self.filters.overridden != NO:
            ahead = matching(self.run, replace(self.filters, overridden=YES), by_figures=False)
            found += self._read(ahead.filter(condition).order_by(*self._signed(("position",))), 0)
        if self.filters.state in ("", JudgementState.NOT_RUN):
            waiting = replace(self, filters=replace(self.filters, state=JudgementState.NOT_RUN))
            found += waiting.merged([condition])
        return sorted(found, key=self._rank, reverse=self.back)[: self.limit]

    def by_position(self) -> Nearest:
        """Search window by window, until the page is full or the limit is reached."""
        anything = matching(self.run, self.filters, by_figures=False)
        if self.filters.flag or self.filters.overridden == YES or self.filters.attempts == OLDER:
            few = anything.filter(self.beyond_position).order_by(*self._signed(("position",)))
            return Nearest(self._read(few, 0))
        if not self.filters.chooses:
            beyond = self._beyond(self.beside.position if self.beside else None)
            return Nearest(self._read(self._in_order(anything, beyond), 0))
        return self._by_windows(anything)

    def _in_order(self, found: JudgementQuerySet, within: Q) -> JudgementQuerySet:
        """Judgements `within` bounds of their place, by position. Older attempts, possibly a million in a row, are
        skipped."""
        place = F("position") if self.filters.attempts == ALL else PLACE
        return found.alias(place=place).filter(within).order_by(*self._signed(("place",)))

    def _beyond(self, place: int | None) -> Q:
        """Always with exactly one lower bound: without any, the scan starts at entries without a place, which the
        index also contains; of two, SQLite uses only the first."""
        if place is None:
            return Q(place__gte=0)
        return Q(place__gte=0, place__lt=place) if self.falling else Q(place__gt=place)

    def _by_windows(self, anything: JudgementQuerySet) -> Nearest:
        found: list[Found] = []
        at = self.beside.position if self.beside else None
        size, looked_at = WINDOW, 0
        while (edges := self._window(at, size)) is not None:
            if looked_at >= MOST_LOOKED_AT:
                return Nearest(found, stopped=ListPosition(at, at) if at is not None else None)
            found += self._read(self._in_order(anything, Q(place__range=edges)), len(found))
            if len(found) == self.limit:
                break
            at, looked_at = edges[0 if self.falling else 1], looked_at + size
            size = min(2 * size, LONGEST_WINDOW, MOST_LOOKED_AT - looked_at)
        return Nearest(found)

    def _window(self, beyond: int | None, size: int) -> tuple[int, int] | None:
        """The next `size` positions, starting at the next judgement; None if there is none."""
        attempts = matching(self.run, Filters(attempts=self.filters.attempts))
        ahead = self._in_order(attempts, self._beyond(beyond))
        first = ahead.values_list("position", flat=True).first()
        if first is None:
            return None
        return (max(0, first - size + 1), first) if self.falling else (first, first + size - 1)

    def through(self) -> Nearest:
        """Search the matches of the rest of the filter batch by batch, until the page is full or the limit is
        reached."""
        rest, beside, found, looked_at, size = self.filters.outside, self.beside, list[Found](), 0, WINDOW
        # In any order but the data's, each lookup is at another place on disk.
        most = MOST_LOOKED_AT if self.name == "position" else MOST_LOOKED_AT // SCATTERED
        while True:
            batch = nearest(self.run, rest, beside, size, back=self.back)
            meant = among(self.run, self.filters, [pk for pk, _, _ in batch.found])
            found += [one for one in batch.found if one[0] in meant]
            if len(found) >= self.limit:
                return Nearest(found[: self.limit])
            if batch.stopped is not None or len(batch.found) < size:
                return Nearest(found, stopped=batch.stopped)
            _, key, position = batch.found[-1]
            beside, looked_at = ListPosition(key, position), looked_at + size
            if looked_at >= most:
                return Nearest(found, stopped=beside)
            size = min(2 * size, most - looked_at)

    def by_groups(self) -> Nearest:
        """One candidate, metric or state after another, each by position."""
        found: list[Found] = []
        groups = list(enumerate(groups_of(self.run, self.filters)))
        long = self.filters.looks_inside and self.run.total > MOST_LOOKED_AT
        by_position = "-position" if self.filters.falling else "position"
        end = 0 if self.falling else LAST_POSITION  # of a group
        for key, group in reversed(groups) if self.falling else groups:
            beside = self.beside
            if beside is not None and key != beside.key:
                if (key > beside.key) == self.falling:
                    continue
                beside = None
            if beside is not None:
                if beside.position == end:
                    continue
                # Within a group the list is sorted by position.
                beside = ListPosition(beside.position, beside.position)
            inside = replace(self.filters.replaced(self.name, group), sort=by_position)
            search = nearest(self.run, inside, beside, self.limit - len(found), back=self.back)
            found += [(pk, key, position) for pk, _, position in search.found]
            if search.stopped is not None:
                return Nearest(found, stopped=ListPosition(key, search.stopped.position))
            if len(found) == self.limit:
                break
            if long and group != groups[0 if self.falling else -1][1]:
                return Nearest(found, stopped=ListPosition(key, end))
        return Nearest(found)

    def by_keys(self) -> list[Found]:
        """By the keys of a further filter: about FEW at a time, ties included, until the page is full."""
        keys = keys_of(self.run, self.filters)
        rest = self.filters.without(self.name)
        there = matching(self.run, rest, by_figures=False)
        sign = -1 if self.falling else 1
        ids = sorted(keys, key=lambda pk: sign * keys[pk])
        ranks = [sign * keys[pk] for pk in ids]
        at = bisect_left(ranks, sign * self.beside.key) if self.beside else 0
        found: list[Found] = []
        while at < len(ids) and len(found) < self.limit:
            end = bisect_right(ranks, ranks[min(at + FEW, len(ids)) - 1])
            positions = there.filter(pk__in=these(ids[at:end])).values_list("pk", "position")
            found += self._nearest_of([(pk, keys[pk], position) for pk, position in positions])
            at = end
        return found[: self.limit]

    def of_all_attempts(self) -> list[Found]:
        """Current and older attempts, each by their indexes; there are few older ones."""
        parts = [
            nearest(
                self.run, replace(self.filters, attempts=one), self.beside, self.limit, back=self.back
            ).found
            for one in (CURRENT, OLDER)
        ]
        return sorted([*parts[0], *parts[1]], key=self._rank, reverse=self.back)[: self.limit]

    def _rank(self, one: Found) -> tuple[float, int]:
        _, key, position = one
        return (-key, -position) if self.filters.falling else (key, position)

    def _signed(self, names: Sequence[str]) -> list[str]:
        return [f"-{name}" if self.falling else name for name in names]

    def _named(self, part: QuerySet[Judgement]) -> QuerySet[Judgement, Any]:
        return part.values_list("pk", self.name, "position")

    def _found(self, row: tuple[int, float | None, int]) -> Found:
        pk, key, position = row
        return pk, last_key(self.filters) if key is None else key, position

    def _read(self, part: QuerySet[Judgement], there: int) -> list[Found]:
        return [self._found(row) for row in self._named(part)[: self.limit - there]]
