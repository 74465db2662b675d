"""Fire drills of judges: the list, the form that begins one, its figures, and its planted answers."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRefresh

from evalsite import access
from evalsite.access import signed_in
from evalsite.accounts.models import Project
from evalsite.tasks import jobs
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from evalsite.web.paging import paged
from judging.core.statistics.drill import DEFECTS, HARMFUL
from judging.records.models import Run, RunState
from judging.runs.selectors import worker_missing
from judging.trust.access import ACT, READ
from judging.trust.drill_pages.forms import DrillForm
from judging.trust.drill_pages.models import Drill
from judging.trust.drill_pages.page import (
    NAMES,
    defect_lines,
    flags_of,
    language_name,
    planted_items,
    shown_items,
)
from judging.trust.drill_pages.selectors import drillable_versions, drills_of
from judging.trust.drill_pages.services import JOB, drill_begin
from judging.trust.drill_pages.sources import drill_cost, drill_sources, source_of_run

PER_PAGE = 10
MOVED = ("lower", "higher", "equal", "none")


def get_drill(request: HttpRequest, slug: str, pk: int) -> Drill:
    """A drill of the project. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, READ)
    drills = Drill.objects.select_related(
        "project", "metric_version__metric", "version__dataset", "run__version", "created_by"
    )
    return get_object_or_404(drills, project=project, pk=pk)


@login_required
@require_GET
def drills(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's drills, newest first."""
    project = access.get_project(request, slug, READ)
    return render(request, "trust/drill/list.html", {"drills": drills_of(project)})


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form that begins a drill, with what it costs; a POST begins it. In the query: `metric`, a version of a
    metric, and `run`, whose answers and metric are offered."""
    project = access.get_project(request, slug, ACT)
    form = _form(request, project)
    if form is None:
        return render(request, "trust/drill/new.html", {"form": None})
    valid = form.is_valid()
    version, source, rows = form.chosen()
    cost, estimate = drill_cost(version, source, rows)
    context: dict[str, Any] = {"form": form, "cost": cost, "estimate": estimate, "source": source}
    if part_wanted(request) and "part" in request.GET:
        return render(request, "trust/drill/_cost.html", context)
    if request.method == "POST" and valid:
        try:
            sent = {name: form.cleaned_data[name] for name in ("rows", "model", "seed")}
            drill = drill_begin(metric_version=version, source=source, user=signed_in(request), **sent)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("trust:drill", slug, drill.pk)
    return render(request, "trust/drill/new.html", context, status=422 if request.method == "POST" else 200)


def _form(request: HttpRequest, project: Project) -> DrillForm | None:
    """None if there is no judge, or no answer, to drill with."""
    run = Run.objects.filter(project=project, pk=whole(request.GET.get("run", "")) or 0).first()
    used = run.metrics.exclude(metric_version=None).order_by("number") if run else ()
    asked = whole(request.GET.get("metric", "")) or next((each.metric_version_id for each in used), None)
    versions, sources = drillable_versions(project, asked), drill_sources(project)
    if run is not None and run.by_workers:
        own = source_of_run(run)
        sources = [own, *(source for source in sources if source.code != own.code)]
    if not versions or not sources:
        return None
    data = request.POST if request.method == "POST" else request.GET if "part" in request.GET else None
    initial = {"metric": asked, "source": sources[0].code}
    return DrillForm(data, versions=versions, sources=sources, initial=initial)


@login_required
@require_GET
def drill(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A drill's flags and figures; until it has finished, how far it is."""
    row = get_drill(request, slug, pk)
    stage = "computed" if row.finished_at else row.run.state if row.run else "preparing"
    if part_wanted(request) and request.GET.get("seen", stage) != stage:
        return HttpResponseClientRefresh()  # the head changes, too
    job = jobs.of(JOB, row.pk)
    context = {
        "drill": row,
        "stage": stage,
        "metric": row.metric_version.metric,
        "flags": flags_of(row.document),
        "lines": defect_lines(row.document),
        "waits": not row.finished_at and (row.run is None or row.run.state == RunState.FINISHED),
        "job": job,
        "obstacle": jobs.obstacle(job) if job else "",
        "worker_missing": worker_missing(row.run) if row.run else "",
    }
    return render(request, "trust/drill/detail.html", context)


@login_required
@require_GET
def items(request: HttpRequest, slug: str, pk: int, defect: str) -> HttpResponse:
    """Every answer with a planted defect beside the untouched one; `moved` and `language` select some."""
    row = get_drill(request, slug, pk)
    if defect not in DEFECTS or row.run is None or row.run.deleted_at is not None:
        raise Http404
    every = planted_items(row, row.run, defect)
    moved, language = request.GET.get("moved", ""), request.GET.get("language", "")
    selected = [
        item
        for item in every
        if (moved not in MOVED or item.moved == moved) and (not language or item.language == language)
    ]
    page, pager = paged(request.GET, selected, PER_PAGE)
    context = {
        "drill": row,
        "metric": row.metric_version.metric,
        "defect": defect,
        "title": NAMES[defect],
        "harmful": defect in HARMFUL,
        "items": shown_items(row, row.run, page),
        "pager": pager,
        "moved": moved,
        "chosen_language": language,  # base.html sets `language`
        "moves": [("", _("All")), *_moves()],
        "languages": [(code, language_name(code)) for code in sorted({item.language for item in every})],
    }
    return render(request, "trust/drill/items.html", context)


def _moves() -> list[tuple[str, str]]:
    return [
        ("lower", _("Lower")),
        ("higher", _("Higher")),
        ("equal", _("Equal")),
        ("none", _("Cannot move, or no verdict")),
    ]
