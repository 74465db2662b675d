"""Data sets and their versions, as the API shows them: state, findings, rows, files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from ninja import Query, Schema

from datasets.access import get_dataset, get_ready_version, get_version
from datasets.api.routes import UPLOAD, router
from datasets.messages import message
from datasets.models import Dataset, FileImport, Row, StoredFinding, Version, VersionState
from datasets.selectors import listed_datasets, versions_of
from datasets.versions import downloads, invalid_rows, row_writer
from datasets.versions.row_findings import as_finding
from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.web.headers import download_headers
from evalsite.web.paging import newest_first


class DatasetOut(Schema):
    id: int
    name: str
    created_at: datetime
    archived: bool


class VersionOut(Schema):
    """`models`: {name: {rows, responses}}; `counts`: {finding's code: number}; `usable`: whether a run can use it.
    Of another tool's file: its `source`, what was `left_out` ({code: number}) and how many `verdicts` it holds."""

    dataset: int
    number: int
    id: int
    state: str
    usable: bool
    file_name: str
    format: str
    rows: int
    valid_rows: int
    models: dict[str, Any]
    fields: dict[str, Any]
    counts: dict[str, int]
    problem: str
    source: str
    left_out: dict[str, int]
    verdicts: int
    created_at: datetime


class DatasetWhole(DatasetOut):
    versions: list[VersionOut]


class FindingOut(Schema):
    line: int | None
    column: int | None
    path: str
    code: str
    severity: str
    message: str
    repair: str


@router.get("projects/{slug}/datasets", response=Page[DatasetOut], url_name=UPLOAD, summary="Data sets")
def datasets(
    request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "", archived: bool = False
) -> dict[str, Any]:
    """Newest first."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    rows, further = newest_first(listed_datasets(project, archived=archived), limit, number_at(cursor))
    return {"items": list(map(dataset_out, rows)), "next": cursor_of(further)}


@router.get(
    "projects/{slug}/datasets/{dataset}", response=DatasetWhole, summary="A data set and its versions"
)
def dataset(request: HttpRequest, slug: str, dataset: Id) -> dict[str, Any]:
    """Versions newest first."""
    row = get_dataset(request, slug, dataset)
    return dataset_out(row) | {"versions": list(map(version_out, versions_of(row)))}


@router.get(
    "projects/{slug}/datasets/{dataset}/versions/{number}",
    response=VersionOut,
    summary="A version and its state",
)
def version(request: HttpRequest, slug: str, dataset: Id, number: Id) -> dict[str, Any]:
    """`state` is `waiting`, `reading`, `ready`, `failed` or `cancelled`."""
    return version_out(get_version(request, slug, dataset, number))


@router.get(
    "projects/{slug}/datasets/{dataset}/versions/{number}/findings",
    response=Page[FindingOut],
    summary="Findings of a version",
)
def findings(
    request: HttpRequest,
    slug: str,
    dataset: Id,
    number: Id,
    limit: Limit = 100,
    cursor: Cursor = "",
    code: Annotated[str, Query(max_length=40)] = "",
) -> dict[str, Any]:
    """In the order of the file; the first ones of each code are stored, `counts` of the version has all."""
    row = get_version(request, slug, dataset, number)
    stored = StoredFinding.objects.filter(version=row, pk__gt=number_at(cursor) or 0).order_by("pk")
    page = list((stored.filter(code=code) if code else stored)[: limit + 1])
    items = [
        {
            "line": finding.line,
            "column": finding.column,
            "path": finding.path,
            "code": finding.code,
            "severity": finding.severity,
            "message": message(as_finding(finding)),
            "repair": finding.repair,
        }
        for finding in page[:limit]
    ]
    return {"items": items, "next": cursor_of(page[limit - 1].pk if len(page) > limit else None)}


@router.get(
    "projects/{slug}/datasets/{dataset}/versions/{number}/rows",
    response=Page[dict[str, Any]],
    summary="Rows of a version",
)
def rows(
    request: HttpRequest,
    slug: str,
    dataset: Id,
    number: Id,
    limit: Limit = 100,
    cursor: Cursor = "",
    fields: Annotated[str, Query(max_length=2000, description="Names separated by commas; none: all.")] = "",
) -> HttpResponse:
    """Valid rows in the order of the file: `line`, and `row` as uploaded, without its answers (`download` has them)."""
    ready = get_ready_version(request, slug, dataset, number)
    stored = Row.objects.filter(version=ready, valid=True, line__gt=number_at(cursor) or 0).order_by("line")
    page = list(stored.values_list("line", "raw")[: limit + 1])
    names = {name.strip() for name in fields.split(",")} - {""}
    items = [{"line": line, "row": _chosen(raw, names)} for line, raw in page[:limit]]
    following = cursor_of(page[limit - 1][0] if len(page) > limit else None)
    body = msgspec.json.encode({"items": items, "next": following})
    return HttpResponse(body, content_type="application/json")


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _chosen(raw: str, names: set[str]) -> msgspec.Raw | dict[str, msgspec.Raw]:
    if not names:
        return msgspec.Raw(raw.encode())
    row = _decode_fields(raw)
    return {name: value for name, value in row.items() if name in names}


DOWNLOADS = {
    "jsonl": row_writer.jsonl,
    "csv": downloads.table_csv,
    "xlsx": downloads.table_xlsx,
    "parquet": downloads.table_parquet,
    "legacy_csv": downloads.legacy_csv,
}


@router.get("projects/{slug}/datasets/{dataset}/versions/{number}/download", summary="A version as a file")
def download(
    request: HttpRequest,
    slug: str,
    dataset: Id,
    number: Id,
    form: Literal["jsonl", "csv", "xlsx", "parquet", "legacy_csv", "invalid", "original"] = "jsonl",
) -> HttpResponseBase:
    """The valid rows with their answers; the `invalid` rows with their findings, as JSON Lines; or the `original`
    file."""
    if form == "original":
        stored = get_version(request, slug, dataset, number)
        if not stored.file_is_kept:
            raise Http404
        return FileResponse(stored.path.open("rb"), as_attachment=True, filename=stored.file_name)
    ready = get_ready_version(request, slug, dataset, number)
    if form == "legacy_csv" and downloads.unfit(ready):
        raise ApiError(409, "does_not_fit", _("Some rows can't be exported as legacy CSV without loss."))
    name = f"{slug}-{dataset}-v{number}.{ENDINGS.get(form, form)}"
    lines = invalid_rows.as_jsonl(ready, _language()) if form == "invalid" else DOWNLOADS[form](ready)
    headers = download_headers(name) | {"Content-Encoding": "identity"}
    return StreamingHttpResponse(lines, content_type="application/octet-stream", headers=headers)


ENDINGS = {"legacy_csv": "csv", "invalid": "invalid.jsonl"}


def _language() -> str:
    return get_language() or settings.LANGUAGE_CODE


def dataset_out(dataset: Dataset) -> dict[str, Any]:
    """A data set as the API shows it."""
    return {
        "id": dataset.pk,
        "name": dataset.name,
        "created_at": dataset.created_at,
        "archived": dataset.archived_at is not None,
    }


def version_out(version: Version) -> dict[str, Any]:
    """A version as the API shows it."""
    source = FileImport.objects.filter(new_version=version).first()
    return {
        "dataset": version.dataset_id,
        "number": version.number,
        "id": version.pk,
        "state": version.state,
        "usable": version.usable,
        "file_name": version.file_name,
        "format": version.format,
        "rows": version.rows,
        "valid_rows": version.valid_rows,
        "models": version.models_found,
        "fields": version.fields_found,
        "counts": version.counts,
        "problem": version.problem if version.state == VersionState.FAILED else "",
        "source": source.source if source else "",
        "left_out": source.left_out_counts if source else {},
        "verdicts": source.verdicts if source else 0,
        "created_at": version.created_at,
    }
