"""A run's report, as the API shows it."""

from __future__ import annotations

from typing import Annotated, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router

from evalsite.api.errors import ApiError
from evalsite.api.lists import Id
from judging.people.access import rates_here
from judging.records.access import get_run
from judging.reports.selectors import FieldUnknown
from judging.reports.services import report_by

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
