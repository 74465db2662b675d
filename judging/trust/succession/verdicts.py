"""The verdicts of two judges on the same stored answers, matched by the answers themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from datasets.core.kinds import BOTH_BAD, CATEGORY, COMPARISON_CODES, PASS_FAIL, turned
from judging.core.metric_definition import MetricDefinition
from judging.core.pairs import share_of_a
from judging.core.statistics.succession import BothVerdicts, Margins, Measure, succession
from judging.core.values import SCORED, UNSETTLED, value_of
from judging.records.models import Judgement, Run, RunMetric
from judging.reports.selectors import clusters_of
from judging.teamwork.marks import without_excluded

Key = tuple[int, int | None]
"""Ids of the answers: one, or two that were compared."""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A judge's own verdict, without overrides. `value`: as stored, '' if two orders disagree; `score`: its number."""

    judgement: int
    line: int
    candidate: str
    other: str
    value: str
    score: float | None


def measure_of(definition: MetricDefinition) -> Measure:
    """How the verdicts of a metric move."""
    if definition.compares_candidates or definition.gives == PASS_FAIL:
        return "rate"
    return "label" if definition.gives == CATEGORY else "score"


def width_of(definition: MetricDefinition) -> float | None:
    """The width of a metric's scale; None without one."""
    if definition.gives == "checklist":
        return 1.0
    if definition.compares_reference:
        return 4.0
    return definition.max_score - definition.min_score if definition.scale_declared else None


def verdicts_in(run_metric: RunMetric) -> dict[Key, StoredVerdict]:
    """The judges' verdicts in a run; without those that people excluded from figures."""
    judgements = Judgement.objects.filter(
        run=run_metric.run_id, run_metric=run_metric, current=True, state__in=(SCORED, UNSETTLED)
    )
    names = ("pk", "response_id", "other_response_id", "row__line", "candidate__name", "value", "score")
    rows = without_excluded(run_metric.run, judgements).values_list(*names, "other_response__candidate__name")
    return {
        (response, other): StoredVerdict(pk, line, name, against or "", value or "", score)
        for pk, response, other, line, name, value, score, against in rows.iterator()
    }


def matched(old: RunMetric, new: RunMetric) -> Iterator[tuple[StoredVerdict, StoredVerdict]]:
    """Old and new verdict of each answer that has both, by row."""
    before, after = verdicts_in(old), verdicts_in(new)
    shared = [(before[key], after[key]) for key in before.keys() & after.keys()]
    return iter(sorted(shared, key=lambda pair: (pair[0].line, pair[0].judgement)))


def succession_document(old: RunMetric, new: RunMetric, margin: float) -> dict[str, object]:
    """The document of core.statistics.succession over both runs."""
    definition = MetricDefinition.from_json(old.definition)
    measure = measure_of(definition)
    candidates = _by_candidate(old.run, definition, matched(old, new))
    return succession(candidates, measure, width_of(definition), Margins.with_share(measure, margin))


def _by_candidate(
    run: Run, definition: MetricDefinition, pairs: Iterator[tuple[StoredVerdict, StoredVerdict]]
) -> dict[str, BothVerdicts]:
    labels = {label.label: float(code) for code, label in enumerate(definition.labels)}
    collected: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for old, new in pairs:
        for name, is_b in ((old.candidate, False), (old.other, True)):
            if not name:
                continue
            values = [_number(definition, each, labels, is_b=is_b) for each in (old, new)]
            if values[0] is not None and values[1] is not None:
                collected[name].append((old.line, values[0], values[1]))
    clusters = clusters_of(run)
    codes: dict[object, int] = {}
    return {name: _both(rows, clusters, codes) for name, rows in sorted(collected.items())}


def _both(
    rows: list[tuple[int, float, float]], clusters: dict[int, str], codes: dict[object, int]
) -> BothVerdicts:
    lines, old, new = zip(*rows, strict=True)
    units = [codes.setdefault(clusters.get(line) or line, len(codes)) for line in lines]
    return BothVerdicts(
        np.asarray(old, np.float64),
        np.asarray(new, np.float64),
        np.asarray(lines, np.int64),
        np.asarray(units, np.int64),
    )


def _number(
    definition: MetricDefinition, verdict: StoredVerdict, labels: dict[str, float], *, is_b: bool
) -> float | None:
    """A verdict as a number: what a comparison counts in the win rate, a label's code, else its score."""
    if not definition.compares_candidates:
        if definition.gives != CATEGORY:
            return verdict.score
        label = value_of(verdict.value)
        return labels.get(label) if isinstance(label, str) else None
    value = value_of(verdict.value) if verdict.value else None
    if value is None:
        return 0.5
    if value not in (*COMPARISON_CODES, BOTH_BAD):
        return None
    return share_of_a(str(turned(value) if is_b else value))
