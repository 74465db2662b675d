"""A request that the site cannot take now, or not like this: one answer for pages, htmx and scripts.

It needs no database: neither the reader's account nor the session is looked at.
"""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django_htmx.http import trigger_client_event


class RequestRefused(BadRequest):
    """A request that a view cannot make sense of: `title` and `text` as in `refusal`. handler400 answers, with a link
    to `address`, if there is one."""

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
    """`title`: what is wrong, without a full stop. `text`: what was kept and what to do. `retry_after`: seconds.
    `link`: words of a link to `address`, where the reader may go on."""
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
