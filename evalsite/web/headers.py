"""Headers of every response, including static files, and of downloads; and which requests htmx made."""

from __future__ import annotations

import re

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import content_disposition_header


class SameOriginMiddleware(MiddlewareMixin):
    """Prevents other sites from loading anything from this one, such as images or scripts."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


def part_wanted(request: HttpRequest) -> bool:
    """Whether htmx requests only a part of the page."""
    return bool(request.htmx)  # type: ignore[attr-defined]  # set by HtmxMiddleware


def download_headers(file_name: str) -> dict[str, str]:
    """The header of a response that browsers save as a file."""
    return {"Content-Disposition": content_disposition_header(True, file_name) or ""}


def file_stem(name: str) -> str:
    """A name without characters that are impractical in file names; empty if none is left."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")
