"""Gold items in the API."""

from __future__ import annotations

from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest
from ninja import Field, Router, Schema, Status

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.names import join_sentences
from judging.core.people.gold import accepted_for_files
from judging.people.access import get_evaluation, get_item, get_rater
from judging.people.gold import LONGEST_REASON, gold_add, gold_change, gold_of_item, gold_remove, item_at
from judging.people.gold_rule import gold_items_right, gold_rule_change, rater_pause, rater_resume
from judging.people.labels import values_of
from judging.people.models import Evaluation, EvaluationRater, Item
from judging.people.progress import Hits
from judging.people.selectors import items_page

router = Router()
EVALUATION = "projects/{slug}/evaluations/{evaluation}"
GOLD = f"{EVALUATION}/gold"


class KnownIn(Schema):
    """`values`: by criterion a value, a list of accepted ones (the expected one first), or {value, within}, which also
    accepts what is so many steps away. Of marked spans a list of {start, end, label, severity}, or {value, within} with
    it as the value and how far the sum may be off."""

    values: dict[str, Any]
    reason: str = Field("", max_length=LONGEST_REASON)


class GoldIn(KnownIn):
    """`row`: its line; `a` and, side by side, `b`: the candidates; `answer`: the number of a's answer."""

    row: int = Field(ge=1, lt=2**31)
    a: str
    b: str = ""
    answer: int = Field(1, ge=1, lt=2**15)


class GoldRuleIO(Schema):
    """`mark`: percent of gold items that must be right. `rule`: who misses it is told of (tell) or paused (pause)."""

    mark: int = Field(ge=1, le=100)
    rule: Literal["tell", "pause"]


class RaterOut(Schema):
    """`right` of `gold` items, all known answers hit, since they were last let in again. `missed`: under the mark."""

    rater: str
    paused: bool
    missed: bool
    right: int
    gold: int


class GoldOut(Schema):
    """`item`: its number in the evaluation. `removed`: raters no longer get it."""

    item: int
    row: int
    a: str
    b: str | None
    values: dict[str, Any]
    reason: str
    removed: bool


@router.get(GOLD, response=Page[GoldOut], summary="Gold items")
def gold(
    request: HttpRequest, slug: str, evaluation: Id, limit: Limit = 100, cursor: Cursor = ""
) -> dict[str, Any]:
    """By number, also removed ones."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    page, following = items_page(row, "gold", number_at(cursor) or 0, size=limit)
    return {"items": [_gold_out(row, item) for item in page], "next": cursor_of(following)}


@router.post(GOLD, response={201: GoldOut}, summary="Add a gold item")
def add(request: HttpRequest, slug: str, evaluation: Id, body: GoldIn) -> Status[Any]:
    """An ordinary item with these answers becomes gold if no rater has had it."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    try:
        item = item_at(row, body.row, body.a, body.b, body.answer)
        gold = gold_of_item(row, item, body.values, body.reason)
        gold_add(evaluation=row, gold=[gold], by=access.signed_in(request))
    except ValidationError as error:
        raise _refused(error) from None
    stored = Item.objects.filter(
        evaluation=row, response=item.response, other_response=item.other_response, repeat_of=None
    )
    return Status(201, _gold_out(row, stored.exclude(gold="").latest("pk")))


@router.post(f"{GOLD}/{{item}}", response=GoldOut, summary="Change a gold item")
def change(request: HttpRequest, slug: str, evaluation: Id, item: Id, body: KnownIn) -> dict[str, Any]:
    """Hits are counted with the new answers. A removed item is used again."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    stored = _gold_item(row, item)
    try:
        gold = gold_of_item(row, stored, body.values, body.reason)
    except ValidationError as error:
        raise _refused(error) from None
    gold_change(item=stored, gold=gold, by=access.signed_in(request))
    return _gold_out(row, _gold_item(row, item))


@router.delete(f"{GOLD}/{{item}}", response={204: None}, summary="Remove a gold item")
def remove(request: HttpRequest, slug: str, evaluation: Id, item: Id) -> Status[None]:
    """Raters no longer get it; its ratings are kept and count in no gold hits."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    gold_remove(item=_gold_item(row, item), by=access.signed_in(request))
    return Status(204, None)


@router.post(f"{EVALUATION}/gold-rule", response=GoldRuleIO, summary="Pass mark of gold")
def change_rule(request: HttpRequest, slug: str, evaluation: Id, body: GoldRuleIO) -> GoldRuleIO:
    """It acts at each rater's next gold item, after at least five."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    gold_rule_change(evaluation=row, mark=body.mark / 100, rule=body.rule, by=access.signed_in(request))
    return body


@router.get(f"{EVALUATION}/raters", response=Page[RaterOut], summary="Raters and their gold")
def raters(
    request: HttpRequest, slug: str, evaluation: Id, limit: Limit = 100, cursor: Cursor = ""
) -> dict[str, Any]:
    """By pseudonym, without those who left."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    raters = row.raters.filter(left_at=None, pk__gt=number_at(cursor) or 0).order_by("pk")
    page, right = list(raters[: limit + 1]), gold_items_right(row)
    following = page[limit - 1].pk if len(page) > limit else None
    return {"items": [_rater_out(rater, right) for rater in page[:limit]], "next": cursor_of(following)}


@router.post(f"{EVALUATION}/raters/{{rater}}/pause", response=RaterOut, summary="Pause a rater")
def pause_rater(request: HttpRequest, slug: str, evaluation: Id, rater: str) -> dict[str, Any]:
    """`rater`: the pseudonym. Ratings and drafts are kept."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_pause(rater=get_rater(row, rater), by=access.signed_in(request))
    return _rater_out(get_rater(row, rater), gold_items_right(row))


@router.post(f"{EVALUATION}/raters/{{rater}}/resume", response=RaterOut, summary="Let a rater go on")
def resume_rater(request: HttpRequest, slug: str, evaluation: Id, rater: str) -> dict[str, Any]:
    """`rater`: the pseudonym. The pass mark counts gold from now on."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    rater_resume(rater=get_rater(row, rater), by=access.signed_in(request))
    return _rater_out(get_rater(row, rater), gold_items_right(row))


def _rater_out(rater: EvaluationRater, right: dict[int, Hits]) -> dict[str, Any]:
    hits = right.get(rater.pk, Hits())
    return {
        "rater": rater.pseudonym,
        "paused": rater.paused_at is not None,
        "missed": rater.gold_failed_at is not None,
        "right": hits.hit,
        "gold": hits.of,
    }


def _gold_item(evaluation: Evaluation, number: int) -> Item:
    item = get_item(evaluation, number)
    if not item.gold:
        raise Http404
    return item


def _refused(error: ValidationError) -> ApiError:
    text = join_sentences(error.messages)
    return ApiError(422, message=text, fields={"values": text})


def _gold_out(evaluation: Evaluation, item: Item) -> dict[str, Any]:
    criteria = evaluation.criteria
    return {
        "item": item.number,
        "row": item.row.line,
        "a": item.response.candidate.name,
        "b": item.other_response.candidate.name if item.other_response else None,
        "values": {
            criteria[number].name: accepted_for_files(accepted)
            for number, accepted in values_of(item.gold).items()
        },
        "reason": item.gold_reason,
        "removed": item.gold_removed,
    }
