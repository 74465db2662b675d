"""Where judgements stand in a sorted list, and which come next: asked so that a million cost what fifty do.

Every metric, candidate and state is a stretch of the index of the figures that lies in the order of scores, and in that
of positions where there is no score: the first of each are taken and merged. By time there is an index of its own. Else
the run is walked in the order of positions, until a page is full or the look has cost enough.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, Q, QuerySet

from evalsite.web.numbers import whole
from judging.runs.counts import union_rows
from judging.runs.filters import ALL, CURRENT, NO, OLDER, YES, Filters, figures_of, matching
from judging.runs.models import Judgement, JudgementState, Run

WINDOW = 1_000  # positions that are looked through first; each further window is twice as long
MOST_LOOKED_AT = 15_000
FEW = 2_000  # so many are sorted, not looked for

Found = tuple[int, float, int]
"""A judgement's id, the key by which the list is sorted, and its position."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a judgement stands in a sorted list: the value sorted by and, to break ties, its position."""

    key: float
    position: int

    def __str__(self) -> str:
        return f"{self.key!r}~{self.position}"


def place_from(text: str) -> Place | None:
    """The place that an address names; None if it names none."""
    key, _, position = text.partition("~")
    number = whole(position)
    try:
        place = float(key)
    except ValueError:
        return None
    return Place(place, number) if number is not None and math.isfinite(place) else None


def place_of(judgement: Judgement, filters: Filters) -> Place:
    """Where the judgement stands in the list of `filters`."""
    key = getattr(judgement, field_of(filters))
    return Place(_last(filters) if key is None else float(key), judgement.position)


def field_of(filters: Filters) -> str:
    """The field of a judgement that the list is sorted by."""
    name = filters.sort.removeprefix("-")
    return "score_in_force" if name == "score" else name


def _last(filters: Filters) -> float:
    """The key of what has no value: it comes last, whichever way."""
    return -sys.float_info.max if filters.sort.startswith("-") else sys.float_info.max


@dataclass(frozen=True, slots=True)
class Nearest:
    """Judgements in the order of looking. `stopped`: the position where the look ended before it was through."""

    found: list[Found]
    stopped: int | None = None


def nearest(run: Run, filters: Filters, beside: Place | None, limit: int, *, back: bool = False) -> Nearest:
    """Up to `limit` judgements after `beside` (or before it, nearest first), or from the beginning."""
    look = _Look(run, filters, beside, limit, back)
    if filters.line is not None or look.few or (filters.indexed and filters.sort != "position"):
        return Nearest(look.sorted())
    if filters.sort == "position":
        one_score = filters.one_score
        if one_score is None:
            return look.by_position()
        # Both bounds beside the score itself would tempt SQLite to search by them, and to sort.
        bare = replace(look, filters=filters.without_bounds) if filters.least is not None else look
        return Nearest(bare.merged([one_score & look.beyond_position]))
    if filters.attempts == ALL:
        return Nearest(look.of_all_attempts())
    if look.name == "score_in_force":
        return Nearest(look.merged(look.stretches()))
    return Nearest(look.by_seconds())


@dataclass(frozen=True, slots=True)
class _Look:
    """One look for what is nearest to a place; values and positions go the same way, so that an index has them."""

    run: Run
    filters: Filters
    beside: Place | None
    limit: int
    back: bool

    @property
    def name(self) -> str:
        return field_of(self.filters)

    @property
    def falling(self) -> bool:
        return self.filters.sort.startswith("-") != self.back

    @property
    def few(self) -> bool:
        """Are so few meant that all of them are sorted? The index of the figures tells."""
        few = matching(self.run, self.filters)[: FEW + 1].count
        return self.filters.by_figures and not self.filters.looks_inside and few() <= FEW

    @property
    def beyond_position(self) -> Q:
        return Q() if self.beside is None else self._further("position", self.beside.position)

    def _further(self, name: str, than: float) -> Q:
        return Q(**{f"{name}__{'lt' if self.falling else 'gt'}": than})

    def stretches(self) -> Iterator[Q]:
        """What lies beyond the place, part by part in the list's order: the ties, other values, then none."""
        valued, without = Q(**{f"{self.name}__isnull": False}), Q(**{f"{self.name}__isnull": True})
        if self.beside is None:
            yield from (valued, without)
            return
        tied = self._further("position", self.beside.position)
        if self.beside.key == _last(self.filters):
            yield without & tied
            if self.back:
                yield valued
            return
        yield Q(**{self.name: self.beside.key}) & tied
        yield self._further(self.name, self.beside.key)
        if not self.back:
            yield without

    def sorted(self) -> list[Found]:
        """All that is meant, sorted by the database."""
        found: list[Found] = []
        stretches = [self.beyond_position] if self.name == "position" else self.stretches()
        for stretch in stretches:
            if len(found) < self.limit:
                # +0 keeps the database from walking the whole run in the order of positions in search of a few.
                part = matching(self.run, self.filters).filter(stretch).annotate(place=F("position") + 0)
                by = ("place",) if self.name == "position" else (self.name, "place")
                found += self._read(part.order_by(*self._signed(by)), len(found))
        return found

    def merged(self, stretches: Iterator[Q] | Sequence[Q]) -> list[Found]:
        """The nearest of all metrics, candidates and states."""
        found: list[Found] = []
        anything = matching(self.run, self.filters, by_figures=False)
        for stretch in stretches:
            if len(found) >= self.limit:
                break
            parts = [
                anything.filter(figures, stretch).order_by(*self._signed(("score_in_force", "position")))
                for figures in figures_of(self.run, self.filters)
            ]
            left = self.limit - len(found)
            rows = union_rows([self._named(part)[:left] for part in parts])
            found += sorted(map(self._found, rows), key=self._rank, reverse=self.back)[:left]
        return found

    def by_seconds(self) -> list[Found]:
        """What took time, by its index; what was not run has none."""
        found: list[Found] = []
        anything = matching(self.run, self.filters, by_figures=False)
        for stretch in self.stretches():
            if len(found) >= self.limit:
                break
            if ("seconds__isnull", True) in stretch.children:
                found += self._not_run(stretch)[: self.limit - len(found)]
            elif self.filters.state != JudgementState.NOT_RUN:
                part = anything.filter(stretch, seconds__isnull=False)
                found += self._read(part.order_by(*self._signed(("seconds", "position"))), len(found))
        return found

    def _not_run(self, stretch: Q) -> list[Found]:
        """What was not run: overridden already, which is little, or not."""
        found: list[Found] = []
        if self.filters.overridden != NO:
            ahead = matching(self.run, replace(self.filters, overridden=YES), by_figures=False)
            found += self._read(ahead.filter(stretch).order_by(*self._signed(("position",))), 0)
        if self.filters.state in ("", JudgementState.NOT_RUN):
            waiting = replace(self, filters=replace(self.filters, state=JudgementState.NOT_RUN))
            found += waiting.merged([stretch])
        return sorted(found, key=self._rank, reverse=self.back)[: self.limit]

    def by_position(self) -> Nearest:
        """Window by window, until the page is full or the look has cost enough."""
        anything = matching(self.run, self.filters, by_figures=False)
        few = self.filters.flag or self.filters.overridden == YES or self.filters.attempts == OLDER
        if few or not self.filters.chooses:
            ordered = anything.filter(self.beyond_position).order_by(*self._signed(("position",)))
            return Nearest(self._read(ordered, 0))
        last = self.run.judgements.order_by("-position").values_list("position", flat=True).first() or 0
        at = self.beside.position if self.beside else (last + 1 if self.back else -1)
        found: list[Found] = []
        size, looked_at = WINDOW, 0
        while at > 0 if self.back else at < last:
            if looked_at >= MOST_LOOKED_AT:
                return Nearest(found, stopped=at)
            edge = max(0, at - size) if self.back else at + size
            window = anything.filter(position__range=(edge, at - 1) if self.back else (at + 1, edge))
            found += self._read(window.order_by(*self._signed(("position",))), len(found))
            if len(found) == self.limit:
                break
            at, looked_at, size = edge, looked_at + size, 2 * size
        return Nearest(found)

    def of_all_attempts(self) -> list[Found]:
        """The newest, by their indexes, with the older ones, of which there are few."""
        parts = [
            nearest(
                self.run, replace(self.filters, attempts=one), self.beside, self.limit, back=self.back
            ).found
            for one in (CURRENT, OLDER)
        ]
        return sorted([*parts[0], *parts[1]], key=self._rank, reverse=self.back)[: self.limit]

    def _rank(self, one: Found) -> tuple[float, int]:
        _, key, position = one
        return (-key, -position) if self.filters.sort.startswith("-") else (key, position)

    def _signed(self, names: Sequence[str]) -> list[str]:
        return [f"-{name}" if self.falling else name for name in names]

    def _named(self, part: QuerySet[Judgement]) -> QuerySet[Judgement, Any]:
        return part.values_list("pk", self.name, "position")

    def _found(self, row: tuple[int, float | None, int]) -> Found:
        pk, key, position = row
        return pk, _last(self.filters) if key is None else key, position

    def _read(self, part: QuerySet[Judgement], there: int) -> list[Found]:
        return [self._found(row) for row in self._named(part)[: self.limit - there]]
