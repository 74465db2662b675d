"""Uploading files as a data set: in our own formats, as tables, and from other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Schema

from datasets import services, uploads
from datasets.api.routes import UPLOAD, router
from datasets.core.imports.model import NotUsable
from datasets.core.imports.registry import source_named
from datasets.forms import UploadForm
from datasets.messages import not_usable
from datasets.models import FileImport, Version
from datasets.versions import file_import, parts
from datasets.versions.uploaded_files import source_files_of
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project, User
from evalsite.api.errors import ApiError, form_refused
from evalsite.api.uploads import answer_upload, files_of, multipart
from evalsite.api.waiting import Wait, wait_until

Files = Sequence[UploadedFile[bytes]]


class UploadOut(Schema):
    """`dataset` and `version` are numbers in addresses; `id` is the version's own, as runs name it."""

    dataset: int
    version: int
    id: int
    state: str
    url: str


@router.post(
    "projects/{slug}/datasets",
    response={202: UploadOut},
    url_name=UPLOAD,
    summary="Upload a file",
    openapi_extra=multipart(
        name={"type": "string", "maxLength": 200},
        chosen_format={"type": "string", "description": "Empty: detected."},
        columns={
            "type": "string",
            "maxLength": 10_000,
            "description": "What the columns of a table become, as for `import_dataset --columns`. Empty: guessed.",
        },
    ),
)
def upload(request: HttpRequest, slug: str, wait: Wait = 0) -> HttpResponseBase:
    """A new data set, or a new version of the one called `name`, read in the background. Several files become one
    data set. Tables and files of other tools are imported; verdicts in them become a run. `wait`: seconds for it."""
    project = access.get_project(request, slug, May.UPLOAD)
    return answer_upload(
        request, uploads.limit_bytes(), uploads.too_large_sentence(), lambda: _upload(request, project, wait)
    )


def _upload(request: HttpRequest, project: Project, wait: int) -> HttpResponseBase:
    files_of(request)
    form = UploadForm({**request.POST.dict(), "together": "parts", "order": "given"}, request.FILES)
    if not form.is_valid():
        raise form_refused(form)
    sent, user = form.cleaned_data, access.signed_in(request)
    columns = request.POST.get("columns", "").strip()
    version = _stored(project, user, sent["files"], sent["name"], sent["chosen_format"], columns)
    return made(request, version, wait)


def _stored(
    project: Project, user: User, files: Files, name: str, chosen_format: str, columns: str
) -> Version:
    """The version that the files become. Raises ApiError and ValidationError."""
    sources = source_files_of(files)
    recognised = None if chosen_format else file_import.recognised(sources)
    source = source_named(file_import.TABLE) if columns else recognised
    named = [(cast(BinaryIO, file), file.name or "") for file in files]
    if source is not None:
        draft = file_import.draft_of_files(
            project=project, name=name, named_files=named, source=source, user=user
        )
        return _imported(draft, columns, user)
    common: dict[str, Any] = {
        "project": project,
        "name": name,
        "user": user,
        "chosen_format": chosen_format,
    }
    if len(named) > 1:
        return parts.dataset_upload_parts(named_files=named, **common)
    ((file, file_name),) = named
    return services.dataset_upload(file=file, file_name=file_name, **common)


def _imported(draft: FileImport, columns: str, user: User) -> Version:
    """The version made from a draft. Raises ApiError, and discards the draft, if its files can't be used."""
    try:
        file_import.draft_change(draft, columns=columns, sheet="")
        file_import.preview(draft)
    except NotUsable as error:
        file_import.import_discard(draft)
        field = "columns" if columns else "file"
        text = not_usable(error)
        raise ApiError(422, error.code, text, fields={field: text}) from None
    return file_import.import_commit(draft=draft, user=user)


def made(request: HttpRequest, version: Version, wait: int = 0, status: int = 202) -> JsonResponse:
    """The reply about a version that was created, read or not; waits so many seconds until it was read."""

    def is_read() -> bool:
        version.refresh_from_db(fields=["state"])
        return version.state not in services.OPEN_STATES

    wait_until(request, is_read, wait)
    dataset = version.dataset
    url = reverse("datasets:version", args=[dataset.project.slug, dataset.pk, version.number])
    body = {"dataset": dataset.pk, "version": version.number, "id": version.pk, "state": version.state}
    return JsonResponse(body | {"url": url}, status=status)
