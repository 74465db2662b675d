"""A version: its import progress, findings, and available actions."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets import selectors, services, uploads
from datasets.access import get_version
from datasets.core.reader import KEPT_PER_CODE
from datasets.forms import FormatForm
from datasets.importing import queue_status
from datasets.messages import encoding_name, format_name, format_why, repairs_made
from datasets.models import Version, VersionState
from datasets.versions import downloads, invalid_rows, repair_offers, row_edits
from datasets.versions.parts import only_part, parts_of
from datasets.views import file_import, findings_view, version_preview
from evalsite import access
from evalsite.access import May
from evalsite.storage import files
from evalsite.tasks import jobs
from evalsite.web.exchange import BUFFERED
from evalsite.web.headers import part_wanted, safe_file_name
from evalsite.web.numbers import whole
from evalsite.web.request_limits import step_aside

STEADY_SECONDS = 3.0  # a rate measured over less time is meaningless


@login_required
def version(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """The import progress, polled by htmx every second; afterwards the version's content."""
    version = get_version(request, slug, dataset, number)
    if version.state in services.OPEN_STATES:
        template = "datasets/_progress.html" if part_wanted(request) else "datasets/reading.html"
        return render(request, template, {"version": version, **_progress(request, version)})
    if part_wanted(request):
        return HttpResponseClientRefresh()
    if version.state == VersionState.READY:
        return render(request, "datasets/version.html", _ready(request, version))
    context = {
        "version": version,
        "versions": selectors.versions_of(version.dataset),
        "problem": _(version.problem) if version.problem else "",  # stored in English by the importer
    }
    context |= {key: value for key, value in file_import.of_version(version).items() if value}
    return render(request, "datasets/not_read.html", context)


def _progress(request: HttpRequest, version: Version) -> dict[str, Any]:
    """The rate since this page first saw progress, and the time left; the page sends both back with each poll."""
    now, read = time.time(), version.bytes_read
    began, begun_at = _seen(request.GET.get("began")), _seen(request.GET.get("at"))
    if not began or begun_at > read or began > now:
        began, begun_at = (now, read) if read else (0.0, 0.0)
    seconds = now - began if began else 0.0
    rate = (read - begun_at) / seconds if seconds >= STEADY_SECONDS and read > begun_at else None
    return {
        "began": round(began, 1),
        "begun_at": int(begun_at),
        "rate": rate,
        "seconds_left": (version.size - read) / rate if rate else None,
        "unattended": _unattended(version),
        "first": queue_status.for_version(version) if version.state == VersionState.WAITING else "",
    }


def _unattended(version: Version) -> str:
    """Why the version is not being read, if no worker is reading it now."""
    return jobs.obstacle(jobs.of("read_version", version.pk))


def _seen(text: str | None) -> float:
    try:
        return min(max(float(text or 0), 0.0), 1e15)
    except ValueError:
        return 0.0


def _ready(request: HttpRequest, version: Version) -> dict[str, Any]:
    candidates, project = selectors.candidates_of(version), version.dataset.project_id
    first_upload = selectors.first_upload(version)
    return {
        "version": version,
        "parts": [(part, encoding_name(part.encoding)) for part in parts_of(first_upload)],
        "versions": selectors.versions_of(version.dataset),
        "format": format_name(version.format),
        "why": format_why(version),
        "encoding": encoding_name(version.encoding),
        "models": [(c, c.rows / version.valid_rows if version.valid_rows else 0) for c in candidates],
        "series": selectors.numbers_of_candidates([project])[project],
        "models_met": 0 if version.valid_rows else len(version.models_found),
        "fields": version_preview.fields_seen(version),
        "duplicates": version.counts.get("row.duplicate", 0),
        **_findings(version),
        "first_rows": version_preview.first_rows(version),
        "format_form": FormatForm(initial={"chosen_format": version.chosen_format}),
        "run_address": _address_for(request, version, "runs:new"),
        "look_address": _address_for(request, version, "look:new", May.LOOK) if version.models_found else "",
        "rate_address": _address_for(request, version, "people:new")
        if selectors.began_as_legacy(version)
        else "",
        "models_in_column": selectors.models_in_column(version),
        "legacy_csv": version.valid_rows and downloads.seems_fit(version),
        "first_upload": first_upload,
        "original": only_part(first_upload),
        "can_edit": row_edits.can_edit(version),
        "edits_open": row_edits.open_edits(version).count(),
        **file_import.of_version(version),
    }


def _findings(version: Version) -> dict[str, Any]:
    """The findings with their repairs; for a repaired version also a comparison with its parent."""
    repairs = repair_offers.repairs_for(version)
    groups = findings_view.groups(version)
    return {
        "groups": [findings_view.with_samples(group, repairs.offers.get(group.code)) for group in groups],
        "repairs": repairs,
        "repaired": _repaired(version, groups),
        "repairs_made": repairs_made(version),
        "broken": version.counts.get("json.invalid", 0),
        "has_bad_rows": invalid_rows.any_kept(version),
        "others": selectors.other_ready_versions(version),
    }


def _repaired(
    version: Version, groups: list[findings_view.FindingGroup]
) -> list[tuple[findings_view.FindingGroup, int, int]]:
    """[(findings, number before, number after)] that repairs or edits changed, of a version created by them."""
    if version.origin not in ("repair", row_edits.ORIGIN) or version.parent is None:
        return []
    before, after = version.parent.counts, version.counts
    shown = {group.code: group for group in (*findings_view.groups(version.parent), *groups)}
    numbers = [(code, before.get(code, 0), after.get(code, 0)) for code in sorted(before | after)]
    return [(shown[code], was, now) for code, was, now in numbers if was != now]


def _address_for(request: HttpRequest, version: Version, name: str, may: May = May.RUN) -> str:
    """The URL to start a run, a human evaluation or a look of this version; '' if it is not usable or the user lacks
    the permission `may`."""
    project = version.dataset.project
    if not version.usable or may not in access.permissions(request, project):
        return ""
    return f"{reverse(name, args=[project.slug])}?version={version.pk}"


@login_required
@require_POST
def cancel(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Cancel the import."""
    version = get_version(request, slug, dataset, number, May.UPLOAD)
    if services.version_cancel(version=version):
        text = _("Reading cancelled. The uploaded file is kept.")
        if version.to_be_repaired:
            text = _("Repair cancelled. The version it was based on is unchanged.")
        messages.info(request, text)
    else:
        messages.info(request, _("Reading had already finished."))
    return redirect("datasets:version", slug, dataset, number)


@login_required
@require_POST
def again(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Retry a failed or cancelled import."""
    services.version_try_again(version=get_version(request, slug, dataset, number, May.UPLOAD))
    return redirect("datasets:version", slug, dataset, number)


@login_required
@require_POST
def read_as(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Read the same file in another format, as a new version."""
    version = get_version(request, slug, dataset, number, May.UPLOAD)
    form = FormatForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was changed. Choose a format."))
        return redirect("datasets:version", slug, dataset, number)
    new_version = services.version_read_as(
        version=version, chosen_format=form.cleaned_data["chosen_format"], user=access.signed_in(request)
    )
    text = _(
        "The same file is now read as chosen, into version %(number)s. Version %(parent)s stays as it is."
    )
    messages.info(request, text % {"number": new_version.number, "parent": version.number})
    return redirect("datasets:version", slug, dataset, new_version.number)


@login_required
@require_POST
def leave_out(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Exclude the invalid rows; rejected if the number in the form is not current."""
    version = get_version(request, slug, dataset, number, May.UPLOAD)
    if request.POST.get("rows") != str(version.bad_rows):
        messages.error(request, _("Nothing was changed. Confirm how many rows to exclude."))
    elif services.version_leave_bad_rows_out(version=version, user=access.signed_in(request)):
        messages.success(request, _("Invalid rows excluded. Every run of this version shows how many."))
    return redirect("datasets:version", slug, dataset, number)


@login_required
def original(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse | FileResponse:
    """The uploaded file, byte for byte; preceded by a warning page if the stored bytes have changed.

    That of an imported version is the file it was imported from, if it is one.
    """
    version = get_version(request, slug, dataset, number)
    if only_file := only_part(version):
        return _download(request, version, only_file.stored_as, only_file.sha256, only_file.name)
    return _download(request, version, version.stored_as, version.sha256, version.file_name)


@login_required
def part(
    request: HttpRequest, slug: str, dataset: int, number: int, part: int
) -> HttpResponse | FileResponse:
    """One of the files that the version was joined from, by number from 1."""
    version = get_version(request, slug, dataset, number)
    wanted = dict(enumerate(parts_of(version), 1)).get(part)
    if wanted is None:
        raise Http404
    return _download(request, version, wanted.stored_as, wanted.sha256, wanted.name)


def _download(
    request: HttpRequest, version: Version, stored_as: str, sha256: str, name: str
) -> HttpResponse | FileResponse:
    try:
        wanted = "damaged" in request.GET or not sha256
        if version.size > BUFFERED:  # reading a gigabyte takes seconds
            step_aside(request)
        if not wanted and not uploads.is_intact(stored_as, sha256):
            context = {"version": version, "sha256": sha256}
            return render(request, "datasets/damaged.html", context, status=409)
        file, size = files.stream(stored_as)
    except FileNotFoundError:
        raise Http404 from None
    answer = FileResponse(
        file, as_attachment=True, filename=safe_file_name(name), content_type="application/octet-stream"
    )
    answer["Content-Length"] = str(size)
    answer["Content-Encoding"] = "identity"  # compressing a gigabyte would cost more than it saves
    return answer


@login_required
def findings(request: HttpRequest, slug: str, dataset: int, number: int, code: str) -> HttpResponse:
    """All stored findings of one code, in pages."""
    version = get_version(request, slug, dataset, number)
    if version.state != VersionState.READY or code not in version.counts:
        raise Http404
    page, further = findings_view.page(version, code, after=whole(request.GET.get("after", "")) or 0)
    context = {
        "version": version,
        "code": code,
        "count": version.counts[code],
        "cut": version.counts[code] > KEPT_PER_CODE,
        "findings": page,
        "further": further,
        "can_edit": row_edits.can_edit(version),
    }
    return render(request, "datasets/findings.html", context)
