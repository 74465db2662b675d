"""What an organiser does with a study's raters, in the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import Id
from judging.people.access import get_evaluation
from judging.people.models import Evaluation, EvaluationRater
from judging.people.set_aside import LONGEST_REASON, rater_count_again, rater_set_aside

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


@router.post(
    f"{EVALUATION}/raters/{{rater}}/set-aside", response=SetAsideOut, summary="Set a rater's ratings aside"
)
def set_aside(
    request: HttpRequest, slug: str, evaluation: Id, rater: str, body: SetAsideIn
) -> dict[str, Any]:
    """`rater`: the pseudonym. The ratings are kept and shown, count nowhere, and their places return to the queue."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    try:
        rater_set_aside(rater=_rater(row, rater), reason=body.reason, by=access.signed_in(request))
    except ValidationError as error:
        fields = {name: " ".join(texts) for name, texts in error.message_dict.items()}
        raise ApiError(422, message=" ".join(error.messages), fields=fields) from None
    return _set_aside_out(_rater(row, rater))


@router.post(
    f"{EVALUATION}/raters/{{rater}}/count-again",
    response=SetAsideOut,
    summary="Count a rater's ratings again",
)
def count_again(request: HttpRequest, slug: str, evaluation: Id, rater: str) -> dict[str, Any]:
    """`rater`: the pseudonym. Ratings whose places were given to others meanwhile are extra."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_count_again(rater=_rater(row, rater), by=access.signed_in(request))
    return _set_aside_out(_rater(row, rater))


def _rater(evaluation: Evaluation, pseudonym: str) -> EvaluationRater:
    return get_object_or_404(evaluation.raters.all(), pseudonym=pseudonym)


def _set_aside_out(rater: EvaluationRater) -> dict[str, Any]:
    return {
        "rater": rater.pseudonym,
        "set_aside_at": rater.set_aside_at,
        "reason": rater.set_aside_reason,
    }
