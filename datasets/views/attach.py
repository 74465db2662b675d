"""Attaching answers: uploading a file, reviewing the matches, and confirming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets import uploads
from datasets.access import get_attachment, get_ready_version
from datasets.core.attach import PROBLEMS
from datasets.core.findings import Finding
from datasets.forms import AnswersForm, ModelNameForm
from datasets.importing import queue_status
from datasets.messages import message, translated
from datasets.models import Attachment, Version
from datasets.versions import attach
from datasets.views import upload_refused, uploaded
from evalsite import access
from evalsite.access import May
from evalsite.storage import files
from evalsite.tasks import jobs
from evalsite.web.headers import download_headers, part_wanted
from evalsite.web.request_limits import allow, upload_page


@upload_page
@login_required
def answers(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Upload answers; permission is checked before the body is read."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    if not version.valid_rows:
        raise Http404
    allow(request, uploads.limit_bytes(), uploads.too_large_sentence())
    return _attach(request, version)


@csrf_protect
def _attach(request: HttpRequest, version: Version) -> HttpResponse:
    if request.method != "POST":
        return render(request, "datasets/attach.html", _form_context(version, AnswersForm()))
    form = AnswersForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            attachment = attach.answers_upload(
                version=version,
                file_name=form.cleaned_data["file"].name,
                user=access.signed_in(request),
                **form.cleaned_data,
            )
            return uploaded(request, _address(attachment))
        except ValidationError as error:
            form.add_error(None, error)
    return upload_refused(request, form, "datasets/attach.html", _form_context(version, form))


def _form_context(version: Version, form: AnswersForm) -> dict[str, Any]:
    undecided = Attachment.objects.filter(version=version).exclude(
        state__in=(Attachment.State.USED, Attachment.State.DISCARDED)
    )
    return {
        "version": version,
        "form": form,
        "limits": uploads.limits(),
        "undecided": undecided.select_related("created_by").order_by("-pk")[:20],
    }


def _address(attachment: Attachment) -> str:
    version = attachment.version
    return reverse(
        "datasets:attachment",
        args=[version.dataset.project.slug, version.dataset_id, version.number, attachment.pk],
    )


@login_required
def attachment(request: HttpRequest, slug: str, dataset: int, number: int, attachment: int) -> HttpResponse:
    """The progress of matching, polled by htmx every second; then what matches and what does not."""
    answer_file = get_attachment(request, slug, dataset, number, attachment)
    context: dict[str, Any] = {"version": answer_file.version, "attachment": answer_file}
    if answer_file.state == Attachment.State.WAITING:
        job = jobs.of(attach.JOB, answer_file.pk)
        context |= {"job": job, "unattended": jobs.obstacle(job)}
        context["first"] = queue_status.for_further_work(answer_file.version.dataset.project)
        template = "datasets/_attach_progress.html" if part_wanted(request) else "datasets/attachment.html"
        return render(request, template, context)
    if part_wanted(request):
        return HttpResponseClientRefresh()
    return render(request, "datasets/attachment.html", context | _report(answer_file))


def _report(attachment: Attachment) -> dict[str, Any]:
    report = attachment.report
    problems = report.get("problems", {})
    findings = [Finding(**finding) for finding in report.get("findings", [])]
    return {
        "problem": attach.problem_sentence(attachment),
        "name_form": ModelNameForm() if attachment.problem.get("code") == attach.MODEL_NAME_WANTED else None,
        "report": report,
        "reasons": [(translated(PROBLEMS[code]), count, code) for code, count in _most_first(problems)],
        "findings": [(finding, message(finding)) for finding in findings[:50]],
        "findings_count": sum(report.get("counts", {}).values()),
        "models": [
            (name, rows, rows / report["good_rows"] if report["good_rows"] else 0)
            for name, rows in _most_first(report.get("models", {}))
        ],
    }


def _most_first(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@login_required
@require_POST
def use(request: HttpRequest, slug: str, dataset: int, number: int, attachment: int) -> HttpResponse:
    """Create a new version with the matched answers."""
    answer_file = get_attachment(request, slug, dataset, number, attachment)
    if answer_file.report.get("last_only") and "same_turns" not in request.POST:
        messages.error(request, _("Nothing was changed: confirm which earlier turns these answers follow."))
        return redirect(_address(answer_file))
    new_version = attach.attachment_use(attachment=answer_file, user=access.signed_in(request))
    if new_version is None:
        messages.info(request, _("Nothing was changed: a decision was already made."))
        return redirect(_address(answer_file))
    text = _(
        "The answers are in version %(number)s, which is being read now. Version %(parent)s does not change."
    )
    messages.success(request, text % {"number": new_version.number, "parent": number})
    return redirect("datasets:version", slug, dataset, new_version.number)


@login_required
@require_POST
def name(request: HttpRequest, slug: str, dataset: int, number: int, attachment: int) -> HttpResponse:
    """Set the model of a legacy file, which is then matched without another upload."""
    answer_file = get_attachment(request, slug, dataset, number, attachment)
    form = ModelNameForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was changed: enter the model's name."))
    elif not attach.attachment_name(attachment=answer_file, model_name=form.cleaned_data["model_name"]):
        messages.info(request, _("Nothing was changed: a decision was already made."))
    return redirect(_address(answer_file))


@login_required
@require_POST
def discard(request: HttpRequest, slug: str, dataset: int, number: int, attachment: int) -> HttpResponse:
    """Discard the file; the version is unchanged."""
    answer_file = get_attachment(request, slug, dataset, number, attachment)
    text = _("Nothing was changed: a decision was already made.")
    if attach.attachment_discard(attachment=answer_file):
        text = _("Answers discarded. The version is unchanged.")
    messages.info(request, text)
    return redirect("datasets:version", slug, dataset, number)


@login_required
def unmatched(
    request: HttpRequest, slug: str, dataset: int, number: int, attachment: int
) -> StreamingHttpResponse:
    """Everything that did not match as JSONL, with the reason in the user's language."""
    answer_file = get_attachment(request, slug, dataset, number, attachment)
    if not answer_file.unmatched_as or not files.exists(answer_file.unmatched_as):
        raise Http404
    lines = _with_reasons(files.local(answer_file.unmatched_as), get_language())
    headers = download_headers(f"unmatched-{answer_file.pk}.jsonl")
    return StreamingHttpResponse(lines, content_type="application/octet-stream", headers=headers)


def _with_reasons(path: Path, language: str | None) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            entry = json.loads(line)
            with override(language):
                entry = {"line": entry["line"], "problem": _reason(entry), **entry}
            yield json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _reason(entry: dict[str, Any]) -> str:
    """Why a line is in the list of unmatched answers."""
    text = translated(PROBLEMS[entry["reason"]])
    if entry.get("finding"):
        return _("%(reason)s The first one: %(code)s.") % {"reason": text, "code": entry["finding"]}
    return text
