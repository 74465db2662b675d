"""A metric's judges against people, beside its editor: in the newest run whose answers both judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString

from judging.core.statistics.ranking import under
from judging.metrics.access import get_metric
from judging.metrics.models import Metric
from judging.people.access import hidden_among
from judging.people.models import Evaluation
from judging.records.models import IMPORTED, Run, RunMetric
from judging.reports import selectors
from judging.reports.disagreements import strongest
from judging.reports.figures import Figures, for_page
from judging.reports.labels import ValueFormat
from judging.reports.links import Links
from judging.reports.page.agreement_view import JudgeAndPeople, JudgeView, agreement_view

MOST_RUNS = 5
"""The newest runs that are looked through."""


@dataclass(frozen=True, slots=True)
class MetricPeople:
    """The run whose answers both judged, the `version` of the metric that it used, and its judges."""

    run: Run
    version: int
    judges: list[JudgeView]


@login_required
def metric_people(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """A fragment of the metric's editor; it says so while no people have rated answers that its judges scored."""
    of = get_metric(request, slug, metric)
    runs = list(runs_with_people(of)[:MOST_RUNS])
    hidden = {run.pk for run in hidden_among(request, runs)}
    shown = next(_against_people(of, (run for run in runs if run.pk not in hidden)), None)
    return render(request, "reports/_metric_people.html", {"shown": shown})


def runs_with_people(metric: Metric) -> QuerySet[Run]:
    """The project's runs with this metric whose answers people rated or may have rated, newest first."""
    used = RunMetric.objects.filter(run=OuterRef("pk"), metric_version__metric=metric)
    rated = Evaluation.objects.filter(about_run=OuterRef("pk"), run__deleted_at=None)
    runs = Run.objects.filter(Exists(used), Q(kind=IMPORTED) | Exists(rated), project=metric.project)
    return runs.filter(deleted_at=None).select_related("project").order_by("-pk")


def _against_people(metric: Metric, runs: Iterable[Run]) -> Iterator[MetricPeople]:
    for run in runs:
        stored = for_page(run)
        if stored is None:
            continue
        mine = (
            run.metrics.filter(metric_version__metric=metric)
            .select_related("metric_version")
            .order_by("number")
        )
        for run_metric in mine:
            judges = _judges(run, run_metric, stored.figures)
            if judges and run_metric.metric_version:
                yield MetricPeople(run, run_metric.metric_version.number, judges)


def _judges(run: Run, run_metric: RunMetric, figures: Figures) -> list[JudgeView]:
    name, links = run_metric.name, Links.of(run)
    agreements = [mine for mine in under(figures.report, "judges", name) if mine["against"] == "people"]
    if not agreements:
        return []
    metric = selectors.metrics_of(run)[run_metric.pk]
    values = ValueFormat.of(figures.kind(name), metric.low, metric.high)
    ratings = {
        judge: JudgeAndPeople(
            number=number,
            paired=paired,
            strongest=strongest(run, metric, judge, paired),
            chart=SafeString(),
            points=None,
            all=links.to_agreement(name, judge),
        )
        for number, (judge, paired) in enumerate(figures.paired.get(name, {}).items(), 1)
    }
    return [*agreement_view({"judges": agreements}, name, values, {}, links, ratings).judges]
