"""Verdicts of people that are there already: a criterion of an evaluation, or a metric among imported verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from datasets.core.kinds import CATEGORY, SCORE
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import Criterion
from judging.metrics.models import Metric
from judging.people.models import Evaluation, Item
from judging.records.models import IMPORTED, PEOPLE, JudgementQuerySet, JudgementState, RunMetric
from judging.records.seal import BY_PEOPLE
from judging.trust.sources import AnswerSource

SEARCHED = 200
"""Criteria, the newest, among which those are searched whose labels a test can take."""


class PeoplesScale(NamedTuple):
    """What people's verdicts are. `ends`: None where they were not declared."""

    gives: str
    compares: bool = False
    ends: tuple[float, float] | None = (1, 10)
    labels: tuple[str, ...] = ()


def scale_of_people(run_metric: RunMetric) -> PeoplesScale:
    """That of a criterion, or of a metric among imported verdicts."""
    if run_metric.run.imported:
        metric = MetricDefinition.from_json(run_metric.definition)
        ends = (metric.min_score, metric.max_score) if metric.scale_declared else None
        return PeoplesScale(metric.kind, metric.compares_candidates, ends, metric.label_names)
    criterion = Criterion.from_json(run_metric.definition)
    ends = (criterion.min_score, criterion.max_score)
    return PeoplesScale(criterion.gives, criterion.compares, ends, criterion.categories)


def peoples_verdicts(run_metric: RunMetric) -> JudgementQuerySet:
    """The current ones, also those that are sealed."""
    judgements = run_metric.run.judgements.filter(
        run_metric=run_metric, current=True, state=JudgementState.SCORED
    )
    return judgements.filter(source__kind__in=BY_PEOPLE) if run_metric.run.imported else judgements


@dataclass(frozen=True)
class Labels:
    """Labels that a test can be drawn from. `evaluation`: in which people gave them; None: they were imported."""

    run_metric: RunMetric
    evaluation: Evaluation | None

    @cached_property
    def lines(self) -> frozenset[int]:
        """The lines of the rows with labels."""
        rated = peoples_verdicts(self.run_metric).order_by()
        return frozenset(rated.values_list("row__line", flat=True).distinct())

    @property
    def several(self) -> bool:
        """Whether an answer has several raters."""
        if self.evaluation is not None:
            return self.evaluation.overlap > 1
        return self.run_metric.run.verdict_sources.filter(kind__in=BY_PEOPLE).count() > 1

    @property
    def final(self) -> bool:
        """Whether no more ratings can come."""
        return self.evaluation is None or self.evaluation.closed_at is not None


def labels_for(metric: Metric, definition: MetricDefinition, source: AnswerSource) -> list[Labels]:
    """Evenly drawn labels on the source's version that are what the metric gives: those under its name first, then the
    newest."""
    rated = RunMetric.objects.filter(run__project=metric.project, run__kind__in=(PEOPLE, IMPORTED))
    rated = rated.filter(run__version=source.version, run__archived_at=None, run__deleted_at=None)
    rated = rated.select_related("run").order_by("-run", "number")[:SEARCHED]
    fitting = [each for each in rated if _fits(definition, scale_of_people(each))]
    return sorted(_even(fitting), key=lambda labels: labels.run_metric.name != metric.name)


def _fits(definition: MetricDefinition, people: PeoplesScale) -> bool:
    if people.gives != definition.kind:
        return False
    if definition.kind == CATEGORY:
        return set(people.labels) <= set(definition.label_names)
    ends = (definition.min_score, definition.max_score)
    return definition.kind != SCORE or people.ends is None or people.ends == ends


def _even(run_metrics: Sequence[RunMetric]) -> Iterable[Labels]:
    evaluations = {
        each.run_id: each
        for each in Evaluation.objects.filter(run__in={run_metric.run_id for run_metric in run_metrics})
    }
    for run_metric in run_metrics:
        evaluation = evaluations.get(run_metric.run_id)
        if _is_even(run_metric, evaluation) and peoples_verdicts(run_metric).exists():
            yield Labels(run_metric, evaluation)


def _is_even(run_metric: RunMetric, evaluation: Evaluation | None) -> bool:
    if evaluation is not None:
        return not evaluation.stratify_by and drawn_evenly(evaluation)
    chances = peoples_verdicts(run_metric).order_by().values_list("drawn_with", flat=True)
    return len(chances.distinct()[:2]) < 2


def drawn_evenly(evaluation: Evaluation) -> bool:
    """Whether each of its items was drawn at random with the same probability."""
    items = Item.objects.filter(evaluation=evaluation, gold="", repeat_of=None)
    chances = list(items.order_by().values_list("drawn_with", flat=True).distinct()[:2])
    return len(chances) == 1 and chances[0] is not None
