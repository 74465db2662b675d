"""Applying repairs, and downloads of rows: invalid ones with their findings, and valid ones."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from datasets import labels, uploads
from datasets.access import get_ready_version, get_version
from datasets.core.repair.apply import Repair
from datasets.models import Version
from datasets.versions import downloads, invalid_rows, repair_offers, row_writer
from datasets.versions.repair import version_repair
from evalsite import access
from evalsite.access import May
from evalsite.web.headers import download_headers

OTHER = "other"  # the choice for a name entered as text


@login_required
@require_POST
def repair(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Apply the repairs in the form by creating a version."""
    found = get_version(request, slug, dataset, number, May.UPLOAD)
    wanted = [
        *repair_offers.plain_repairs(request.POST.getlist("repair")),
        *_chosen_names(request.POST, found),
    ]
    try:
        made, new = version_repair(version=found, repairs=wanted, user=access.signed_in(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("datasets:version", slug, dataset, number)
    text = (
        _("The repaired file becomes version %(number)s. Version %(parent)s does not change.")
        if new
        else _("This repair of version %(parent)s already exists as version %(number)s.")
    )
    messages.info(request, text % {"number": made.number, "parent": found.number})
    return redirect("datasets:version", slug, dataset, made.number)


def _chosen_names(posted: QueryDict, version: Version) -> Iterator[Repair]:
    """The chosen or entered name for each group of similar names; groups without a choice stay unchanged."""
    if "unify" not in posted:
        return
    for number, group in enumerate(repair_offers.alike_groups(version)[: repair_offers.GROUPS_SHOWN]):
        chosen = posted.get(f"group-{number}", "")
        spellings = [spelling.name for spelling in group.spellings]
        if chosen == OTHER:
            yield Repair("unify_model_names", posted.get(f"other-{number}", "").strip(), spellings[0])
        elif chosen.isdecimal() and int(chosen[:6]) < len(spellings):
            yield Repair("unify_model_names", spellings[int(chosen[:6])], spellings[0])


@login_required
def bad(request: HttpRequest, slug: str, dataset: int, number: int) -> StreamingHttpResponse:
    """All invalid rows with their findings, in the file type that was uploaded."""
    found = get_ready_version(request, slug, dataset, number)
    if not invalid_rows.any_kept(found):
        raise Http404
    language = get_language() or settings.LANGUAGE_CODE
    if found.format == "legacy_csv":
        return _streamed(invalid_rows.as_csv(found, language), _name(found, "bad-rows", "csv"))
    return _streamed(invalid_rows.as_jsonl(found, language), _name(found, "bad-rows", "jsonl"))


@login_required
def jsonl(request: HttpRequest, slug: str, dataset: int, number: int) -> StreamingHttpResponse:
    """The valid rows as JSONL."""
    found = get_ready_version(request, slug, dataset, number)
    return _streamed(row_writer.jsonl(found), _name(found, _good(found), "jsonl"))


@login_required
def csv(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponseBase:
    """The valid rows as a legacy CSV, or an error message if they do not fit."""
    found = get_ready_version(request, slug, dataset, number)
    if misfit := downloads.unfit(found):
        messages.error(request, labels.unfit_for_csv(misfit.line, misfit.why, misfit.name))
        return redirect("datasets:version", slug, dataset, number)
    return _streamed(downloads.legacy_csv(found), _name(found, _good(found), "csv"))


TABLES = {
    "csv": downloads.table_csv,
    "xlsx": downloads.table_xlsx,
    "parquet": downloads.table_parquet,
}


@login_required
def table(request: HttpRequest, slug: str, dataset: int, number: int, form: str) -> StreamingHttpResponse:
    """The valid rows and their answers as a table, in one of the formats in TABLES."""
    found = get_ready_version(request, slug, dataset, number)
    return _streamed(TABLES[form](found), _name(found, f"table-{_good(found)}", form))


def _good(version: Version) -> str:
    """Name the content and the number of excluded rows, for readers who have only the file."""
    return f"rows-without-{version.bad_rows}-bad" if version.bad_rows else "rows"


def _name(version: Version, what: str, ending: str) -> str:
    return f"{uploads.name_from(version.file_name)}-v{version.number}-{what}.{ending}"


def _streamed(parts: Iterator[bytes], name: str) -> StreamingHttpResponse:
    headers = download_headers(name) | {"Content-Encoding": "identity"}  # see version.original
    return StreamingHttpResponse(parts, content_type="application/octet-stream", headers=headers)
