"""Access to runs and their judgements with permission checks. Views must load them through here."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from judging.records.models import Judgement, Run, RunMetric
from judging.records.seal import is_sealed


def get_run(request: HttpRequest, slug: str, pk: int, may: May = May.READ_JUDGEMENTS) -> Run:
    """Return a run of the project `slug`. Raises Http404 or PermissionDenied.

    Runs not judged by workers (human evaluations, imported results) are not found for May.RUN.
    """
    project = access.get_project(request, slug, may)
    runs = Run.objects.by_workers() if may == May.RUN else Run.objects.all()
    run = get_object_or_404(runs.select_related("version__dataset", "created_by"), project=project, pk=pk)
    run.project = project
    return access.loaded(request, run)


def get_judgement(
    request: HttpRequest, slug: str, run_pk: int, pk: int, may: May = May.READ_JUDGEMENTS
) -> Judgement:
    """Return a judgement with its row, response, candidate and metric. Raises Http404, also for a label of a test that
    is sealed, or PermissionDenied."""
    run = get_run(request, slug, run_pk, may)
    parts = ("row", "response", "candidate", "run_metric", "reading", "source")
    judgement = get_object_or_404(Judgement.objects.select_related(*parts), run=run, pk=pk)
    judgement.run = run
    if is_sealed(judgement):
        raise Http404
    return judgement


def get_run_metric(request: HttpRequest, slug: str, run_pk: int, pk: int, may: May) -> RunMetric:
    """Return a run's frozen copy of a metric. Raises Http404 or PermissionDenied."""
    run = get_run(request, slug, run_pk, may)
    run_metric = get_object_or_404(RunMetric.objects.select_related("metric_version"), run=run, pk=pk)
    run_metric.run = run
    return run_metric
