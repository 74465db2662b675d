"""Views to import and export metrics files."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy
from django.views.decorators.http import require_GET

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Project
from evalsite.names import join_sentences
from evalsite.web.headers import download_headers, file_stem
from judging.core.metrics_file import MAX_FILE_BYTES, MetricsFileError
from judging.metrics import selectors, transfer
from judging.metrics.access import get_metric, get_metric_version
from judging.metrics.models import MetricVersion
from judging.metrics.transfer import metrics_file_sentences, no_endpoint_sentence


class ImportForm(forms.Form):
    """An uploaded metrics file, or its text."""

    file = forms.FileField(label=gettext_lazy("File"), required=False, allow_empty_file=True)
    text = forms.CharField(
        label=gettext_lazy("Or paste its content"),
        required=False,
        strip=False,
        max_length=MAX_FILE_BYTES,
        widget=forms.Textarea(attrs={"rows": 12, "class": "mono", "spellcheck": "false"}),
    )

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        file = values.get("file")
        if file is not None and file.size > MAX_FILE_BYTES:
            self.add_error("file", _("The file is too large for a metrics file."))
        elif file is not None:
            try:
                values["text"] = file.read().decode("utf-8-sig")
            except UnicodeDecodeError:
                self.add_error("file", _("The file is not UTF-8 text; save it as UTF-8."))
        elif not values.get("text", "").strip():
            self.add_error(None, _("Choose a file or paste its content."))
        return values


@login_required
def import_file(request: HttpRequest, slug: str) -> HttpResponse:
    """The import form. Problems of a file are listed with their lines."""
    project = access.get_project(request, slug, May.METRICS)
    form = ImportForm(request.POST or None, request.FILES or None)
    wrong: list[str] = []
    if request.method == "POST" and form.is_valid():
        wrong = _import(request, project, form.cleaned_data["text"])
        if not wrong:
            return redirect("metrics:list", slug)
        form = ImportForm(
            initial={"text": form.cleaned_data["text"]}
        )  # also for an uploaded file, so that it can be fixed in the form
    status = 422 if request.method == "POST" else 200
    return render(request, "metrics/import.html", {"form": form, "wrong": wrong}, status=status)


def _import(request: HttpRequest, project: Project, text: str) -> list[str]:
    """Import the text. Returns error messages, empty on success."""
    try:
        file = transfer.read_alone(text)
    except MetricsFileError as error:
        return metrics_file_sentences(error)
    placed, unplaced = transfer.with_endpoints(project, file.metrics)
    if unplaced:
        return [no_endpoint_sentence(entry) for entry in unplaced]
    try:
        imported = transfer.metrics_import(project=project, metrics=placed, user=signed_in(request))
    except ValidationError as error:
        return list(error.messages)
    messages.success(request, _imported_sentence(imported, candidates=bool(file.candidates)))
    return []


def _imported_sentence(imported: list[transfer.ImportedMetric], *, candidates: bool) -> str:
    counts: Counter[str] = Counter(metric.done for metric in imported)
    sentences = {
        "new": ngettext_lazy("%(n)s metric is new.", "%(n)s metrics are new.", "n"),
        "changed": ngettext_lazy("%(n)s metric has a new version.", "%(n)s metrics have a new version.", "n"),
        "unchanged": ngettext_lazy("%(n)s metric unchanged.", "%(n)s metrics unchanged.", "n"),
    }
    parts = [text % {"n": counts[done]} for done, text in sentences.items() if counts[done]]
    if candidates:
        parts.append(_("The file's candidates were ignored: choose them when you create a run."))
    return join_sentences(parts)


@login_required
@require_GET
def export_all(request: HttpRequest, slug: str) -> HttpResponse:
    """Export the newest version of each metric that is not archived."""
    project = access.get_project(request, slug, May.METRICS)
    return _file([line.version for line in selectors.metrics_of(project)], project.slug)


@login_required
@require_GET
def export_one(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Export a metric's newest version."""
    row = get_metric(request, slug, metric)
    return _file([selectors.newest_version(row)], row.name)


@login_required
@require_GET
def export_version(request: HttpRequest, slug: str, metric: int, number: int) -> HttpResponse:
    """Export one version of a metric."""
    version = get_metric_version(request, slug, metric, number)
    return _file([version], f"{version.metric.name}-v{number}")


def _file(versions: list[MetricVersion], name: str) -> HttpResponse:
    text, headers = transfer.metrics_text(versions), download_headers(f"{file_stem(name) or 'metrics'}.yaml")
    return HttpResponse(text, content_type="application/yaml; charset=utf-8", headers=headers)
