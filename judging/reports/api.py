"""A run's report, as the API shows it."""

from __future__ import annotations

from typing import Annotated, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema

from evalsite.api.errors import ApiError
from evalsite.api.lists import Id
from judging.core.requirements import RequirementError
from judging.people.access import rates_here
from judging.records.access import get_run
from judging.reports.ci import CiOptions, ci_files
from judging.reports.comparison.results import FEW
from judging.reports.figures import for_page
from judging.reports.selectors import FieldUnknown
from judging.reports.services import report_by
from judging.reports.views import file_response

router = Router()
SITE = r"^(https?://[^\s\"<>()\[\]]+)?$"


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


class CiOut(Schema):
    """`status`: 0 if all requirements are met, 3 if one is not, 4 if one is undecided. `files`: {name: text}."""

    status: int
    files: dict[str, str]


@router.get("projects/{slug}/runs/{run}/ci", response=CiOut, summary="A report for continuous integration")
def ci(
    request: HttpRequest,
    slug: str,
    run: Id,
    require: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006
    baseline: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    texts: bool = False,
    site: Annotated[str, Query(max_length=200, pattern=SITE)] = "",
) -> dict[str, Any]:
    """`report.html`, `report.json`, `junit.xml` and `summary.md`, without answers unless `texts=1`. `baseline`: an
    earlier run to compare with; `site`: the address that links begin with."""
    row = get_run(request, slug, run)
    before = None if baseline is None else get_run(request, slug, baseline)
    if any(rates_here(request, each) for each in (row, before) if each):
        raise PermissionDenied
    if before and row.total + before.total > FEW:
        text = _("The runs are too large to be compared during a request. Compare them on their page.")
        raise ApiError(422, "too_many", text, fields={"baseline": text})
    try:
        files, status = ci_files(row, CiOptions(require, before, texts, site))
    except RequirementError as error:
        raise ApiError(422, message=str(error), fields={"require": str(error)}) from None
    return {"status": status, "files": {name: content.decode() for name, content in files.items()}}
