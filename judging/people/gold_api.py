"""Gold items in the API."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest
from ninja import Field, Router, Schema, Status

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from judging.people.access import get_evaluation, get_item
from judging.people.gold import LONGEST_REASON, gold_add, gold_change, gold_of_item, gold_remove, item_at
from judging.people.labels import values_of
from judging.people.models import Evaluation, Item
from judging.people.selectors import items_page

router = Router()
GOLD = "projects/{slug}/evaluations/{evaluation}/gold"


class KnownIn(Schema):
    """`values`: by criterion a value, a list of accepted ones (the expected one first), or {value, within}, which also
    accepts what is so many steps away."""

    values: dict[str, Any]
    reason: str = Field("", max_length=LONGEST_REASON)


class GoldIn(KnownIn):
    """`row`: its line; `a` and, side by side, `b`: the candidates; `answer`: the number of a's answer."""

    row: int = Field(ge=1, lt=2**31)
    a: str
    b: str = ""
    answer: int = Field(1, ge=1, lt=2**15)


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
        known = gold_of_item(row, item, body.values, body.reason)
        gold_add(evaluation=row, gold=[known], by=access.signed_in(request))
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
        known = gold_of_item(row, stored, body.values, body.reason)
    except ValidationError as error:
        raise _refused(error) from None
    gold_change(item=stored, gold=known, by=access.signed_in(request))
    return _gold_out(row, _gold_item(row, item))


@router.delete(f"{GOLD}/{{item}}", response={204: None}, summary="Remove a gold item")
def remove(request: HttpRequest, slug: str, evaluation: Id, item: Id) -> Status[None]:
    """Raters no longer get it; its ratings are kept and count in no gold hits."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    gold_remove(item=_gold_item(row, item), by=access.signed_in(request))
    return Status(204, None)


def _gold_item(evaluation: Evaluation, number: int) -> Item:
    item = get_item(evaluation, number)
    if not item.gold:
        raise Http404
    return item


def _refused(error: ValidationError) -> ApiError:
    text = " ".join(error.messages)
    return ApiError(422, message=text, fields={"values": text})


def _gold_out(evaluation: Evaluation, item: Item) -> dict[str, Any]:
    criteria = evaluation.criteria
    return {
        "item": item.number,
        "row": item.row.line,
        "a": item.response.candidate.name,
        "b": item.other_response.candidate.name if item.other_response else None,
        "values": {criteria[number].name: known for number, known in values_of(item.gold).items()},
        "reason": item.gold_reason,
        "removed": item.gold_removed,
    }
