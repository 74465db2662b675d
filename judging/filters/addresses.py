"""URLs of judgements, and the filter in the query string of pages that link to them."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from judging.filters.filter_form import PAGE_PARAMETERS, form_in
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.records.models import Run

_VIEW = "view_of_items"


def judgement_url(run: Run, pk: int, query: str = "") -> str:
    """The URL of a judgement's page; `query` as returned by `Filters.query`."""
    return reverse("runs:judgement", args=(run.project.slug, run.pk, pk)) + query


def items_url(request: HttpRequest, run: Run, query: str = "") -> str:
    """The URL of the grid or the list, whichever the user viewed last."""
    name = "runs:items" if request.COOKIES.get(_VIEW) == "grid" else "runs:judgements"
    return reverse(name, args=(run.project.slug, run.pk)) + query


def remember_view(request: HttpRequest, response: HttpResponse, view: str) -> HttpResponse:
    """Remember whether the user views the grid or the list, in a cookie to avoid a query."""
    if request.COOKIES.get(_VIEW) != view:
        response.set_cookie(
            _VIEW,
            view,
            path=settings.SESSION_COOKIE_PATH,
            httponly=True,
            samesite="Lax",
            secure=request.is_secure(),
        )
    return response


def filters_in(request: HttpRequest, run: Run) -> Filters:
    """The filter in the query string. Makes no queries if there is none."""
    return form_in(request, run).filters if request.GET.keys() - PAGE_PARAMETERS else ANYTHING


def query_in(request: HttpRequest, run: Run) -> str:
    """The query string with filter and tab, so that a form can return to the same place."""
    return filters_in(request, run).query(tab=request.GET.get("tab", ""))
