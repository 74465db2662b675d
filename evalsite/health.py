"""For supervisors and load balancers: does this process answer, and does its database?"""

from __future__ import annotations

from collections.abc import Callable

from django.db import DatabaseError, close_old_connections, connection
from django.http import HttpRequest, HttpResponse


class HealthMiddleware:
    """Answers /healthz and /readyz before anything else: a probe knows the machine's address, not the site's name,
    and speaks no HTTPS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/healthz":
            return _told("ok")
        if request.path == "/readyz":
            return ready()
        return self.get_response(request)


def ready() -> HttpResponse:
    """200 if the database answers, else 503; the next one asks over a new connection."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        close_old_connections()
        return _told("the database does not answer", 503)
    return _told("ok")


def _told(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
