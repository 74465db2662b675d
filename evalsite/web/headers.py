"""Headers of every response, including static files, and of downloads; and which requests htmx made."""

from __future__ import annotations

import re
import unicodedata

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import content_disposition_header


class SameOriginMiddleware(MiddlewareMixin):
    """Prevents other sites from loading anything from this one, such as images or scripts."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class NoStoreMiddleware(MiddlewareMixin):
    """Keeps browsers and proxies from storing pages and downloads. Static files are answered before it."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers["Cache-Control"] = "private, no-store"
        return response


def part_wanted(request: HttpRequest) -> bool:
    """Whether htmx requests only a part of the page."""
    return bool(request.htmx)  # type: ignore[attr-defined]  # set by HtmxMiddleware


_UNSAFE_IN_FILE_NAMES = re.compile(r"[<>:\"/\\|?*`$&;'%]")


def download_headers(file_name: str) -> dict[str, str]:
    """The header of a response that browsers save as a file."""
    return {"Content-Disposition": content_disposition_header(True, safe_file_name(file_name)) or ""}


def safe_file_name(name: str) -> str:
    """A file name without characters that systems forbid, shells interpret or readers cannot see."""
    visible = "".join("-" if unicodedata.category(letter)[0] == "C" else letter for letter in name)
    return _UNSAFE_IN_FILE_NAMES.sub("-", visible).lstrip("-. ") or "file"


def file_stem(name: str) -> str:
    """A name without characters that are impractical in file names; empty if none is left."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")
