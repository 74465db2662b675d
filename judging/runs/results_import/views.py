"""Views of the results import: upload, check report and confirmation."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets.selectors import usable_versions
from datasets.uploads import limit_bytes, too_large_sentence
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.tasks import workers
from evalsite.web.request_limits import allow, upload_page
from judging.core.results_file.records import RefusedLine
from judging.runs.results_import.forms import ResultsForm
from judging.runs.results_import.messages import (
    KINDS,
    file_problem,
    refused_sentence,
    source_label,
)
from judging.runs.results_import.models import ResultsImport, ResultsImportState
from judging.runs.results_import.services import import_begin, import_confirm, import_discard

_EARLIER, _NAMES, _LINES = 20, 30, 200  # maximum numbers shown


@upload_page
@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """The upload form and earlier imports."""
    project = access.get_project(request, slug, May.RUN)
    allow(request, limit_bytes(), too_large_sentence())
    return _new(request, project)


@csrf_protect
def _new(request: HttpRequest, project: Project) -> HttpResponse:
    versions = usable_versions(project)
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    initial = {"version": request.GET.get("version", "")}
    form = ResultsForm(*sent, project=project, versions=versions, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            taken = _begin(request, form)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("runs:results_import", project.slug, taken.pk)
    earlier = ResultsImport.objects.filter(project=project).select_related("run", "created_by")
    context = {
        "form": form,
        "versions": versions,
        "limit": limit_bytes(),
        "earlier": earlier.order_by("-pk")[:_EARLIER],
    }
    return render(request, "results_import/new.html", context, status=422 if form.errors else 200)


def _begin(request: HttpRequest, form: ResultsForm) -> ResultsImport:
    sent = form.cleaned_data
    file = sent["file"]
    return import_begin(
        version=sent["version"],
        name=sent["name"],
        file=file,
        file_name=file.name or "",
        by=access.signed_in(request),
    )


@login_required
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """An import's progress, check report and result. The page polls every second while it is in progress."""
    taken = _get(request, slug, pk)
    polled = bool(request.htmx) and "seen" in request.GET  # type: ignore[attr-defined]
    if polled and request.GET["seen"] != taken.state:
        return HttpResponseClientRefresh()
    if taken.state == ResultsImportState.DONE and taken.run and not taken.refused and not polled:
        return redirect("runs:detail", slug, taken.run.pk)
    obstacle = workers.obstacle(workers.DATA) if taken.under_way and not taken.owner else ""
    context: dict[str, Any] = {"taken": taken, "obstacle": obstacle}
    if polled:
        return render(request, "results_import/_progress.html", context)
    return render(request, "results_import/detail.html", context | _report(taken))


def _report(taken: ResultsImport) -> dict[str, Any]:
    refused = [RefusedLine(line, code, params) for line, code, params in taken.listed]
    return {
        "why": file_problem(taken.problem, taken.problem_params),
        "codes": _codes(taken, refused),
        "lines": [(one.line, refused_sentence(one)) for one in refused[:_LINES]],
        "metrics": [
            (name, one["kind"], KINDS[one["kind"]], one["scale"], one["verdicts"])
            for name, one in taken.metrics.items()
        ],
        "sources": [(source_label(kind, name), kind, count) for kind, name, count in taken.sources[:_NAMES]],
        "models": list(taken.models_found.items())[:_NAMES],
        "people": sum(count for kind, _name, count in taken.sources if kind in ("rater", "adjudicator")),
    }


def _codes(
    taken: ResultsImport, refused: list[RefusedLine]
) -> list[tuple[str, int, RefusedLine | None, str]]:
    """(code, number of lines, first line, its message) for each code; the line is None if it was not stored."""
    first = {one.code: one for one in reversed(refused)}
    found = []
    for code, count in sorted(taken.codes.items(), key=lambda one: -one[1]):
        one = first.get(code)
        found.append((code, count, one, refused_sentence(one) if one else ""))
    return found


@login_required
@require_POST
def confirm(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Import the accepted lines."""
    import_confirm(_get(request, slug, pk))
    return redirect("runs:results_import", slug, pk)


@login_required
@require_POST
def discard(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Delete the file without importing it."""
    if import_discard(_get(request, slug, pk)):
        return redirect("runs:import_results", slug)
    return redirect("runs:results_import", slug, pk)


def _get(request: HttpRequest, slug: str, pk: int) -> ResultsImport:
    project = access.get_project(request, slug, May.RUN)
    joined = ("version__dataset", "run", "created_by")
    return get_object_or_404(ResultsImport.objects.select_related(*joined).filter(project=project), pk=pk)
