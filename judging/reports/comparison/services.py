"""Why the scores of two runs differ: one document for the page, the command line and files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from datasets.core.kinds import CHECKLIST
from judging.core.change import MeanChange, Share, change_between, changed_settings, readings
from judging.core.metric_definition import MetricDefinition
from judging.core.sandbox.job import SandboxError
from judging.core.statistics.checklists import cut
from judging.records.definitions import definitions_now
from judging.records.models import Reading, Run, RunMetric
from judging.reports.comparison import items
from judging.reports.comparison.items import Cell, Collected, ItemJudgement, Items
from judging.reports.comparison.noise import noise_of
from judging.reports.comparison.stored import StoredChange, StoredShare
from judging.reports.pairing import OUTCOMES
from judging.runs.rerun.preview import outcomes_by
from judging.runs.rerun.reparse import reparsed_definition

Progress = Callable[[float], None]
"""Called with the completed share, from 0 to 1."""


class ComparedItem(msgspec.Struct, frozen=True, array_like=True):
    """An item scored in at least one run: its values, what changed, and a judgement of each run to link to."""

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
        """One of OUTCOMES, for the later run; '' if only one run has a value."""
        if self.difference is None:
            return ""
        return OUTCOMES[1] if self.difference == 0 else OUTCOMES[0 if self.difference > 0 else 2]


@dataclass(frozen=True, slots=True)
class CellChange:
    """Changes for one candidate under one metric that both runs have."""

    metric: str
    candidate: str
    change: MeanChange
    before: Items
    after: Items

    def items(self) -> list[ComparedItem]:
        """Items by size of the change, then those with a value in only one run."""
        causes: dict[Hashable, list[str]] = {}
        for share in self.change.shares:
            for key in share.items:
                causes.setdefault(key, []).append(share.cause)
        items = [self._item(key, tuple(of_item)) for key, of_item in causes.items()]
        return sorted(items, key=lambda item: (item.difference is None, -abs(item.difference or 0), item.row))

    def _item(self, key: Hashable, causes: tuple[str, ...]) -> ComparedItem:
        before, after = self.before.get(key), self.after.get(key)
        side = after or before
        assert side is not None
        return ComparedItem(
            before.mean if before else None,
            after.mean if after else None,
            causes,
            side.row,
            before.parts[0].judgement if before else None,
            after.parts[0].judgement if after else None,
        )


def shared_cells(before: Run, after: Run) -> list[Cell]:
    """Names of metrics and candidates that both runs have, in the later run's order."""
    first = items.cells_of(before)
    return [cell for cell in items.cells_of(after) if cell in first]


def changes_between(
    before: Run, after: Run, cells: Sequence[Cell], progress: Progress = lambda _share: None
) -> Iterator[CellChange]:
    """Yield the changes in the given `shared_cells`."""
    keys = items.row_keys(before, after)
    places = [items.cells_of(run) for run in (before, after)]
    clusters = items.clusters_by_row(before) | items.clusters_by_row(after)
    for number, cell in enumerate(cells):
        done = _within(progress, number, len(cells))
        first, second = (
            items.collected(run, *place[cell], own)
            for run, place, own in zip((before, after), places, keys, strict=True)
        )
        done(0.2)
        replies = StoredReplies(before, after, (places[0][cell][0], places[1][cell][0]))
        replies.prepare(first, second, lambda share, done=done: done(0.2 + 0.7 * share))  # type: ignore[misc]
        widths = [
            items.scale_width(run, place[cell][0], side.values())
            for run, place, side in zip((before, after), places, (first, second), strict=True)
        ]
        width = None if None in widths else max(filter(None, widths))
        change = change_between(items.matched(first, second, keys, replies, clusters), width)
        if CHECKLIST in {
            definition.gives for definition in replies.own_definitions
        }:  # as the reports show them
            change = replace(change, before=cut(change.before), after=cut(change.after))
        change = replace(change, noise_alone=noise_of(replies.own_definitions, first, second))
        yield CellChange(*cell, change, first, second)


def _within(progress: Progress, number: int, count: int) -> Progress:
    """Progress of part `number` of `count` equal parts."""
    return lambda share: progress((number + share) / count)


def definitions_by_name(run: Run) -> dict[str, MetricDefinition]:
    """The run's current metric definitions by name."""
    return {definition.name: definition for definition in definitions_now(run).values()}


def comparison_document(before: Run, after: Run) -> dict[str, dict[str, Any]]:
    """The document of `compare --json`: {metric: {candidate: {a, b, difference, ci_low, ci_high, items, noise_alone,
    shares}}}."""
    return changes_document(changes_between(before, after, shared_cells(before, after)))


def changes_document(changes: Iterable[CellChange]) -> dict[str, dict[str, Any]]:
    """The same from changes that were computed before."""
    document: dict[str, dict[str, Any]] = {}
    for cell in changes:
        shares = [(share, len(share.items)) for share in cell.change.shares]
        document.setdefault(cell.metric, {})[cell.candidate] = _entry(cell.change, shares)
    return document


def stored_document(changes: Iterable[StoredChange]) -> dict[str, dict[str, Any]]:
    """The same from stored changes."""
    document: dict[str, dict[str, Any]] = {}
    for change in changes:
        shares = [(share, share.items) for share in change.shares]
        document.setdefault(change.metric, {})[change.candidate] = _entry(change, shares)
    return document


def _entry(
    change: MeanChange | StoredChange, shares: Iterable[tuple[Share | StoredShare, int]]
) -> dict[str, Any]:
    """The entry of one candidate; `shares` with their numbers of items."""
    return {
        "a": change.before,
        "b": change.after,
        "difference": change.difference,
        "ci_low": change.ci_low,
        "ci_high": change.ci_high,
        "items": change.items,
        "noise_alone": change.noise_alone,
        "shares": [
            {
                "cause": share.cause,
                "difference": share.difference,
                "ci_low": share.ci_low,
                "ci_high": share.ci_high,
                "items": items,
            }
            for share, items in shares
        ],
    }


Scores = Mapping[int, float | None]
_Pair = tuple[int | None, int | None]
"""Ids of the metric readings that two runs judged an item by; None is the run's own definition."""


class StoredReplies:
    """The Rereading for one metric of two runs: parses each reply of `before` once with the definition of `after`."""

    def __init__(self, before: Run, after: Run, metrics: tuple[int, int]) -> None:
        self.before = before
        self.stored = before.by_workers and after.by_workers
        self.definitions = [_definitions(metric) for metric in metrics]
        self._reader_changed = self.stored and not items.says_forms(before, metrics[0])
        self._settings: dict[_Pair, frozenset[str]] = {}
        self._scores: dict[_Pair, dict[str, Scores]] = {}

    @property
    def own_definitions(self) -> tuple[MetricDefinition, MetricDefinition]:
        """The runs' own definitions of the metric."""
        before, after = (by_reading[None] for by_reading in self.definitions)
        return before, after

    def settings(self, before: Collected, after: Collected) -> frozenset[str]:
        pairs = _pairs(before, after)
        return frozenset[str].union(*map(self._differing, pairs)) if pairs else frozenset()

    def read(self, before: Collected, after: Collected) -> Mapping[str, Scores]:
        """Empty if the item's judgements were parsed by different readings."""
        pairs = _pairs(before, after)
        scores = self._scores.get(pairs[0], {}) if len(pairs) == 1 else {}
        if "parser" in scores and "parser" not in self._differing(pairs[0]):  # another release read them
            by_parser = scores["parser"]
            if all(by_parser.get(part.judgement, part.score) == part.score for part in before.parts):
                return {cause: of_cause for cause, of_cause in scores.items() if cause != "parser"}
        return scores

    def prepare(self, first: Items, second: Items, progress: Progress) -> None:
        """Parse all replies before `read` is called; `progress` is called with the completed share."""
        if not self.stored:
            return
        wanted: dict[_Pair, list[ItemJudgement]] = {}
        for key, before in first.items():
            after = second.get(key)
            pairs = _pairs(before, after) if after else []
            if len(pairs) == 1 and (self._differing(pairs[0]) or self._reader_changed):
                wanted.setdefault(pairs[0], []).extend(before.parts)
        total = sum(len(parts) * len(self._readings(pair)) for pair, parts in wanted.items())
        read = itertools.count(1)
        for pair, parts in wanted.items():
            self._scores[pair] = self._read_by(pair, parts, lambda: progress(next(read) / total))

    def _read_by(
        self, pair: _Pair, parts: list[ItemJudgement], one_read: Callable[[], None]
    ) -> dict[str, Scores]:
        """Empty if scripts can't run here: the effect of their changes can't be separated then."""
        by_judgement = {part.judgement: part for part in parts}
        by_cause: dict[str, Scores] = {}
        try:
            for cause, definition in self._readings(pair):
                scores: dict[int, float | None] = {}
                for pk, outcome in outcomes_by(definition, self.before, list(by_judgement)):
                    scores[pk] = by_judgement[pk].score_of(outcome)
                    one_read()
                by_cause[cause] = scores
        except SandboxError:
            return {}
        return by_cause

    def _readings(self, pair: _Pair) -> list[tuple[str, MetricDefinition]]:
        before, after = self._of(pair)
        if not before.rules and not after.rules:
            steps = readings(before, after)
            by_reader = self._reader_changed and not before.value_scripts
            if by_reader and all(cause != "parser" for cause, _definition in steps):
                steps.insert(0, ("parser", before))
            return steps
        by_rules = reparsed_definition(before, after) if "scripts" in self._differing(pair) else None
        return [("scripts", by_rules)] if by_rules else []

    def _differing(self, pair: _Pair) -> frozenset[str]:
        if pair not in self._settings:
            self._settings[pair] = changed_settings(*self._of(pair))
        return self._settings[pair]

    def _of(self, pair: _Pair) -> tuple[MetricDefinition, MetricDefinition]:
        before, after = (
            by_reading[reading] for by_reading, reading in zip(self.definitions, pair, strict=True)
        )
        return before, after


def _pairs(before: Collected, after: Collected) -> list[_Pair]:
    if len(before.parts) == len(after.parts) == 1:
        return [(before.parts[0].reading, after.parts[0].reading)]
    return [(first, second) for first in before.readings for second in after.readings]


def _definitions(metric: int) -> dict[int | None, MetricDefinition]:
    """The metric's definitions: the run's own (None), and later readings by id."""
    definitions: dict[int | None, MetricDefinition] = {
        None: MetricDefinition.from_json(RunMetric.objects.get(pk=metric).definition)
    }
    for pk, text in Reading.objects.filter(run_metric=metric).values_list("pk", "definition"):
        definitions[pk] = MetricDefinition.from_json(text)
    return definitions
