"""Headers of every response, including static files."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase


class SameOriginMiddleware:
    """Prevents other sites from loading anything from this one, such as images or scripts."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        answer.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return answer
