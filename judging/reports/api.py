"""A run's report, as the API shows it."""

from __future__ import annotations

from typing import Annotated, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router

from evalsite.api.errors import ApiError
from evalsite.api.lists import Id
from judging.people.access import rates_here
from judging.records.access import get_run
from judging.reports.figures import for_page
from judging.reports.selectors import FieldUnknown
from judging.reports.services import report_by
from judging.reports.views import file_response

router = Router()


@router.get("projects/{slug}/runs/{run}/report", response=dict[str, Any], summary="The figures of a run")
def report(
    request: HttpRequest,
    slug: str,
    run: Id,
    by: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006
) -> dict[str, Any]:
    """The document of `report --json`, preliminary while the run goes on. `by`: fields to break the figures down by."""
    row = get_run(request, slug, run)
    if rates_here(request, row):
        raise PermissionDenied
    try:
        return report_by(row, by)
    except FieldUnknown:
        text = _("The rows have no field with that name.")
        raise ApiError(422, message=text, fields={"by": text}) from None


@router.get("projects/{slug}/runs/{run}/report/{name}", summary="The report as a file")
def report_file(request: HttpRequest, slug: str, run: Id, name: str) -> HttpResponse:
    """`report.html`, or a table or chart under the name that its link on the page has. 503 `computing` while the
    figures are not computed yet."""
    row = get_run(request, slug, run)
    if rates_here(request, row):
        raise PermissionDenied
    stored = for_page(row)
    if stored is None:
        raise ApiError(503, "computing", retry_after=2)
    return file_response(row, stored, name)
