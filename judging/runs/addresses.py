"""Addresses of judgements, and what of the filter is in the address of the page that links to them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from judging.runs.filter_form import PAGE_PARAMETERS, form_in
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import Run

_VIEW = "view_of_items"


def judgement_url(run: Run, pk: int, query: str = "") -> str:
    """The page of a judgement of the run; `query` as `Filters.query` gives it."""
    return reverse("runs:judgement", args=(run.project.slug, run.pk, pk)) + query


def items_url(request: HttpRequest, run: Run, query: str = "") -> str:
    """The grid or the list, whichever the reader looked at last."""
    name = "runs:items" if request.COOKIES.get(_VIEW) == "grid" else "runs:judgements"
    return reverse(name, args=(run.project.slug, run.pk)) + query


def keep_view(request: HttpRequest, response: HttpResponse, view: str) -> HttpResponse:
    """The reader looks at the grid, or at the list: in a cookie, which costs the page no query."""
    if request.COOKIES.get(_VIEW) != view:
        response.set_cookie(_VIEW, view, httponly=True, samesite="Lax", secure=request.is_secure())
    return response


def filters_in(request: HttpRequest, run: Run) -> Filters:
    """The filter in the address. Where there is none, nothing is read for it."""
    return form_in(request, run).filters if request.GET.keys() - PAGE_PARAMETERS else ANYTHING


def query_in(request: HttpRequest, run: Run) -> str:
    """The filter and the tab in the address, so that a form leads back to where it was."""
    return filters_in(request, run).query(tab=request.GET.get("tab", ""))
