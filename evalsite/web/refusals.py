"""Error responses in one form for pages, htmx and scripts: for invalid requests, and while storage is unavailable.

They need no database: neither the user nor the session is read. A view's storage errors are handled by
`UnavailableMiddleware`; those of middleware (the session cannot be read or saved) by `server_error` or `bad_request`,
which are handler500 and handler400.
"""

from __future__ import annotations

import logging
import sys

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import defaults
from django_htmx.http import trigger_client_event

from evalsite import access
from evalsite.api import is_api
from evalsite.api.errors import error_response
from evalsite.storage.errors import StorageProblem, storage_problem

log = logging.getLogger(__name__)
READING = ("GET", "HEAD", "OPTIONS")
UNAVAILABLE = {  # status, seconds until the client may retry, title
    StorageProblem.DISK_FULL: (507, 300, gettext_lazy("The server's disk is full")),
    StorageProblem.DATABASE_BUSY: (503, 5, gettext_lazy("The database is busy")),
    StorageProblem.DATABASE_AWAY: (503, 30, gettext_lazy("The database is not responding")),
    StorageProblem.FILES_AWAY: (503, 60, gettext_lazy("The file storage is not responding")),
}


class RequestRefused(BadRequest):
    """An invalid request; `title` and `text` as in `refusal`.

    handler400 responds, with a link to `address` if given.
    """

    def __init__(self, title: str, text: str, link: str = "", address: str = "") -> None:
        super().__init__(title, text)
        self.title, self.text, self.link, self.address = title, text, link, address


def refusal(
    request: HttpRequest,
    status: int,
    title: str,
    text: str,
    *,
    retry_after: int = 0,
    link: str = "",
    address: str = "",
) -> HttpResponse:
    """Render an error response.

    `title`: the problem, without a full stop. `text`: what was kept and what to do. `retry_after`: seconds. `link`:
    text of a link to `address`, where the user can continue.
    """
    sentence = _("%(title)s. %(text)s") % {"title": title, "text": text}
    if is_api(request):
        return error_response(status, message=sentence, retry_after=retry_after)
    answer: HttpResponse
    if request.headers.get("Accept") == "application/json":
        answer = JsonResponse({"errors": [sentence]}, status=status)
    else:
        page = render_to_string(
            "refused.html", {"title": title, "text": text, "link": link, "address": address}
        )
        answer = HttpResponse(page, status=status)
        trigger_client_event(answer, "toast", {"text": sentence, "kind": "error"})
    if retry_after:
        answer["Retry-After"] = str(retry_after)
    return answer


class UnavailableMiddleware(MiddlewareMixin):
    """Answers storage errors of views, and any error of a page about something that was deleted while it was made."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return unavailable(request, error) or gone(request, error)


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


def gone(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """The response to an error that a deletion explains; None for others."""
    if isinstance(error, Http404 | SuspiciousOperation) or not access.was_deleted(request):
        return None
    log.warning("%s %s: deleted meanwhile: %r", request.method, request.path, error)
    return refusal(
        request,
        404,
        _("This was deleted meanwhile"),
        _("Somebody deleted it, or what it belongs to, after you had opened it."),
        link=_("Go to projects"),
        address=reverse("home"),
    )


def unavailable(request: HttpRequest, error: BaseException) -> HttpResponse | None:
    """The response to a storage error; None for other errors."""
    problem = storage_problem(error)
    if problem is None:
        return None
    log.warning("%s %s: answered with “%s”: %s", request.method, request.path, problem.name.lower(), error)
    status, seconds, title = UNAVAILABLE[problem]
    text = _advice(problem, seconds, reading=request.method in READING)
    return refusal(request, status, str(title), text, retry_after=seconds)


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
