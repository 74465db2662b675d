"""Uploads to the API: refused by their headers before a byte is read, and answered once if they have a key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.core.exceptions import TooManyFilesSent, ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from evalsite import access
from evalsite.api.errors import ApiError, refused
from evalsite.api.replies import HEADER, once_for
from evalsite.web.request_limits import allow

MULTIPART = "multipart/form-data"


class PartDigests(FileUploadHandler):
    """The SHA-256 of each file of an upload, computed while it arrives."""

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self.parts: list[tuple[str, str, Any]] = []

    def new_file(self, field_name: str, file_name: str, *args: Any, **more: Any) -> None:
        super().new_file(field_name, file_name, *args, **more)
        self.parts.append((field_name, file_name, hashlib.sha256()))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.parts[-1][2].update(raw_data)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None  # the next handler has the file

    def digest(self, request: HttpRequest) -> str:
        """SHA-256 over the fields and files of the request."""
        files = [(field, name, part.hexdigest()) for field, name, part in self.parts]
        return hashlib.sha256(repr((sorted(request.POST.lists()), files)).encode()).hexdigest()


def answer_upload(
    request: HttpRequest, most: int, sentence: str, answer: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    """Read an upload of up to `most` bytes and answer it, or repeat the reply to the same one. Call after permission
    was checked. Raises ApiError, RequestTooLarge (with `sentence`), ThreadsBusy, OSError."""
    if request.content_type != MULTIPART:
        raise ApiError(415, message=_("Send the file as multipart/form-data."))
    allow(request, most, sentence)
    digests = PartDigests(request)
    request.upload_handlers.insert(0, digests)
    try:
        request.FILES  # noqa: B018 - reads the body
    except TooManyFilesSent:
        raise ApiError(413) from None
    token = access.token_of(request)
    if token is None or HEADER not in request.headers:
        return answer()
    return once_for(request, token, digests.digest(request), lambda _request: _answered(answer))


def _answered(answer: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """The reply, refusals included, so that they are repeated too."""
    try:
        return answer()
    except ApiError as error:
        return error.response()
    except ValidationError as error:
        return refused(error)


def files_of(request: HttpRequest) -> list[UploadedFile[bytes]]:
    """The files in the field `file`. Raises ApiError without any."""
    files = request.FILES.getlist("file")
    if not files:
        text = _("Send at least one file, in the field “file”.")
        raise ApiError(422, message=text, fields={"file": text})
    return files


def one_file_of(request: HttpRequest) -> UploadedFile[bytes]:
    """The only file in the field `file`. Raises ApiError."""
    files = files_of(request)
    if len(files) > 1:
        text = _("Send one file, in the field “file”.")
        raise ApiError(422, message=text, fields={"file": text})
    return files[0]


def multipart(**fields: dict[str, Any]) -> dict[str, Any]:
    """The description (`openapi_extra`) of a body with files in `file` and these fields."""
    schema = {
        "type": "object",
        "required": ["file", *(name for name, field in fields.items() if field.pop("required", False))],
        "properties": {"file": {"type": "string", "format": "binary"}, **fields},
    }
    return {"requestBody": {"required": True, "content": {MULTIPART: {"schema": schema}}}}
