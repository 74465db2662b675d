"""Views of the results import: upload, check report and confirmation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets.messages import translated
from datasets.models import Version
from datasets.selectors import usable_versions
from datasets.uploads import limit_bytes, name_from, too_large_sentence
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.tasks import jobs
from evalsite.web.headers import part_wanted
from evalsite.web.request_limits import allow, upload_page
from judging.core.results_file.records import VALUE_KINDS, RefusedLine
from judging.messages import refused_sentence, source_label
from judging.runs.forms import VersionChoice
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.transfer.results_import.services import (
    JOB,
    file_problem,
    import_begin,
    import_confirm,
    import_discard,
    run_to_extend,
)

_EARLIER, _NAMES, _LINES = 20, 30, 200  # maximum numbers shown


class ResultsForm(forms.Form):
    """A file, the version whose answers it judges, and the run's name, which defaults to the file name."""

    file = forms.FileField(label=gettext_lazy("Results file"))
    version = VersionChoice(label=gettext_lazy("Data set"), queryset=Version.objects.none(), empty_label=None)
    name = forms.CharField(
        label=gettext_lazy("Run name"),
        max_length=200,
        required=False,
        help_text=gettext_lazy(
            "Defaults to the file name. An imported run of this name gets the new verdicts added."
        ),
    )

    def __init__(
        self, data: Any, files: Any, *, project: Project, versions: QuerySet[Version], version: str
    ) -> None:
        super().__init__(data, files, label_suffix="", initial={"version": version})
        self.project = project
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        sent = self.cleaned_data
        if "file" in sent and "version" in sent and "name" in sent:
            sent["name"] = sent["name"] or name_from(sent["file"].name)
            try:
                run_to_extend(self.project, sent["version"], sent["name"])
            except ValidationError as error:
                self.add_error("name", error)
        return sent


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
    form = ResultsForm(*sent, project=project, versions=versions, version=chosen)
    if form.is_bound and form.is_valid():
        try:
            file_name, by = form.cleaned_data["file"].name or "", access.signed_in(request)
            results_import = import_begin(**form.cleaned_data, file_name=file_name, by=by)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("runs:results_import", project.slug, results_import.pk)
    earlier = _imports_of(project).select_related("run", "created_by")
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
    results_import = _get(request, slug, pk)
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
    return get_object_or_404(_imports_of(project).select_related(*joined), pk=pk)


def _imports_of(project: Project) -> QuerySet[ResultsImport]:
    """The project's imports, without those of deleted runs and versions."""
    imports = ResultsImport.objects.filter(project=project, version__deleted_at=None)
    return imports.exclude(run__deleted_at__isnull=False)
