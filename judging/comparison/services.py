"""Why the numbers of two runs differ: one document for the page, the command line and files."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from judging.comparison import items
from judging.comparison.items import Cell, Items
from judging.core.change import Change, change_between, changed_settings
from judging.core.metric_definition import MetricDefinition
from judging.runs.models import Run
from judging.runs.rerun.reparse import definition_now

OUTCOMES = ("wins", "ties", "losses")
"""Of the later run, by item."""


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """An item scored in at least one run: its values, what changed, and a judgement of each run to look at."""

    key: Hashable
    before: float | None
    after: float | None
    cause: str
    row: int
    judgement_before: int | None
    judgement_after: int | None

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def outcome(self) -> str:
        """One of OUTCOMES; '' where only one run has a value."""
        if self.difference is None:
            return ""
        return OUTCOMES[1] if self.difference == 0 else OUTCOMES[0 if self.difference > 0 else 2]


@dataclass(frozen=True, slots=True)
class CellChange:
    """What changed for one candidate under one metric that both runs have."""

    metric: str
    candidate: str
    settings: frozenset[str]
    change: Change
    before: Items
    after: Items

    def items(self) -> list[ComparedItem]:
        """Those that changed most first; then those that only one run has a value of."""
        found = [
            self._item(key, share.cause)
            for share in reversed(self.change.shares)  # of an item's two causes the first one is kept
            for key in share.items
        ]
        once = {one.key: one for one in found}
        return sorted(
            once.values(), key=lambda one: (one.difference is None, -abs(one.difference or 0), one.row)
        )

    def _item(self, key: Hashable, cause: str) -> ComparedItem:
        before, after = self.before.get(key), self.after.get(key)
        known = after or before
        assert known is not None
        return ComparedItem(
            key,
            before.mean if before else None,
            after.mean if after else None,
            cause,
            known.row,
            before.judgements[0] if before else None,
            after.judgements[0] if after else None,
        )


def shared_cells(before: Run, after: Run) -> list[Cell]:
    """Metrics and candidates that both runs have, by their names, in the order of the later run."""
    first = items.cells_of(before)
    return [cell for cell in items.cells_of(after) if cell in first]


def changes_between(before: Run, after: Run, cells: Sequence[Cell]) -> Iterator[CellChange]:
    """The changes in these of the `shared_cells`, one at a time."""
    keys = items.row_keys(before, after)
    places = [items.cells_of(run) for run in (before, after)]
    definitions = [_definitions(run) for run in (before, after)]
    for cell in cells:
        settings = changed_settings(*(one[cell[0]] for one in definitions))
        first, second = (
            items.collected(run, *place[cell], own)
            for run, place, own in zip((before, after), places, keys, strict=True)
        )
        matched = items.matched(first, second, keys, with_prompts={"judge", "prompt"} <= settings)
        yield CellChange(*cell, settings, change_between(matched, settings), first, second)


def _definitions(run: Run) -> dict[str, MetricDefinition]:
    return {one.name: definition_now(one) for one in run.metrics.all()}


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
