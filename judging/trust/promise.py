"""What a test will be worth, and what it costs, before anybody rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from datasets.core.kinds import CHECKLIST
from judging.core.licensing import judged_as
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.licence import FEWEST_TEST_ROWS, UNMEASURED_SECONDS, Judged, Prospect, prospect
from judging.core.statistics.uses import USES, Thresholds, Use
from judging.engine.rubric_rows import mean_criteria
from judging.metrics.models import Metric
from judging.people.progress import pace_of
from judging.trust.answers import Ceiling, ceiling_of
from judging.trust.drawing import RowCounts
from judging.trust.labelled import labels_for
from judging.trust.services import thresholds_of
from judging.trust.sources import FailureRate, Source, failure_rate

ASSUMED = 0.1
"""The share of failures where there is nothing to go by."""
MOST_COUNTED = 1500
"""Items beyond which the chance of a gate hardly changes."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a test of `rows` rows buys, of `most` that it could have. `items`: its answers; `rated`: those that people
    rate, without the `looked_at` rows, which have labels; `seconds`: of rating all of them; `prospect`: None where
    kappa decides, of single `criteria` for checklists; `unreachable`: uses above what people reach."""

    judged: Judged
    rows: int
    most: int
    items: int
    rated: int
    looked_at: int
    seconds: float
    measured: bool
    failing: float
    rate: FailureRate | None
    prospect: Prospect | None
    chances: Sequence[float]
    proposed_rows: int | None
    criteria: bool
    ceiling: Ceiling | None
    unreachable: Sequence[Use]
    enough: bool
    thresholds: Thresholds


def promise_of(
    metric: Metric,
    definition: MetricDefinition,
    source: Source,
    counts: RowCounts,
    overlap: int = 1,
) -> Promise:
    """What a draw of so many rows from the source buys."""
    rows, each = counts.test, source.answers_per_row
    each = each * (each - 1) // 2 if definition.compares_candidates else each
    rate, judged = failure_rate(metric), judged_as(definition.kind)
    failing = rate.share if rate else ASSUMED
    thresholds, pace = thresholds_of(metric.project), pace_of(metric.project)
    checklist = definition.kind == CHECKLIST
    verdicts = each * mean_criteria(source.version) if checklist else float(each)
    counted = min(round(rows * verdicts), MOST_COUNTED)
    expected = prospect(counted, failing, thresholds) if judged == "passes" else None
    ceiling = None if checklist else people_of(metric, definition, source)
    rated = counts.rated * each * overlap
    return Promise(
        judged=judged,
        rows=rows,
        most=counts.most,
        items=rows * each,
        rated=rated,
        looked_at=counts.looked_at,
        seconds=rated * (pace or UNMEASURED_SECONDS),
        measured=pace is not None,
        failing=failing,
        rate=rate,
        prospect=expected,
        chances=list(expected.chances.values()) if expected else (),
        proposed_rows=math.ceil(expected.proposed / verdicts) if expected and expected.proposed else None,
        criteria=checklist,
        ceiling=ceiling,
        unreachable=unreachable(ceiling, judged, thresholds),
        enough=rows >= FEWEST_TEST_ROWS,
        thresholds=thresholds,
    )


def people_of(metric: Metric, definition: MetricDefinition, source: Source) -> Ceiling | None:
    """How well people agree on what the metric gives, on the first rows with labels of several raters."""
    several = next((each for each in labels_for(metric, definition, source) if each.several), None)
    if several is None:
        return None
    return ceiling_of(several.run_metric.run, several.run_metric.name, sorted(several.lines)[:MOST_COUNTED])


def unreachable(ceiling: Ceiling | None, judged: Judged, thresholds: Thresholds) -> list[Use]:
    """The uses whose threshold lies above people's agreement with each other. Of pass and fail the lower of both rates
    is at most the share on which they agree."""
    if ceiling is None:
        return []
    reached = ceiling.exact if judged == "passes" else ceiling.kappa
    if reached is None:
        return []
    needed = thresholds.rate if judged == "passes" else thresholds.kappa
    return [use for use in USES if needed(use) > reached]
