"""Access to runs and their judgements with permission checks. Views must load them through here."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from evalsite import access
from evalsite.access import May
from judging.runs.models import Judgement, Run, RunMetric


def get_run(request: HttpRequest, slug: str, pk: int, may: May = May.READ_JUDGEMENTS) -> Run:
    """Return a run of the project `slug`. Raises Http404 or PermissionDenied.

    Runs not judged by workers (human evaluations, imported results) are not found for May.RUN.
    """
    project = access.get_project(request, slug, may)
    run = Run.objects.select_related("version__dataset", "created_by").filter(project=project, pk=pk).first()
    if run is None or (not run.by_workers and may == May.RUN):
        raise Http404
    run.project = project
    return run


def get_judgement(
    request: HttpRequest, slug: str, run_pk: int, pk: int, may: May = May.READ_JUDGEMENTS
) -> Judgement:
    """Return a judgement with its row, response, candidate and metric. Raises Http404 or PermissionDenied."""
    run = get_run(request, slug, run_pk, may)
    parts = ("row", "response", "candidate", "run_metric", "reading", "source")
    judgement = Judgement.objects.select_related(*parts).filter(run=run, pk=pk).first()
    if judgement is None:
        raise Http404
    judgement.run = run
    return judgement


def get_run_metric(request: HttpRequest, slug: str, run_pk: int, pk: int, may: May) -> RunMetric:
    """Return a run's frozen copy of a metric. Raises Http404 or PermissionDenied."""
    run = get_run(request, slug, run_pk, may)
    found = RunMetric.objects.select_related("metric_version").filter(run=run, pk=pk).first()
    if found is None:
        raise Http404
    found.run = run
    return found
