"""What an organiser changes while a study runs, in the API: guideline, what stands before the queue, questions, raters
per item, gold and rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema

from evalsite import access
from evalsite.access import May
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.web.paging import newest_first
from judging.core.people.guideline_shift import Shift
from judging.people.access import get_evaluation, get_rater
from judging.people.api_forms import Changed, Confirmable
from judging.people.change_effects import effects_of, version_effects
from judging.people.changes import StudyChange, study_change, study_change_check
from judging.people.guidelines.selectors import VersionLine, version_lines
from judging.people.guidelines.services import GuidelineTexts, guideline_change, guideline_check
from judging.people.models import Evaluation
from judging.people.qualification.models import Qualification
from judging.people.qualification.selectors import entry_of, gold_in_use, training_items
from judging.people.qualification.services import qualification_change, rater_let_in, rater_try_again
from judging.people.qualification.views import RaterStage, stages_of
from judging.people.questions.models import Question
from judging.people.questions.selectors import questions_of
from judging.people.questions.services import question_answer
from judging.runs.api import refuse_unknown

router = Router()
EVALUATION = "projects/{slug}/evaluations/{evaluation}"


class TextsIn(Confirmable):
    """Markdown. `criteria`: {name: its definition}; those that are left out stay as they are. `seen`: the version that
    you changed."""

    guideline: str
    criteria: dict[str, str] = {}
    seen: int


class ShiftOut(Schema):
    """How ratings of the same items shifted with the version: the mean of after − before, or (`is_mean` false) the
    share of values that changed; null before any was rated again."""

    criterion: str
    is_mean: bool
    value: float | None
    low: float | None
    high: float | None


class GuidelineVersionOut(Schema):
    """`ratings`: ordinary ones in force that carry it. `repeats`: its hidden repeats, of which `repeats_rated` are
    rated."""

    version: int
    at: datetime
    by: str | None
    guideline: str
    criteria: dict[str, str]
    ratings: int
    repeats: int
    repeats_rated: int
    shifts: list[ShiftOut]


class GuidelineOut(Schema):
    """The texts in force. `versions`: newest first; none until a running evaluation's guideline was changed."""

    version: int
    guideline: str
    criteria: dict[str, str]
    versions: list[GuidelineVersionOut]


class GuidelineChanged(GuidelineOut, Changed):
    """The guideline after it."""


class EntryIn(Schema):
    """`items` of the qualification (0: none), of which `mark` percent must be right; `training`: numbers of gold
    items."""

    items: int
    mark: int = Field(80, ge=1, le=100)
    training: list[Id] = Field([], max_length=1000)


class StageOut(Schema):
    """Where a rater stands: training, qualification, waiting (too little gold), failed; null: rates. `right` of
    `total` in the newest try; null before its end."""

    rater: str
    stage: str | None
    done: int
    total: int
    tries: int
    right: int | None


class EntryOut(EntryIn):
    raters: list[StageOut]


class QuestionOut(Schema):
    """`item`: its number. `answered_at`: null while it is open; `to_all`: every rater reads the answer."""

    id: int
    rater: str
    item: int
    text: str
    at: datetime
    answer: str
    to_all: bool
    answered_at: datetime | None


class AnswerIn(Schema):
    """Markdown."""

    answer: str
    to_all: bool = False


class ChangeIn(Confirmable):
    """Null: unchanged. `gold_share`: 0…0.5. `rows`: how many are drawn and added. Without `confirmed` nothing
    changes."""

    overlap: int | None = None
    gold_share: float | None = None
    rows: int = Field(0, ge=0)


class ChangeOut(Changed):
    """The evaluation after it."""

    overlap: int
    gold_share: float
    items: int


@router.get(f"{EVALUATION}/guideline", response=GuidelineOut, summary="Guideline and its versions")
def guideline(request: HttpRequest, slug: str, evaluation: Id) -> dict[str, Any]:
    """With the ratings of each version and how they shifted."""
    return _guideline_out(get_evaluation(request, slug, evaluation, May.RUN))


@router.post(f"{EVALUATION}/guideline", response=GuidelineChanged, summary="Change the guideline")
def change_guideline(request: HttpRequest, slug: str, evaluation: Id, body: TextsIn) -> dict[str, Any]:
    """Of a running evaluation, once `confirmed`, it begins a version: raters read it before their next item, and get
    some of their items again without seeing which. 422: somebody has changed it since, or a text names a candidate."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    numbers = {criterion.name: number for number, criterion in row.criteria.items()}
    refuse_unknown("criteria", body.criteria, numbers)
    texts = GuidelineTexts(body.guideline, {numbers[name]: text for name, text in body.criteria.items()})
    differs = guideline_check(evaluation=row, texts=texts, seen=body.seen)
    effects = version_effects(row) if differs else []
    changed = differs and (body.confirmed or not effects)
    if changed:
        guideline_change(evaluation=row, texts=texts, seen=body.seen, by=access.signed_in(request))
    now = _guideline_out(get_evaluation(request, slug, evaluation, May.RUN))
    return {"changed": changed, "effects": effects, **now}


@router.get(f"{EVALUATION}/qualification", response=EntryOut, summary="Training and qualification")
def qualification(request: HttpRequest, slug: str, evaluation: Id) -> dict[str, Any]:
    """What stands before the queue, and where each rater stands; without raters if nothing does."""
    return _entry_out(get_evaluation(request, slug, evaluation, May.RUN))


@router.post(f"{EVALUATION}/qualification", response=EntryOut, summary="Change training and qualification")
def change_qualification(request: HttpRequest, slug: str, evaluation: Id, body: EntryIn) -> dict[str, Any]:
    """Tries under way keep theirs. 422: a training item is no gold item in use."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    ids = dict(gold_in_use(row).filter(number__in=body.training).values_list("number", "pk"))
    refuse_unknown("training", body.training, ids)
    qualification_change(
        evaluation=row,
        training=list(ids.values()),
        items=body.items,
        mark=body.mark / 100,
        by=access.signed_in(request),
    )
    return _entry_out(row)


@router.post(f"{EVALUATION}/raters/{{rater}}/let-in", response=StageOut, summary="Let a rater in")
def let_in(request: HttpRequest, slug: str, evaluation: Id, rater: str) -> dict[str, Any]:
    """`rater`: the pseudonym of one who has failed the qualification."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_let_in(rater=get_rater(row, rater), by=access.signed_in(request))
    return _stage_of(row, rater)


@router.post(f"{EVALUATION}/raters/{{rater}}/try-again", response=StageOut, summary="Give another try")
def try_again(request: HttpRequest, slug: str, evaluation: Id, rater: str) -> dict[str, Any]:
    """`rater`: the pseudonym of one who has failed. 422: too few gold items are left that they have not had."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_try_again(rater=get_rater(row, rater), by=access.signed_in(request))
    return _stage_of(row, rater)


@router.get(f"{EVALUATION}/questions", response=Page[QuestionOut], summary="Raters' questions")
def questions(
    request: HttpRequest,
    slug: str,
    evaluation: Id,
    open: bool = False,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Newest first. `open=1`: only those without an answer."""
    asked = questions_of(get_evaluation(request, slug, evaluation, May.RUN))
    page, following = newest_first(
        asked.filter(answered_at=None) if open else asked, limit, number_at(cursor)
    )
    return {"items": [_question_out(question) for question in page], "next": cursor_of(following)}


@router.post(f"{EVALUATION}/questions/{{question}}/answer", response=QuestionOut, summary="Answer a question")
def answer(request: HttpRequest, slug: str, evaluation: Id, question: Id, body: AnswerIn) -> dict[str, Any]:
    """To its rater, or to all; replaces an earlier answer. 422: a text for raters names a candidate."""
    asked = questions_of(get_evaluation(request, slug, evaluation, May.RUN))
    row = get_object_or_404(asked, pk=question)
    question_answer(question=row, answer=body.answer, to_all=body.to_all, by=access.signed_in(request))
    return _question_out(asked.get(pk=question))


@router.post(f"{EVALUATION}/change", response=ChangeOut, summary="More raters per item, gold or rows")
def change(request: HttpRequest, slug: str, evaluation: Id, body: ChangeIn) -> dict[str, Any]:
    """Says what the change does; applies it with `confirmed`. Ratings so far are kept and count."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    wanted = StudyChange(
        row.overlap if body.overlap is None else body.overlap,
        row.gold_share if body.gold_share is None else body.gold_share,
        body.rows,
    )
    study_change_check(row, wanted)
    effects = effects_of(row, wanted)
    changed = body.confirmed and study_change(evaluation=row, change=wanted, by=access.signed_in(request))
    now = Evaluation.objects.get(pk=row.pk)
    state = {"overlap": now.overlap, "gold_share": now.gold_share, "items": now.items_count}
    return {"changed": changed, "effects": effects, **state}


def _guideline_out(evaluation: Evaluation) -> dict[str, Any]:
    texts = GuidelineTexts.of(evaluation)
    return {
        "version": evaluation.guideline_version,
        "guideline": texts.guideline,
        "criteria": {evaluation.criteria[number].name: text for number, text in texts.criteria.items()},
        "versions": [_version_out(evaluation, line) for line in version_lines(evaluation)],
    }


def _version_out(evaluation: Evaluation, line: VersionLine) -> dict[str, Any]:
    version = line.version
    rated, repeats = line.repeats
    return {
        "version": version.number,
        "at": version.at,
        "by": version.by.username if version.by else None,
        "guideline": version.guideline,
        "criteria": {
            criterion.name: version.criteria.get(str(number), "")
            for number, criterion in evaluation.criteria.items()
        },
        "ratings": line.ratings,
        "repeats": repeats,
        "repeats_rated": rated,
        "shifts": [_shift_out(criterion.name, shift) for criterion, shift in line.shifts],
    }


def _shift_out(criterion: str, shift: Shift) -> dict[str, Any]:
    estimate = shift.estimate
    ends = {"value": estimate.mean, "low": estimate.low, "high": estimate.high}
    return {"criterion": criterion, "is_mean": shift.is_mean, **ends}


def _entry_out(evaluation: Evaluation) -> dict[str, Any]:
    settings = Qualification.objects.filter(evaluation=evaluation).first()
    return {
        "items": settings.items if settings else 0,
        "mark": round(100 * settings.mark) if settings else 80,
        "training": list(training_items(evaluation).values_list("number", flat=True)),
        "raters": [_stage_out(stage) for stage in stages_of(evaluation)],
    }


def _stage_of(evaluation: Evaluation, pseudonym: str) -> dict[str, Any]:
    rater = get_rater(evaluation, pseudonym)
    last = rater.tries.order_by("-number").first()
    return _stage_out(RaterStage(rater, entry_of(evaluation, rater), last))


def _stage_out(stage: RaterStage) -> dict[str, Any]:
    entry, last = stage.entry, stage.last
    return {
        "rater": stage.rater.pseudonym,
        "stage": entry.stage if entry else None,
        "done": entry.done if entry else 0,
        "total": entry.total if entry else 0,
        "tries": last.number if last else 0,
        "right": last.right if last and last.ended_at else None,
    }


def _question_out(question: Question) -> dict[str, Any]:
    return {
        "id": question.pk,
        "rater": question.rater.pseudonym,
        "item": question.item.number,
        "text": question.text,
        "at": question.at,
        "answer": question.answer,
        "to_all": question.to_all,
        "answered_at": question.answered_at,
    }
