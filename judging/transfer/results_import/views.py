"""Views of the results import: upload, check report and confirmation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets.messages import translated
from datasets.selectors import usable_versions
from datasets.uploads import limit_bytes, too_large_sentence
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.tasks import jobs
from evalsite.web.headers import part_wanted
from evalsite.web.request_limits import allow, upload_page
from judging.core.results_file.records import VALUE_KINDS, RefusedLine
from judging.messages import refused_sentence, source_label
from judging.transfer.results_import.access import get_results_import, imports_of
from judging.transfer.results_import.forms import ResultsPageForm
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.transfer.results_import.services import (
    JOB,
    file_problem,
    import_begin,
    import_confirm,
    import_discard,
)

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
    sent = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    chosen = request.GET.get("version", "")
    form = ResultsPageForm(*sent, project=project, versions=versions, version=chosen)
    if form.is_bound and form.is_valid():
        try:
            file_name, by = form.cleaned_data["file"].name or "", access.signed_in(request)
            results_import = import_begin(**form.cleaned_data, file_name=file_name, by=by)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("runs:results_import", project.slug, results_import.pk)
    earlier = imports_of(project).select_related("run", "created_by")
    context = {
        "form": form,
        "versions": versions,
        "limit": limit_bytes(),
        "earlier": earlier.order_by("-pk")[:_EARLIER],
    }
    return render(request, "results_import/new.html", context, status=422 if form.errors else 200)


@login_required
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """An import's progress, check report and result. The page polls every second while it is in progress."""
    results_import = get_results_import(request, slug, pk)
    polled = part_wanted(request) and "seen" in request.GET
    if polled and request.GET["seen"] != results_import.state:
        return HttpResponseClientRefresh()
    if (
        results_import.state == ResultsImportState.DONE
        and results_import.run
        and not results_import.refused
        and not polled
    ):
        return redirect("runs:detail", slug, results_import.run.pk)
    obstacle = jobs.obstacle(jobs.of(JOB, results_import.pk)) if results_import.under_way else ""
    context: dict[str, Any] = {"results_import": results_import, "obstacle": obstacle}
    if polled:
        return render(request, "results_import/_progress.html", context)
    return render(request, "results_import/detail.html", context | _report(results_import))


def _report(results_import: ResultsImport) -> dict[str, Any]:
    refused = [RefusedLine(line, code, params) for line, code, params in results_import.listed]
    first = {entry.code: entry for entry in reversed(refused)}
    return {
        "why": file_problem(results_import.problem, results_import.problem_params),
        "codes": [
            (code, count, first.get(code), refused_sentence(first[code]) if code in first else "")
            for code, count in Counter(results_import.codes).most_common()
        ],
        "lines": [(entry.line, refused_sentence(entry)) for entry in refused[:_LINES]],
        "metrics": [
            (
                name,
                metric["kind"],
                translated(VALUE_KINDS[metric["kind"]]),
                metric["scale"],
                metric["verdicts"],
            )
            for name, metric in results_import.metrics.items()
        ],
        "sources": [
            (source_label(kind, name), kind, count) for kind, name, count in results_import.sources[:_NAMES]
        ],
        "models": list(results_import.models_found.items())[:_NAMES],
        "people": sum(
            count for kind, _name, count in results_import.sources if kind in ("rater", "adjudicator")
        ),
    }


@login_required
@require_POST
def confirm(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Import the accepted lines."""
    import_confirm(get_results_import(request, slug, pk))
    return redirect("runs:results_import", slug, pk)


@login_required
@require_POST
def discard(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Delete the file without importing it."""
    if import_discard(get_results_import(request, slug, pk)):
        return redirect("runs:import_results", slug)
    return redirect("runs:results_import", slug, pk)
