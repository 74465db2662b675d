"""Data sets and their versions, as the API shows them."""

from __future__ import annotations

import hashlib
import threading
import time
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from django.core.exceptions import TooManyFilesSent
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema

from datasets import services, uploads
from datasets.access import get_dataset, get_ready_version, get_version
from datasets.messages import message
from datasets.models import Dataset, Row, StoredFinding, Version, VersionState
from datasets.selectors import listed_datasets, versions_of
from datasets.versions import downloads, file_import, row_writer
from datasets.versions.row_findings import as_finding
from datasets.versions.uploaded_files import source_files_of
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.api.replies import HEADER, once_for
from evalsite.web.headers import download_headers
from evalsite.web.paging import newest_first
from evalsite.web.request_limits import allow

router = Router()
UPLOAD = "datasets_upload"
LONGEST_WAIT = 20  # seconds
_waiting = threading.BoundedSemaphore(2)  # requests that hold a thread until a version was read


class DatasetOut(Schema):
    id: int
    name: str
    created_at: datetime
    archived: bool


class VersionOut(Schema):
    """`models`: {name: {rows, responses}}; `counts`: {finding's code: number}; `usable`: whether a run can use it."""

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
    created_at: datetime


class DatasetWhole(DatasetOut):
    versions: list[VersionOut]


class UploadOut(Schema):
    """`dataset` and `version` are numbers in addresses; `id` is the version's own, as runs name it."""

    dataset: int
    version: int
    id: int
    state: str
    url: str


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


@router.post(
    "projects/{slug}/datasets",
    response={202: UploadOut},
    summary="Upload a file",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {
                            "file": {"type": "string", "format": "binary"},
                            "name": {"type": "string", "maxLength": 200},
                        },
                    }
                }
            },
        }
    },
)
def upload(
    request: HttpRequest, slug: str, wait: Annotated[int, Query(ge=0, le=LONGEST_WAIT)] = 0
) -> HttpResponseBase:
    """A new data set, or a new version of the one called `name`, read in the background. `wait`: seconds for it."""
    project = access.get_project(request, slug, May.UPLOAD)
    if request.content_type != "multipart/form-data":
        raise ApiError(415, message=_("Send the file as multipart/form-data."))
    allow(request, uploads.limit_bytes(), uploads.too_large_sentence())
    token = access.token_of(request)
    if token is None or HEADER not in request.headers:
        return _uploaded(request, project, wait)
    return once_for(request, token, _digest(request), lambda _request: _uploaded(request, project, wait))


def _uploaded(request: HttpRequest, project: Project, wait: int) -> JsonResponse:
    try:
        files = request.FILES.getlist("file")
    except TooManyFilesSent:
        raise ApiError(413) from None
    if len(files) != 1:
        text = _("Send one file, in the field “file”.")
        raise ApiError(422, message=text, fields={"file": text})
    (file,) = files
    if file_import.recognised(source_files_of(files)) is not None:
        text = _(
            "This is a table or another tool's file. Upload it on the page, or use the command import_dataset."
        )
        raise ApiError(422, "needs_import", text, fields={"file": text})
    version = services.dataset_upload(
        project=project,
        name=request.POST.get("name", ""),
        file=file,
        file_name=file.name or "",
        user=access.signed_in(request),
    )
    if wait:
        _wait_until_read(version, wait)
    dataset = version.dataset
    return JsonResponse(
        {
            "dataset": dataset.pk,
            "version": version.number,
            "id": version.pk,
            "state": version.state,
            "url": reverse("datasets:version", args=[project.slug, dataset.pk, version.number]),
        },
        status=202,
    )


def _digest(request: HttpRequest) -> str:
    """SHA-256 over the fields and files of an upload."""
    whole = hashlib.sha256(repr(sorted(request.POST.lists())).encode())
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            part = hashlib.sha256()
            for chunk in file.chunks():
                part.update(chunk)
            file.seek(0)
            whole.update(f"{name}:{file.name}:{part.hexdigest()};".encode())
    return whole.hexdigest()


def _wait_until_read(version: Version, seconds: int) -> None:
    """Wait until the version was read; not at all if other requests wait already."""
    if not _waiting.acquire(blocking=False):
        return
    try:
        until = time.monotonic() + seconds
        while version.state in services.OPEN_STATES and time.monotonic() < until:
            time.sleep(0.2)
            version.refresh_from_db(fields=["state"])
    finally:
        _waiting.release()


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
}


@router.get("projects/{slug}/datasets/{dataset}/versions/{number}/download", summary="A version as a file")
def download(
    request: HttpRequest,
    slug: str,
    dataset: Id,
    number: Id,
    form: Literal["jsonl", "csv", "xlsx", "parquet", "original"] = "jsonl",
) -> HttpResponseBase:
    """The valid rows with their answers, or the `original` file."""
    name = f"{slug}-{dataset}-v{number}"
    if form == "original":
        stored = get_version(request, slug, dataset, number)
        if not stored.file_is_kept:
            raise Http404
        return FileResponse(stored.path.open("rb"), as_attachment=True, filename=stored.file_name)
    ready = get_ready_version(request, slug, dataset, number)
    headers = download_headers(f"{name}.{form}") | {"Content-Encoding": "identity"}
    return StreamingHttpResponse(
        DOWNLOADS[form](ready), content_type="application/octet-stream", headers=headers
    )


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
        "created_at": version.created_at,
    }
