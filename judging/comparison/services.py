"""Why the numbers of two runs differ: one document for the page, the command line and files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from judging.comparison import items
from judging.comparison.items import Cell, Items
from judging.comparison.rereading import StoredReplies
from judging.core.change import MeanChange, change_between
from judging.core.metric_definition import MetricDefinition
from judging.reports.pairing import OUTCOMES
from judging.runs.models import Run
from judging.runs.rerun.reparse import definitions_now

Progress = Callable[[float], None]
"""Takes the share of the work that is done, from 0 to 1."""


class ComparedItem(msgspec.Struct, frozen=True, array_like=True):
    """An item scored in at least one run: its values, what changed, and a judgement of each run to look at."""

    before: float | None
    after: float | None
    causes: tuple[str, ...]
    row: int
    judgement_before: int | None
    judgement_after: int | None

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def outcome(self) -> str:
        """One of OUTCOMES, of the later run; '' where only one run has a value."""
        if self.difference is None:
            return ""
        return OUTCOMES[1] if self.difference == 0 else OUTCOMES[0 if self.difference > 0 else 2]


@dataclass(frozen=True, slots=True)
class CellChange:
    """What changed for one candidate under one metric that both runs have."""

    metric: str
    candidate: str
    change: MeanChange
    before: Items
    after: Items

    def items(self) -> list[ComparedItem]:
        """Those that changed most first; then those that only one run has a value of."""
        causes: dict[Hashable, list[str]] = {}
        for share in self.change.shares:
            for key in share.items:
                causes.setdefault(key, []).append(share.cause)
        found = [self._item(key, tuple(of_item)) for key, of_item in causes.items()]
        return sorted(found, key=lambda one: (one.difference is None, -abs(one.difference or 0), one.row))

    def _item(self, key: Hashable, causes: tuple[str, ...]) -> ComparedItem:
        before, after = self.before.get(key), self.after.get(key)
        known = after or before
        assert known is not None
        return ComparedItem(
            before.mean if before else None,
            after.mean if after else None,
            causes,
            known.row,
            before.parts[0].judgement if before else None,
            after.parts[0].judgement if after else None,
        )


def shared_cells(before: Run, after: Run) -> list[Cell]:
    """Metrics and candidates that both runs have, by their names, in the order of the later run."""
    first = items.cells_of(before)
    return [cell for cell in items.cells_of(after) if cell in first]


def changes_between(
    before: Run, after: Run, cells: Sequence[Cell], progress: Progress = lambda _share: None
) -> Iterator[CellChange]:
    """The changes in these of the `shared_cells`, one at a time."""
    keys = items.row_keys(before, after)
    places = [items.cells_of(run) for run in (before, after)]
    for number, cell in enumerate(cells):
        done = _within(progress, number, len(cells))
        first, second = (
            items.collected(run, *place[cell], own)
            for run, place, own in zip((before, after), places, keys, strict=True)
        )
        done(0.2)
        replies = StoredReplies(before, after, (places[0][cell][0], places[1][cell][0]))
        replies.prepare(first, second, lambda share, done=done: done(0.2 + 0.7 * share))  # type: ignore[misc]
        change = change_between(items.matched(first, second, keys, replies))
        yield CellChange(*cell, change, first, second)


def _within(progress: Progress, number: int, count: int) -> Progress:
    """The progress of one of so many equal parts of the work."""
    return lambda share: progress((number + share) / count)


def definitions_by_name(run: Run) -> dict[str, MetricDefinition]:
    """How the run reads its metrics by now."""
    return {one.name: one for one in definitions_now(run).values()}


def comparison_document(before: Run, after: Run) -> dict[str, dict[str, Any]]:
    """What `compare --json` prints: {metric: {candidate: {a, b, difference, ci_low, ci_high, items, shares}}}."""
    document: dict[str, dict[str, Any]] = {}
    for cell in changes_between(before, after, shared_cells(before, after)):
        change = cell.change
        document.setdefault(cell.metric, {})[cell.candidate] = {
            "a": change.before,
            "b": change.after,
            "difference": change.difference,
            "ci_low": change.ci_low,
            "ci_high": change.ci_high,
            "items": change.items,
            "shares": [
                {"cause": share.cause, "difference": share.difference, "items": len(share.items)}
                for share in change.shares
            ],
        }
    return document
