"""Error pages while storage is unavailable: database locked or unreachable, disk full, bucket not responding.

A view's errors are handled by `UnavailableMiddleware`; those of middleware (the session cannot be read or saved) by
`server_error` or `bad_request`, which are handler500 and handler400.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import defaults

from evalsite.storage.errors import StorageProblem, storage_problem
from evalsite.web.refusals import RequestRefused, refusal

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

log = logging.getLogger("evalsite.web.unavailable")
READING = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The response to a storage problem. `title` is translated when shown."""

    status: int
    retry_after: int  # seconds
    title: StrOrPromise


ANSWERS = {
    StorageProblem.DISK_FULL: Unavailable(507, 300, gettext_lazy("The server's disk is full")),
    StorageProblem.DATABASE_BUSY: Unavailable(503, 5, gettext_lazy("The database is busy")),
    StorageProblem.DATABASE_AWAY: Unavailable(503, 30, gettext_lazy("The database is not responding")),
    StorageProblem.FILES_AWAY: Unavailable(503, 60, gettext_lazy("The file storage is not responding")),
}


class UnavailableMiddleware:
    """Answers storage errors of views."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return unavailable(request, error)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500; Django calls it while the exception is being handled."""
    error = sys.exc_info()[1]
    answer = unavailable(request, error) if error else None
    return answer or defaults.server_error(request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400. Django treats a session that could not be saved as deleted."""
    if isinstance(exception, RequestRefused):
        refused = exception
        return refusal(request, 400, refused.title, refused.text, link=refused.link, address=refused.address)
    return unavailable(request, exception) or defaults.bad_request(request, exception)


def unavailable(request: HttpRequest, error: BaseException) -> HttpResponse | None:
    """The response to a storage error; None for other errors."""
    problem = storage_problem(error)
    if problem is None:
        return None
    log.warning("%s %s: answered with “%s”: %s", request.method, request.path, problem.name.lower(), error)
    found = ANSWERS[problem]
    text = _advice(problem, found.retry_after, reading=request.method in READING)
    return refusal(request, found.status, str(found.title), text, retry_after=found.retry_after)


def _advice(problem: StorageProblem, seconds: int, *, reading: bool) -> str:
    """What was kept and what to do. A change may have been stored before something after it failed."""
    if problem is StorageProblem.DISK_FULL and reading:
        return _(
            "Nothing is lost. Ask an administrator to free disk space on the server, then reload the page."
        )
    if problem is StorageProblem.DISK_FULL:
        return _(
            "Your last change may not have been saved; everything saved before it is safe. What you typed is still in "
            "the form. Ask an administrator to free disk space on the server, then return to the form and try again."
        )
    if reading:
        return _(
            "Nothing is lost. Reload the page in %(seconds)s seconds. If that does not help, contact an administrator."
        ) % {"seconds": seconds}
    return _(
        "Your last change may not have been saved; everything saved before it is safe. What you typed is still in the "
        "form: return to it and try again in %(seconds)s seconds. If that does not help, contact an administrator."
    ) % {"seconds": seconds}
