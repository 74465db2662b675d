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

from datasets import uploads
from datasets.access import get_ready_version, get_version
from datasets.core.repair.apply import Repair
from datasets.messages import translated
from datasets.models import Version
from datasets.versions import downloads, invalid_rows, repair_offers, row_writer
from datasets.versions.repair import version_repair
from evalsite import access
from evalsite.access import May
from evalsite.names import join_sentences
from evalsite.web.headers import download_headers

OTHER = "other"  # the choice for a name entered as text


@login_required
@require_POST
def repair(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Apply the repairs in the form by creating a version."""
    version = get_version(request, slug, dataset, number, May.UPLOAD)
    wanted = [
        *repair_offers.plain_repairs(request.POST.getlist("repair")),
        *_chosen_names(request.POST, version),
    ]
    try:
        new_version, new = version_repair(version=version, repairs=wanted, user=access.signed_in(request))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
        return redirect("datasets:version", slug, dataset, number)
    text = (
        _("The repaired file becomes version %(number)s. Version %(parent)s does not change.")
        if new
        else _("This repair of version %(parent)s already exists as version %(number)s.")
    )
    messages.info(request, text % {"number": new_version.number, "parent": version.number})
    return redirect("datasets:version", slug, dataset, new_version.number)


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
    version = get_ready_version(request, slug, dataset, number)
    if not invalid_rows.any_kept(version):
        raise Http404
    language = get_language() or settings.LANGUAGE_CODE
    if version.format == "legacy_csv":
        return _streamed(invalid_rows.as_csv(version, language), _name(version, "bad-rows", "csv"))
    return _streamed(invalid_rows.as_jsonl(version, language), _name(version, "bad-rows", "jsonl"))


@login_required
def jsonl(request: HttpRequest, slug: str, dataset: int, number: int) -> StreamingHttpResponse:
    """The valid rows as JSONL."""
    version = get_ready_version(request, slug, dataset, number)
    return _streamed(row_writer.jsonl(version), _name(version, _good(version), "jsonl"))


@login_required
def csv(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponseBase:
    """The valid rows as a legacy CSV, or an error message if they do not fit."""
    version = get_ready_version(request, slug, dataset, number)
    if misfit := downloads.unfit(version):
        messages.error(request, _unfit_for_csv(misfit))
        return redirect("datasets:version", slug, dataset, number)
    return _streamed(downloads.legacy_csv(version), _name(version, _good(version), "csv"))


def _unfit_for_csv(misfit: downloads.Unfit) -> str:
    """Why a version cannot be downloaded as a legacy CSV, and the alternatives."""
    sentence = _(
        "Row at line %(line)s cannot be exported as legacy CSV without loss: %(why)s Download a table or "
        "JSONL instead."
    )
    why = translated(downloads.UNFIT[misfit.why], {"name": misfit.name[:80]})
    return sentence % {"line": misfit.line, "why": why}


TABLES = {
    "csv": downloads.table_csv,
    "xlsx": downloads.table_xlsx,
    "parquet": downloads.table_parquet,
}


@login_required
def table(request: HttpRequest, slug: str, dataset: int, number: int, form: str) -> StreamingHttpResponse:
    """The valid rows and their answers as a table, in one of the formats in TABLES."""
    version = get_ready_version(request, slug, dataset, number)
    return _streamed(TABLES[form](version), _name(version, f"table-{_good(version)}", form))


def _good(version: Version) -> str:
    """Name the content and the number of excluded rows, for readers who have only the file."""
    return f"rows-without-{version.bad_rows}-bad" if version.bad_rows else "rows"


def _name(version: Version, what: str, ending: str) -> str:
    return f"{uploads.name_from(version.file_name)}-v{version.number}-{what}.{ending}"


def _streamed(parts: Iterator[bytes], name: str) -> StreamingHttpResponse:
    headers = download_headers(name) | {"Content-Encoding": "identity"}  # see version.original
    return StreamingHttpResponse(parts, content_type="application/octet-stream", headers=headers)
