"""What an organiser does with a study's raters, in the API."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, datetime
from typing import Any, Literal

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema

from evalsite import access
from evalsite.access import May
from evalsite.api.lists import OR_FILE, Cursor, Id, Limit, Page, page_after
from evalsite.web.headers import download_headers
from judging.core.people.quality import Figure
from judging.core.people.work import WorkDay
from judging.people.access import get_evaluation, get_rater
from judging.people.models import Evaluation, EvaluationRater
from judging.people.payment import COLUMNS, payment_file, payment_row, rater_days
from judging.people.rater_figures import rater_figures
from judging.people.set_aside import LONGEST_REASON, rater_count_again, rater_set_aside
from judging.people.thresholds import SET, thresholds_change, thresholds_of
from judging.people.timeline import timeline_of

router = Router()
EVALUATION = "projects/{slug}/evaluations/{evaluation}"


class SetAsideIn(Schema):
    """Why the ratings are set aside."""

    reason: str = Field(min_length=1, max_length=LONGEST_REASON)


class SetAsideOut(Schema):
    """`set_aside_at`: null if the ratings count."""

    rater: str
    set_aside_at: datetime | None
    reason: str


class FigureOut(Schema):
    """A figure of a rater. `p`: one-sided, against the threshold; `flagged` after correction over all of them."""

    rater: str
    figure: str
    criterion: str | None
    value: float | None
    low: float | None
    high: float | None
    threshold: float
    of: int
    p: float | None
    flagged: bool


@router.post(
    f"{EVALUATION}/raters/{{rater}}/set-aside", response=SetAsideOut, summary="Set a rater's ratings aside"
)
def set_aside(
    request: HttpRequest, slug: str, evaluation: Id, rater: str, body: SetAsideIn
) -> dict[str, Any]:
    """`rater`: the pseudonym. The ratings are kept and shown, count nowhere, and their places return to the queue."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_set_aside(
        rater=get_rater(row, rater, former=True), reason=body.reason, by=access.signed_in(request)
    )
    return _set_aside_out(get_rater(row, rater, former=True))


@router.post(
    f"{EVALUATION}/raters/{{rater}}/count-again",
    response=SetAsideOut,
    summary="Count a rater's ratings again",
)
def count_again(request: HttpRequest, slug: str, evaluation: Id, rater: str) -> dict[str, Any]:
    """`rater`: the pseudonym. Ratings whose places were given to others meanwhile are extra."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_count_again(rater=get_rater(row, rater, former=True), by=access.signed_in(request))
    return _set_aside_out(get_rater(row, rater, former=True))


class ThresholdsIO(Schema):
    """Where raters' figures stand out: shares 0…1, `time` of the others' median, `agreement` below the others' mean,
    `deviation` in steps of 1–5. Null: unchanged."""

    time: float | None = None
    side: float | None = None
    value: float | None = None
    agreement: float | None = None
    deviation: float | None = None
    repeats: float | None = None


@router.get(f"{EVALUATION}/thresholds", response=ThresholdsIO, summary="Thresholds of raters' figures")
def thresholds(request: HttpRequest, slug: str, evaluation: Id) -> dict[str, float]:
    """That of gold is its pass mark."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    return {name: getattr(thresholds_of(row), name) for name in SET}


@router.post(f"{EVALUATION}/thresholds", response=ThresholdsIO, summary="Change thresholds")
def change_thresholds(
    request: HttpRequest, slug: str, evaluation: Id, body: ThresholdsIO
) -> dict[str, float]:
    """Flags follow them."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    values = {name: value for name, value in body.dict().items() if value is not None}
    thresholds_change(evaluation=row, values=values, by=access.signed_in(request))
    return thresholds(request, slug, evaluation)


@router.get(f"{EVALUATION}/figures", response=Page[FigureOut], summary="Raters' figures")
def figures(
    request: HttpRequest, slug: str, evaluation: Id, limit: Limit = 100, cursor: Cursor = ""
) -> dict[str, Any]:
    """By rater. Those of a large evaluation may lag behind while a worker computes newer ones."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    pseudonyms = dict(row.raters.values_list("pk", "pseudonym"))
    figures = [
        figure for own in rater_figures(row).by_rater.values() for figure in own if figure.rater in pseudonyms
    ]
    page, following = page_after(figures, _place_of_figure, limit, cursor)
    return {
        "items": [_figure_out(row, pseudonyms[figure.rater], figure) for figure in page],
        "next": following,
    }


def _place_of_figure(figure: Figure) -> list[Any]:
    return [figure.rater, figure.name, -1 if figure.criterion is None else figure.criterion]


def _figure_out(evaluation: Evaluation, pseudonym: str, figure: Figure) -> dict[str, Any]:
    return {
        "rater": pseudonym,
        "figure": figure.name,
        "criterion": None if figure.criterion is None else evaluation.criteria[figure.criterion].name,
        **{
            name: getattr(figure, name)
            for name in ("value", "low", "high", "threshold", "of", "p", "flagged")
        },
    }


class DayOut(Schema):
    """Ratings of a day in the site's time zone."""

    day: date
    items: int
    extra: int
    gold: int
    repeats: int


class ProgressOut(Schema):
    """`missing`: {ratings: number of items that lack so many}; `a_day`: ratings in 24 hours over the last seven days;
    `end`: when the rest is done at that pace; `late`: after `ends_at`. Both null if it can't be said."""

    days: list[DayOut]
    missing: dict[int, int]
    a_day: float | None
    end: datetime | None
    late: bool


@router.get(f"{EVALUATION}/progress", response=ProgressOut, summary="Ratings by day and forecast")
def study_progress(request: HttpRequest, slug: str, evaluation: Id) -> dict[str, Any]:
    """Without ratings that are set aside; days newest first."""
    row = get_evaluation(request, slug, evaluation, May.READ_JUDGEMENTS)
    timeline = timeline_of(row)
    return asdict(timeline) | {"missing": dict(timeline.missing)}


@router.get(
    f"{EVALUATION}/payment",
    response=Page[dict[str, Any]],
    summary="Payment sheet",
    openapi_extra=OR_FILE,
)
def payment(
    request: HttpRequest,
    slug: str,
    evaluation: Id,
    form: Literal["", "csv", "xlsx"] = "",
    names: bool = False,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> HttpResponseBase:
    """What each rater worked on each day in the site's time zone; as a file with `form`. `rated` is the sum of `items`,
    `extra`, `set_aside`, `gold`, `training` and `repeats`. `names=1`: user names instead of pseudonyms."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    if form:
        headers = download_headers(f"payment-{row.run_id}.{form}")
        content = payment_file(row, form, names=names)
        return StreamingHttpResponse(content, content_type="application/octet-stream", headers=headers)
    page, following = page_after(rater_days(row), _place_of_day, limit, cursor)
    rows = [dict(zip(COLUMNS, payment_row(*rater_day, names=names), strict=True)) for rater_day in page]
    return JsonResponse({"items": rows, "next": following})


def _place_of_day(rater_day: tuple[EvaluationRater, WorkDay]) -> list[Any]:
    rater, day = rater_day
    return [rater.pk, day.day.isoformat()]


def _set_aside_out(rater: EvaluationRater) -> dict[str, Any]:
    return {
        "rater": rater.pseudonym,
        "set_aside_at": rater.set_aside_at,
        "reason": rater.set_aside_reason,
    }
