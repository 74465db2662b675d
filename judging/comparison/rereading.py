"""What differs between the definitions that two runs judged by, and the earlier run's replies read by the later's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from judging.comparison.items import Collected, Items
from judging.core.change import changed_settings, readings
from judging.core.metric_definition import MetricDefinition
from judging.core.sandbox.job import SandboxError
from judging.runs.models import Reading, Run, RunMetric
from judging.runs.rerun.reparse import reparsed_definition
from judging.runs.rerun.rereading import outcomes_by

Scores = Mapping[int, float | None]
_Pair = tuple[int | None, int | None]
"""By which of their metrics' readings two runs judged an item; None is the run's own definition."""


class StoredReplies:
    """Of one metric in two runs (items.Rereading): replies of `before` are read as `after` reads its own, each once."""

    def __init__(self, before: Run, after: Run, metrics: tuple[int, int]) -> None:
        self.before = before
        self.stored = before.by_workers and after.by_workers
        self.definitions = [_definitions(metric) for metric in metrics]
        self._settings: dict[_Pair, frozenset[str]] = {}
        self._scores: dict[_Pair, dict[str, Scores]] = {}

    def settings(self, before: Collected, after: Collected) -> frozenset[str]:
        pairs = _pairs(before, after)
        return frozenset[str].union(*map(self._differing, pairs)) if pairs else frozenset()

    def read(self, before: Collected, after: Collected) -> Mapping[str, Scores]:
        """Nothing of an item whose judgements were read in several ways."""
        pairs = _pairs(before, after)
        return self._scores.get(pairs[0], {}) if len(pairs) == 1 else {}

    def prepare(
        self, first: Items, second: Items, progress: Callable[[float], None] = lambda _share: None
    ) -> None:
        """Read what can be read, before `read` is called; `progress` is called with the share that was."""
        if not self.stored:
            return
        wanted: dict[_Pair, list[int]] = {}
        for key, before in first.items():
            after = second.get(key)
            pairs = _pairs(before, after) if after else []
            if len(pairs) == 1 and self._differing(pairs[0]):
                wanted.setdefault(pairs[0], []).extend(one.judgement for one in before.parts)
        total = sum(len(judgements) * len(self._readings(pair)) for pair, judgements in wanted.items())
        read = itertools.count(1)
        for pair, judgements in wanted.items():
            self._scores[pair] = self._read_by(pair, judgements, lambda: progress(next(read) / total))

    def _read_by(self, pair: _Pair, judgements: list[int], one_read: Callable[[], None]) -> dict[str, Scores]:
        """Empty where scripts cannot be run here: then what they change cannot be told apart."""
        found: dict[str, Scores] = {}
        try:
            for cause, definition in self._readings(pair):
                scores: dict[int, float | None] = {}
                for pk, outcome in outcomes_by(definition, self.before, judgements):
                    scores[pk] = outcome.score
                    one_read()
                found[cause] = scores
        except SandboxError:
            return {}
        return found

    def _readings(self, pair: _Pair) -> list[tuple[str, MetricDefinition]]:
        before, after = self._of(pair)
        if not before.rules and not after.rules:
            return readings(before, after)
        by_rules = reparsed_definition(before, after) if "scripts" in self._differing(pair) else None
        return [("scripts", by_rules)] if by_rules else []

    def _differing(self, pair: _Pair) -> frozenset[str]:
        if pair not in self._settings:
            self._settings[pair] = changed_settings(*self._of(pair))
        return self._settings[pair]

    def _of(self, pair: _Pair) -> tuple[MetricDefinition, MetricDefinition]:
        before, after = (known[reading] for known, reading in zip(self.definitions, pair, strict=True))
        return before, after


def _pairs(before: Collected, after: Collected) -> list[_Pair]:
    if len(before.parts) == len(after.parts) == 1:
        return [(before.parts[0].reading, after.parts[0].reading)]
    return [(first, second) for first in before.readings for second in after.readings]


def _definitions(metric: int) -> dict[int | None, MetricDefinition]:
    """By which a run judged and read: its own, and later readings by their ids."""
    found: dict[int | None, MetricDefinition] = {
        None: MetricDefinition.from_json(RunMetric.objects.get(pk=metric).definition)
    }
    for pk, text in Reading.objects.filter(run_metric=metric).values_list("pk", "definition"):
        found[pk] = MetricDefinition.from_json(text)
    return found
