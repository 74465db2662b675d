"""Successions of judges: the list, the form that begins one, and what the new judge changes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRefresh

from evalsite import access
from evalsite.access import signed_in
from evalsite.tasks import jobs
from evalsite.web.headers import part_wanted
from evalsite.web.paging import paged
from judging.core.metric_definition import MetricDefinition
from judging.people.access import rates_here
from judging.records.access import get_run
from judging.records.models import RunMetric, RunState
from judging.runs.selectors import worker_missing
from judging.trust.access import ACT, READ
from judging.trust.succession.forms import MarginForm, SuccessionForm
from judging.trust.succession.models import Succession
from judging.trust.succession.page import candidate_lines, decision_sentence, turned_items
from judging.trust.succession.services import (
    JOB,
    answers_of,
    basis_of,
    margin_change,
    refuse_no_succession,
    succession_begin,
    succession_cost,
    successor,
)
from judging.trust.succession.verdicts import measure_of

LISTED = 50
PER_PAGE = 20


def get_succession(request: HttpRequest, slug: str, pk: int, may: access.May = READ) -> Succession:
    """A succession of the project. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    parts = ("project", "metric_version__metric", "old__run__version", "run__version", "created_by")
    return get_object_or_404(Succession.objects.select_related(*parts), project=project, pk=pk)


@login_required
@require_GET
def successions(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's successions, newest first."""
    project = access.get_project(request, slug, READ)
    rows = Succession.objects.filter(project=project).select_related("metric_version__metric", "created_by")
    return render(request, "trust/succession/list.html", {"successions": rows.order_by("-pk")[:LISTED]})


@login_required
def new(request: HttpRequest, slug: str, run: int, number: int) -> HttpResponse:
    """The form for another judge of a run's metric, with what it costs; a POST begins the succession."""
    old = _old(request, slug, run, number)
    project = old.run.project
    if rates_here(request, old.run):
        return render(request, "reports/hidden.html", {"run": old.run})
    context: dict[str, Any] = {"old": old, "run": old.run, "problem": ""}
    try:
        refuse_no_succession(old)
    except ValidationError as error:
        return render(request, "trust/succession/new.html", context | {"problem": error.messages[0]})
    definition = MetricDefinition.from_json(old.definition)
    sent = request.POST if request.method == "POST" else request.GET if "part" in request.GET else None
    form = SuccessionForm(sent, project=project, definition=definition, measure=measure_of(definition))
    endpoints, answers = form.endpoints(), answers_of(old)
    cost, estimate = succession_cost(old, successor(old, endpoints), answers)
    context |= {"form": form, "endpoints": endpoints, "answers": answers, "cost": cost, "estimate": estimate}
    if part_wanted(request) and "part" in request.GET:
        return render(request, "trust/succession/_cost.html", context)
    if request.method == "POST" and form.is_valid():
        try:
            row = succession_begin(old=old, endpoints=endpoints, margin=form.share, user=signed_in(request))
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("trust:succession", slug, row.pk)
    return render(
        request, "trust/succession/new.html", context, status=422 if request.method == "POST" else 200
    )


def _old(request: HttpRequest, slug: str, run: int, number: int) -> RunMetric:
    access.get_project(request, slug, ACT)
    row = get_run(request, slug, run)
    metrics = row.metrics.select_related("metric_version__metric")
    metric = get_object_or_404(metrics, number=number)
    metric.run = row
    return metric


@login_required
@require_GET
def succession(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What the new judge changes; until its run has finished, how far it is."""
    row = get_succession(request, slug, pk)
    old, run = row.old, row.run
    if old is not None and rates_here(request, _of_project(row, old)):
        return render(request, "reports/hidden.html", {"run": old.run})
    stage = "computed" if row.finished_at else run.state if run else "gone"
    if part_wanted(request) and request.GET.get("seen", stage) != stage:
        return HttpResponseClientRefresh()  # the head changes, too
    if old and run and run.state == RunState.FINISHED and row.computed_from != basis_of(row):
        jobs.request(JOB, row.pk)
    definition = MetricDefinition.from_json(row.metric_version.definition)
    only = request.GET.get("candidate", "")
    only = only if only in row.document.get("candidates", {}) else ""
    items = list(turned_items(row, old, run.metrics.get(), only)) if row.document and old and run else []
    page, pager = paged(request.GET, items, PER_PAGE)
    context = {
        "succession": row,
        "metric": row.metric_version.metric,
        "old": old,
        "run": run,
        "stage": stage,
        "outdated": bool(row.document) and row.computed_from != basis_of(row) and old and run,
        "sentence": decision_sentence(row.document),
        "lines": candidate_lines(definition, row.document),
        "only": only,
        "items": page,
        "pager": pager,
        "form": MarginForm(measure=measure_of(definition), now=row.margin),
        "worker_missing": worker_missing(run) if run else "",
    }
    return render(request, "trust/succession/detail.html", context)


def _of_project(row: Succession, old: RunMetric) -> Any:
    old.run.project = row.project
    return old.run


@login_required
@require_POST
def margin(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Decide with another margin."""
    row = get_succession(request, slug, pk, ACT)
    if row.old is None or row.run is None:
        raise Http404
    definition = MetricDefinition.from_json(row.metric_version.definition)
    form = MarginForm(request.POST, measure=measure_of(definition))
    if form.is_valid():
        margin_change(succession=row, margin=form.share, user=signed_in(request))
        messages.success(request, _("Saved. The figures are being computed again."))
    else:
        messages.error(request, _("The margin must be a number from 0.1 to 50."))
    return redirect("trust:succession", slug, pk)
