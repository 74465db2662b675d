"""Human evaluations and their ratings in the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import prefetch_related_objects
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import strip_tags
from django.utils.translation import gettext as _
from ninja import Field, Query, Router, Schema, Status
from pydantic import AwareDatetime

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import OR_FILE, Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.api.uploads import answer_upload, multipart, one_file_of
from evalsite.api.waiting import Wait, wait_until
from evalsite.web.headers import download_headers
from evalsite.web.request_limits import file_too_large
from judging.core.people.study import StudyState
from judging.core.results_file.records import RefusedLine
from judging.people import services, states
from judging.people.access import get_evaluation, rates_here
from judging.people.api_forms import Changed, Confirmable, CriterionIn, EvaluationIn, filled_forms
from judging.people.change_effects import end_effects
from judging.people.import_models import RatingsImport
from judging.people.labels import bad_line_sentence, import_problem
from judging.people.models import Evaluation
from judging.people.progress import Seats, seats_of
from judging.people.rating_export import csv_lines, jsonl_lines, record_page
from judging.people.rating_import import MOST_BYTES, import_begin
from judging.people.selectors import evaluations_page
from judging.people.services import evaluation_create
from judging.runs.api import refuse_unknown

router = Router()
EVALUATION = "projects/{slug}/evaluations/{evaluation}"
RATINGS = "evaluation_ratings"


class EvaluationOut(Schema):
    """`id`: of its run, as in addresses. `about_run`: the run whose answers are rated. `ratings` of `needed`. `state`:
    draft, open, paused or closed. `quota`: items a rater gets at most. `open_to_all`: all raters of the project may
    join. `pilot`: number of items of the pilot while it runs."""

    id: int
    name: str
    open: bool
    state: StudyState
    starts_at: datetime | None
    ends_at: datetime | None
    pilot: int | None
    dataset: int
    version: int
    about_run: int | None
    scheme: str
    items: int
    ratings: int
    needed: int
    overlap: int
    quota: int | None
    open_to_all: bool
    seed: int
    criteria: list[CriterionIn]
    created_at: datetime
    url: str


class StateIn(Schema):
    """`open` opens a draft, resumes a paused evaluation or reopens a closed one."""

    state: Literal["open", "paused", "closed"]


class ScheduleIn(Confirmable):
    """When it opens (a draft) and closes by itself; null: by hand. The pilot is set while it is a draft: number of
    items and user names of its raters; null: none."""

    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    pilot_items: int | None = Field(None, ge=1, lt=2**31)
    pilot_raters: list[str] = Field([], max_length=1000)


class ScheduleOut(EvaluationOut, Changed):
    """The evaluation after it."""


class RatingsImportOut(Schema):
    """`state`: `waiting`, `reading`, `undoing`, `done` or `undone`. `lines`: the first `invalid` ones."""

    id: int
    state: str
    new: int
    already_imported: int
    not_current: int
    invalid: int
    lines: list[dict[str, Any]]
    problem: str


@router.get("projects/{slug}/evaluations", response=Page[EvaluationOut], summary="Human evaluations")
def evaluations(
    request: HttpRequest,
    slug: str,
    limit: Limit = 100,
    cursor: Cursor = "",
    archived: bool = False,
    run: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> dict[str, Any]:
    """Newest first. `run`: only that of this run, and those of its answers."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    page, following = evaluations_page(
        project, archived=archived, before=number_at(cursor), size=limit, run=run
    )
    for evaluation in page:
        evaluation.run.project = project
    return {"items": evaluations_out(page), "next": cursor_of(following)}


@router.post("projects/{slug}/evaluations", response={201: EvaluationOut}, summary="Start a human evaluation")
def create(request: HttpRequest, slug: str, body: EvaluationIn) -> Status[Any]:
    """Draws the items and opens it to its raters. 409: the name is taken."""
    project = access.get_project(request, slug, May.RUN)
    form, criteria = filled_forms(request, project, body)
    try:
        with transaction.atomic():
            evaluation = evaluation_create(
                project=project,
                name=form.cleaned_data["name"],
                choice=form.choice(),
                criteria=[criterion.criterion() for criterion in criteria],
                raters=list(form.cleaned_data["raters"]),
                user=access.signed_in(request),
                terms=form.terms(),
            )
    except IntegrityError:
        text = _("A run with this name already exists. Choose another name.")
        raise ApiError(409, "name_taken", text, fields={"name": text}) from None
    return Status(201, evaluation_out(evaluation))


@router.get(EVALUATION, response=EvaluationOut, summary="A human evaluation and its progress")
def evaluation(request: HttpRequest, slug: str, evaluation: Id) -> dict[str, Any]:
    """Its figures are in the report of the run with the same id."""
    return evaluation_out(get_evaluation(request, slug, evaluation, May.READ_JUDGEMENTS))


@router.post(f"{EVALUATION}/state", response=EvaluationOut, summary="Open, pause or close")
def change_state(request: HttpRequest, slug: str, evaluation: Id, body: StateIn) -> dict[str, Any]:
    """Nothing changes if it is in this state. 409: only an open evaluation can be paused."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    change = _CHANGES.get((row.state, body.state))
    if change is not None:
        change(evaluation=row, by=access.signed_in(request))
    elif row.state != body.state:
        raise ApiError(409, "not_open", _("Only an open evaluation can be paused."))
    return evaluation_out(get_evaluation(request, slug, evaluation, May.RUN))


_CHANGES: dict[tuple[str, str], Callable[..., bool]] = {
    ("draft", "open"): states.study_open,
    ("paused", "open"): states.study_resume,
    ("closed", "open"): services.evaluation_reopen,
    ("open", "paused"): states.study_pause,
    **{(state, "closed"): services.evaluation_close for state in ("draft", "open", "paused")},
}


@router.post(f"{EVALUATION}/schedule", response=ScheduleOut, summary="Dates and pilot")
def change_schedule(request: HttpRequest, slug: str, evaluation: Id, body: ScheduleIn) -> dict[str, Any]:
    """Replaces both dates, and the pilot of a draft; another end of a running evaluation once `confirmed`."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    raters = dict(row.raters.filter(left_at=None).values_list("user__username", "pk"))
    refuse_unknown("pilot_raters", body.pilot_raters, raters)
    pilot_raters = [raters[name] for name in body.pilot_raters]
    schedule = states.Schedule(body.starts_at, body.ends_at, body.pilot_items, pilot_raters)
    states.schedule_check(row, schedule)
    effects = [strip_tags(sentence) for sentence in end_effects(row, body.ends_at)]
    differs = row.state == "draft" or body.ends_at != row.ends_at
    changed = differs and (body.confirmed or not effects)
    if changed:
        states.schedule_change(evaluation=row, schedule=schedule, by=access.signed_in(request))
    now = evaluation_out(get_evaluation(request, slug, evaluation, May.RUN))
    return {"changed": changed, "effects": effects, **now}


@router.post(f"{EVALUATION}/end-pilot", response=EvaluationOut, summary="End the pilot")
def end_pilot(request: HttpRequest, slug: str, evaluation: Id) -> dict[str, Any]:
    """All raters get the rest of the items. Nothing changes if no pilot runs."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    states.pilot_end(evaluation=row, by=access.signed_in(request))
    return evaluation_out(get_evaluation(request, slug, evaluation, May.RUN))


@router.get(
    f"{EVALUATION}/ratings",
    response=Page[dict[str, Any]],
    url_name=RATINGS,
    summary="Ratings",
    openapi_extra=OR_FILE,
)
def ratings(
    request: HttpRequest,
    slug: str,
    evaluation: Id,
    form: Literal["", "jsonl", "csv"] = "",
    names: bool = False,
    history: bool = False,
    texts: bool = False,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> HttpResponseBase:
    """As in the export, oldest first; all of them as a file with `form`. `names=1`: user names instead of pseudonyms
    (organisers only). `history=1`: also ratings that were changed or undone, and skips. `texts=1`: with questions and
    answers."""
    row = get_evaluation(request, slug, evaluation, May.READ_JUDGEMENTS)
    organises = May.RUN in access.permissions(request, row.run.project)
    if rates_here(request, row.run) or (names and not organises):
        raise PermissionDenied
    if form:
        lines = (jsonl_lines if form == "jsonl" else csv_lines)(
            row, names=names, history=history, texts=texts
        )
        headers = download_headers(f"ratings-{row.run_id}.{form}")
        return StreamingHttpResponse(lines, content_type="application/octet-stream", headers=headers)
    options = {"names": names, "history": history, "texts": texts}
    page, following = record_page(row, **options, after=number_at(cursor) or 0, size=limit)
    return JsonResponse({"items": page, "next": cursor_of(following)})


@router.post(
    f"{EVALUATION}/ratings",
    response={202: RatingsImportOut},
    summary="Import ratings",
    openapi_extra=multipart(),
)
def import_ratings(request: HttpRequest, slug: str, evaluation: Id, wait: Wait = 0) -> HttpResponseBase:
    """A file as exported. A rating that is there already changes nothing. `wait`: seconds for the result."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    return answer_upload(request, MOST_BYTES, file_too_large(MOST_BYTES), lambda: _import(request, row, wait))


def _import(request: HttpRequest, evaluation: Evaluation, wait: int) -> HttpResponseBase:
    file = one_file_of(request)
    if (file.size or 0) > MOST_BYTES:
        raise ApiError(413, message=file_too_large(MOST_BYTES))
    taken = import_begin(
        evaluation=evaluation, file=file, file_name=file.name or "", by=access.signed_in(request)
    )

    def has_ended() -> bool:
        taken.refresh_from_db()
        return taken.ended_at is not None

    wait_until(request, has_ended, wait)
    return JsonResponse(ratings_import_out(taken), status=202)


@router.get(
    f"{EVALUATION}/ratings/imports/{{ratings_import}}",
    response=RatingsImportOut,
    summary="An import of ratings",
)
def ratings_import(request: HttpRequest, slug: str, evaluation: Id, ratings_import: Id) -> dict[str, Any]:
    """How far it is, and the lines that were left out."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    return ratings_import_out(get_object_or_404(row.imports, pk=ratings_import))


def evaluations_out(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """Evaluations as the API shows them, with two queries for all."""
    prefetch_related_objects(evaluations, "run__metrics")
    seats = seats_of(evaluations)
    return [_evaluation_out(evaluation, seats.get(evaluation.pk, Seats())) for evaluation in evaluations]


def evaluation_out(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as the API shows it."""
    return evaluations_out([evaluation])[0]


def _evaluation_out(evaluation: Evaluation, seats: Seats) -> dict[str, Any]:
    run = evaluation.run
    return {
        "id": run.pk,
        "name": run.name,
        "open": evaluation.open,
        "state": evaluation.state,
        "starts_at": evaluation.starts_at,
        "ends_at": evaluation.ends_at,
        "pilot": evaluation.pilot_items if evaluation.pilot_below is not None else None,
        "dataset": run.version.dataset_id,
        "version": run.version.number,
        "about_run": evaluation.about_run_id,
        "scheme": evaluation.scheme,
        "items": seats.items,
        "ratings": seats.ratings,
        "needed": seats.needed,
        "overlap": evaluation.overlap,
        "quota": evaluation.quota,
        "open_to_all": evaluation.open_to_all,
        "seed": evaluation.seed,
        "criteria": [
            {
                "name": criterion.name,
                "scale": criterion.scale,
                "categories": list(criterion.categories),
                "both_bad": criterion.both_bad,
                "required": criterion.required,
                "guideline": criterion.guideline,
            }
            for criterion in evaluation.criteria.values()
        ],
        "created_at": run.created_at,
        "url": reverse("people:detail", args=[run.project.slug, run.pk]),
    }


def ratings_import_out(taken: RatingsImport) -> dict[str, Any]:
    """An import of ratings as the API shows it."""
    refused = [RefusedLine(line, code, params) for line, code, params in taken.bad_lines]
    counts = ("state", "new", "already_imported", "not_current", "invalid")
    return {
        "id": taken.pk,
        **{name: getattr(taken, name) for name in counts},
        "lines": [
            {"line": entry.line, "code": entry.code, "message": bad_line_sentence(entry)} for entry in refused
        ],
        "problem": import_problem(taken.problem),
    }
