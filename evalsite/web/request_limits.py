"""Limits the size of requests by their headers, before any of the body is read or written."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from evalsite.api import takes_files
from evalsite.templatetags.show import filesize
from evalsite.web.exchange import BUFFERED
from evalsite.web.incoming import LockedUploadHandler
from evalsite.web.refusals import refusal
from evalsite.web.server import BODY_WAITS, STEP_ASIDE, WHOLE_BODY
from evalsite.web.threads import ThreadsBusy

View = TypeVar("View", bound=Callable[..., Any])
RETRY_SECONDS = 30


class RequestTooLarge(Exception):
    """A request beyond its limit; the text says what to do."""


def upload_page(view: View) -> View:
    """Decorator for a view that accepts files.

    The view must check permission, then call `allow`, then read the body and check the CSRF token (csrf_protect), which
    is in the body.
    """
    marked = csrf_exempt(view)
    marked.takes_files = True  # type: ignore[attr-defined]
    return marked


def allow(request: HttpRequest, most: int, sentence: str) -> None:
    """Let an upload page read a file of up to `most` bytes into a temporary file.

    Raises RequestTooLarge, ThreadsBusy, and OSError if there is not enough disk space.
    """
    _check(request, most + int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE), sentence)
    _check_space(int(request.META.get("CONTENT_LENGTH") or 0))
    handler = LockedUploadHandler(request)
    request.upload_handlers = [handler]
    request.discard_upload = handler.upload_interrupted  # type: ignore[attr-defined]


def file_too_large(most: int) -> str:
    """The message for a file beyond a specific limit."""
    text = _("The file is larger than %(most)s. Nothing was saved. Split it and upload the parts one by one.")
    return text % {"most": filesize(most)}


class LengthMissing(RequestTooLarge):
    """A long body of unknown length."""


class RequestLimitsMiddleware(MiddlewareMixin):
    """Rejects bodies over the limit, and transfers beyond the number that the server can handle at a time.

    Must come before the CSRF middleware, which reads the body.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        discard_upload = getattr(request, "discard_upload", None)
        if discard_upload is not None:  # Django leaves the file of an aborted upload to the garbage collector
            with suppress(OSError):  # its buffered rest may not fit on a full disk
                discard_upload()
        if not response.streaming or int(response.get("Content-Length", str(BUFFERED + 1))) <= BUFFERED:
            return response
        try:
            step_aside(request)
        except ThreadsBusy:
            response.close()
            return _busy(request)
        return response

    def process_view(self, request: HttpRequest, view: Any, *args: Any) -> HttpResponse | None:
        match = request.resolver_match
        if getattr(view, "takes_files", False) or (match is not None and match.view_name in takes_files):
            return None
        most, sentence = _form_limit(request)
        try:
            _check(request, most, sentence)
        except (RequestTooLarge, ThreadsBusy) as error:
            return self.process_exception(request, error)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, LengthMissing):
            return refusal(request, 411, _("The request has no length"), str(error))
        if isinstance(error, RequestTooLarge):
            return _too_large(request, str(error))
        if isinstance(error, UnreadablePostError):  # client gone or too slow, not a server error
            return HttpResponse(status=408)
        return _busy(request) if isinstance(error, ThreadsBusy) else None


def _form_limit(request: HttpRequest) -> tuple[int, str]:
    if request.user.is_authenticated:
        most = int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        sentence = _(
            "Forms are limited to %(most)s. Nothing was saved. Go back in your browser (your text is still "
            "there) and shorten it."
        )
    else:
        most = WHOLE_BODY
        sentence = _(
            "Requests without signing in are limited to %(most)s. Nothing was saved. Sign in and try again."
        )
    return most, sentence % {"most": filesize(most)}


def _check(request: HttpRequest, most: int, sentence: str) -> None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if int(length) > most:
        raise RequestTooLarge(sentence)
    if not request.META.get(BODY_WAITS):
        return
    if "CONTENT_LENGTH" not in request.META:
        text = _(
            "Requests without a Content-Length header are limited to %(most)s. Add the header and try again."
        )
        raise LengthMissing(text % {"most": filesize(WHOLE_BODY)})
    step_aside(request)


def step_aside(request: HttpRequest) -> None:
    """Call before waiting for the client or processing a large file. Raises ThreadsBusy."""
    act = request.META.get(STEP_ASIDE)
    if act is not None:
        act()


def _check_space(length: int) -> None:
    """Require space for two copies: the temporary file and the stored one exist at the same time."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    if 2 * length > free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{free} bytes left for an upload of {length}")


def _too_large(request: HttpRequest, sentence: str) -> HttpResponse:
    return refusal(request, 413, _("The request is too large"), sentence)


def _busy(request: HttpRequest) -> HttpResponse:
    title = _("Too many uploads and downloads at once")
    text = _("Nothing was saved. Try again in a minute.")
    return refusal(request, 503, title, text, retry_after=RETRY_SECONDS)
