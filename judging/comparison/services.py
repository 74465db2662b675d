"""Why the numbers of two runs differ: one document for the page, the command line and files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from judging.comparison import items
from judging.core.change import Change, change_between, changed_settings
from judging.core.pipeline import MetricDefinition
from judging.runs.models import Run
from judging.runs.rereading import definition_now


@dataclass(frozen=True, slots=True)
class CellChange:
    """What changed for one candidate under one metric that both runs have."""

    metric: str
    candidate: str
    settings: frozenset[str]
    change: Change


def changes_between(before: Run, after: Run) -> Iterator[CellChange]:
    """For every metric and candidate, matched by their names, in the order of the second run."""
    keys = items.row_keys(before, after)
    first, second = items.cells_of(before), items.cells_of(after)
    definitions = [_definitions(run) for run in (before, after)]
    for cell in second:
        if cell not in first:
            continue
        settings = changed_settings(*(one[cell[0]] for one in definitions))
        collected = [
            items.collected(run, *cells[cell], own)
            for run, cells, own in zip((before, after), (first, second), keys, strict=True)
        ]
        both_asked = {"judge", "prompt"} <= settings
        matched = items.matched(collected[0], collected[1], keys, with_prompts=both_asked)
        yield CellChange(*cell, settings, change_between(matched, settings))


def _definitions(run: Run) -> dict[str, MetricDefinition]:
    return {one.name: definition_now(one) for one in run.metrics.all()}


def comparison_document(before: Run, after: Run) -> dict[str, dict[str, Any]]:
    """What `compare --json` prints: {metric: {candidate: {a, b, difference, ci_low, ci_high, items, shares}}}."""
    document: dict[str, dict[str, Any]] = {}
    for cell in changes_between(before, after):
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
