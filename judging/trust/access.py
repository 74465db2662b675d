"""Access to the splits, tests and licences of a project's metrics. Views must load them through here."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.people.access import rates_here
from judging.records.models import Run, RunMetric
from judging.trust.dev import run_metrics_of
from judging.trust.models import Licence, SealedTest

READ, ACT, MANAGE = May.READ_JUDGEMENTS, May.RUN, May.MANAGE
"""To read judges and licences; to draw, close and open a test; to set a date and to lift a suspension."""


def get_judge(request: HttpRequest, slug: str, metric: int, may: May = READ) -> Metric:
    """A metric of the project. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    return get_object_or_404(Metric.objects.select_related("project"), project=project, pk=metric)


def get_test(request: HttpRequest, slug: str, pk: int, may: May = READ) -> SealedTest:
    """A test of a metric of the project, by the number of its split. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    tests = SealedTest.objects.select_related(
        "split__metric__project", "split__dataset", "version__dataset", "evaluation__run", "imported"
    )
    tests = tests.filter(split__metric__project=project, split__dataset__deleted_at=None)
    return get_object_or_404(tests, split=pk)


def get_licence(request: HttpRequest, slug: str, pk: int, may: May = READ) -> Licence:
    """A licence of a metric of the project. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    licences = Licence.objects.select_related(
        "metric_version__metric__project", "opening__run", "opening__test", "opened_by"
    )
    return get_object_or_404(licences, metric_version__metric__project=project, pk=pk)


def get_judged(
    request: HttpRequest, slug: str, pk: int, run_metric: int, may: May = READ
) -> tuple[SealedTest, RunMetric]:
    """A test by its split, and the newest run of a version of its metric on its data set, or that which the test is
    opened with. Raises Http404 or PermissionDenied."""
    test = get_test(request, slug, pk, may)
    metric, split = test.split.metric, test.split
    used = run_metrics_of(metric, split) + run_metrics_of(metric, split, fullest=True)
    chosen = next((each for each in used if each.pk == run_metric), None)
    if chosen is None:
        raise Http404
    chosen.run.project = test.split.metric.project
    return test, chosen


def rated_by(request: HttpRequest, test: SealedTest) -> Run | None:
    """The evaluation in which the user still rates answers of the test's split, so that labels and verdicts are hidden
    from them; None if there is none."""
    return next((each.run for each in test.evaluations if rates_here(request, each.run)), None)


def is_program(test: SealedTest) -> bool:
    """Whether the metric is a rule program, whose editor has no prompt."""
    return bool(MetricDefinition.from_json(newest_version(test.split.metric).definition).rules)
