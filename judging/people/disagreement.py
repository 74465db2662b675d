"""Difference between a judge's and people's scores of the same answers: a filter and a column of lists."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection
from operator import neg

from django import forms
from django.core.cache import cache
from django.db.models import Avg, Q
from django.utils.translation import gettext_lazy as _

from judging.filters.conditions import by_response
from judging.filters.judgement_filter import FurtherFilter
from judging.filters.row_filters import id_subquery
from judging.people.access import rates_here
from judging.people.models import Evaluation
from judging.records.models import Judgement, JudgementQuerySet, Run, SourceKind
from judging.records.seal import unsealed
from judging.teamwork.marks import without_excluded

_CACHE_SECONDS = 600
_BY_PEOPLE = Q(source__kind__in=(SourceKind.RATER, SourceKind.ADJUDICATOR))


def differences(run: Run, least: float = 0, among: Collection[int] | None = None) -> dict[int, float]:
    """{judgement: absolute difference between its score and people's mean} of current judgements, if at least
    `least`; with `among` only of these answers. Excluded answers don't count."""
    if among is not None:
        return {pk: apart for pk, apart in _compute_differences(run, among).items() if apart >= least}
    ids, apart = _all_differences(run)
    count = bisect_right(apart, -least, key=neg)
    return dict(zip(ids[:count], apart[:count], strict=True))


def _all_differences(run: Run) -> tuple[array[int], array[float]]:
    """Ids and differences, largest first. Cached, because a page needs them several times and all ratings must be
    read."""
    key = f"differences:{run.pk}:{run.created_at.timestamp()}:{run.revision}"
    differences: tuple[array[int], array[float]] | None = cache.get(key)
    if differences is None:
        by_id = _compute_differences(run, None)
        ids = sorted(by_id, key=lambda pk: -by_id[pk])
        differences = array("q", ids), array("d", (by_id[pk] for pk in ids))
        cache.set(key, differences, _CACHE_SECONDS)
    return differences


def _compute_differences(run: Run, among: Collection[int] | None) -> dict[int, float]:
    people = _means_of_people(run, among)
    answers = id_subquery(sorted({response for _, response in people}))
    judged = _scored(run).filter(by_response(run), response__in=answers)
    if run.imported:
        judged = judged.exclude(_BY_PEOPLE)
    differences = {}
    parts = ("pk", "run_metric__name", "response", "score_in_force")
    for pk, metric, response, score in judged.values_list(*parts).iterator():
        mean = people.get((metric, response))
        if mean is not None:
            differences[pk] = abs(score - mean)
    return differences


def _scored(run: Run) -> JudgementQuerySet:
    scored = Judgement.objects.filter(
        run=run, current=True, score_in_force__isnull=False, other_response=None
    )
    return unsealed(run, without_excluded(run, scored))


def _means_of_people(run: Run, among: Collection[int] | None) -> dict[tuple[str, int], float]:
    """{(criterion, answer): people's mean}, from the evaluations of the run's answers, or from an imported run's
    raters."""
    runs = [run] if run.imported else [evaluation.run for evaluation in run.evaluations.select_related("run")]
    means: dict[tuple[str, int], float] = {}
    for source in runs:
        judgements = _scored(source).filter(_BY_PEOPLE) if run.imported else _scored(source)
        if among is not None:
            judgements = judgements.filter(by_response(source), response__in=id_subquery(sorted(among)))
        by_answer = judgements.order_by().values_list("run_metric__name", "response")
        for metric, response, mean in by_answer.annotate(mean=Avg("score_in_force")):
            means[metric, response] = mean
    return means


DISAGREEMENT = FurtherFilter(
    name="differs",
    label=_("Judge and people apart by at least"),
    field=lambda run: forms.FloatField(min_value=0),
    condition=lambda run, value: Q(pk__in=id_subquery(list(differences(run, float(value))))),
    offered=lambda run: run.imported or Evaluation.objects.filter(about_run=run).exists(),
    hidden=rates_here,
)
