"""Error responses for requests that the site cannot handle, in one form for pages, htmx and scripts.

They need no database: neither the user nor the session is read.
"""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django_htmx.http import trigger_client_event


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
