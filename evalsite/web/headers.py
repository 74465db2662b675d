"""Headers of every response, including static files."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin


class SameOriginMiddleware(MiddlewareMixin):
    """Prevents other sites from loading anything from this one, such as images or scripts."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response
