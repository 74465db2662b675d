"""Views of the results import: upload, check report and confirmation, and an imported run's part of its page."""

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

from datasets.models import Version
from datasets.selectors import usable_versions
from datasets.uploads import limit_bytes, name_from, too_large_sentence
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.tasks import workers
from evalsite.web.headers import part_wanted
from evalsite.web.request_limits import allow, upload_page
from judging.core.metric_definition import MetricDefinition
from judging.core.results_file.records import RefusedLine
from judging.runs.forms import VersionChoice
from judging.runs.models import Run
from judging.runs.results_import.messages import (
    KINDS,
    file_problem,
    refused_sentence,
    source_label,
)
from judging.runs.results_import.models import ResultsImport, ResultsImportState
from judging.runs.results_import.services import (
    import_begin,
    import_confirm,
    import_discard,
    run_to_extend,
)

_EARLIER, _NAMES, _LINES, _SOURCES = 20, 30, 200, 50  # maximum numbers shown


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
            taken = import_begin(**form.cleaned_data, file_name=file_name, by=by)
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


@login_required
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """An import's progress, check report and result. The page polls every second while it is in progress."""
    taken = _get(request, slug, pk)
    polled = part_wanted(request) and "seen" in request.GET
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
    first = {one.code: one for one in reversed(refused)}
    return {
        "why": file_problem(taken.problem, taken.problem_params),
        "codes": [
            (code, count, first.get(code), refused_sentence(first[code]) if code in first else "")
            for code, count in Counter(taken.codes).most_common()
        ],
        "lines": [(one.line, refused_sentence(one)) for one in refused[:_LINES]],
        "metrics": [
            (name, one["kind"], KINDS[one["kind"]], one["scale"], one["verdicts"])
            for name, one in taken.metrics.items()
        ],
        "sources": [(source_label(kind, name), kind, count) for kind, name, count in taken.sources[:_NAMES]],
        "models": list(taken.models_found.items())[:_NAMES],
        "people": sum(count for kind, _name, count in taken.sources if kind in ("rater", "adjudicator")),
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
    return get_object_or_404(ResultsImport.objects.select_related(*joined).filter(project=project), pk=pk)


def imported_of(run: Run) -> dict[str, Any]:
    """What an imported run's page shows: its metrics with the kind of their values, its sources and its files."""
    definitions = [MetricDefinition.from_json(one.definition) for one in run.metrics.order_by("number")]
    sources = list(run.verdict_sources.order_by("pk").values_list("kind", "name"))
    files = run.results_imports.filter(state=ResultsImportState.DONE).select_related("created_by")
    return {
        "metrics": [(one, KINDS[one.values]) for one in definitions],
        "sources": [(source_label(kind, name), kind) for kind, name in sources[:_SOURCES]],
        "more_sources": max(0, len(sources) - _SOURCES),
        "files": files.order_by("pk"),
    }
