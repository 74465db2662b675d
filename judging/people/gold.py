"""Gold items: items with known answers, added by hand or from a JSON Lines file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max
from django.utils.translation import gettext as _

from datasets.models import Candidate, Response, Row
from evalsite.accounts.models import User
from judging.core.people.criteria import Criterion, ValuesRefused, accepted
from judging.core.values import Value
from judging.people.assignments import locked
from judging.people.labels import problems_of
from judging.people.models import Evaluation, Item
from judging.people.sampling import Thing
from judging.people.selectors import criteria_of
from judging.people.services import Gold, gold_item
from judging.runs.models import Run, RunCandidate

LONGEST_FILE = 20_000_000


@dataclass(frozen=True, slots=True)
class WrongLine:
    """A rejected line and the reason."""

    line: int
    why: str


@transaction.atomic
def gold_add(*, evaluation: Evaluation, gold: Sequence[Gold], by: User) -> int:
    """Add gold items; an ordinary item becomes gold if no rater has had it yet.

    Returns how many. Raises ValidationError for an item that a rater has had.
    """
    evaluation = locked(evaluation)
    number = Item.objects.filter(evaluation=evaluation).aggregate(last=Max("number"))["last"] or 0
    for one in gold:
        number += 1
        if not _gilded(evaluation, one):
            gold_item(evaluation, one, number=number, rank=number, side=1 + number % 2).save()
    return len(gold)


def _gilded(evaluation: Evaluation, gold: Gold) -> bool:
    thing = gold.thing
    there = Item.objects.filter(evaluation=evaluation, row=thing.row, repeat_of=None)
    item = there.filter(response=thing.response, other_response=thing.other).first()
    if item is None:
        if thing.other and there.filter(response=thing.other, other_response=thing.response).exists():
            raise ValidationError(_("This pair exists in the opposite order: swap the two answers."))
        return False
    if item.needed and item.dealt:
        raise ValidationError(_("A rater has already seen this item, so it cannot become gold."))
    if item.needed:
        _leaves_the_sample(evaluation, item)
    item.gold, item.needed, item.free, item.drawn_with = gold.values_json, 0, 0, None
    item.save(update_fields=["gold", "needed", "free", "drawn_with"])
    return True


def _leaves_the_sample(evaluation: Evaluation, item: Item) -> None:
    item.repeats.all().delete()
    Evaluation.objects.filter(pk=evaluation.pk).update(items_count=F("items_count") - 1)
    asked = item.needed * evaluation.run.metrics.count()
    Run.objects.filter(pk=evaluation.run_id).update(total=F("total") - asked)


def gold_of(
    evaluation: Evaluation, line: Any, a: Any, b: Any, values: Mapping[str, Any], answer: Any = 1
) -> Gold:
    """Make gold from names: the row's line, the candidate (or two), and {criterion name: value}; in values, `A` is `a`.

    Raises ValidationError with a message for users.
    """
    return gold_of_item(evaluation, item_at(evaluation, line, a, b, answer), values)


def gold_of_item(evaluation: Evaluation, item: Item, values: Mapping[str, Any]) -> Gold:
    """Make gold from an item and {criterion name: value}. Raises ValidationError with a message for users."""
    thing = Thing(item.row_id, item.response_id, item.other_response_id)
    return Gold(thing, _known(criteria_of(evaluation), values))


def item_at(evaluation: Evaluation, line: Any, a: Any, b: Any, answer: Any = 1) -> Item:
    """An unsaved item with a row and its answers. Raises ValidationError with a message for users."""
    row = _row(evaluation, line)
    first = _response(evaluation, row, a, answer)
    other = _response(evaluation, row, b, 1) if evaluation.scheme else None
    return Item(evaluation=evaluation, row=row, response=first, other_response=other)


def _row(evaluation: Evaluation, line: Any) -> Row:
    whole = isinstance(line, int) and not isinstance(line, bool) and 0 < line < 2**31
    found = (
        Row.objects.filter(version=evaluation.run.version_id, line=line, valid=True).first()
        if whole
        else None
    )
    if found is None:
        raise ValidationError(_("The version has no valid row with this number."))
    return found


def _response(evaluation: Evaluation, row: Row, name: Any, number: Any) -> Response:
    taking_part = RunCandidate.objects.filter(run=evaluation.run_id).values("candidate")
    candidate = Candidate.objects.filter(pk__in=taking_part, name=str(name)).first()
    response = None
    if candidate and isinstance(number, int) and 0 < number < 2**15:
        found = Response.objects.filter(candidate=candidate, number=number)
        response = found.filter(row=row).first() or found.filter(pk__in=_rated_at(evaluation, row)).first()
    if response is None:
        raise ValidationError(_("The row has no answer of %(name)s in this evaluation.") % {"name": name})
    return response


def _rated_at(evaluation: Evaluation, row: Row) -> list[int]:
    """Ids of the answers in the row's items: references and the other file's answers belong to rows of their own."""
    items = Item.objects.filter(evaluation=evaluation, row=row)
    pairs = items.values_list("response", "other_response")
    return [pk for pair in pairs for pk in pair if pk is not None]


def _known(criteria: Mapping[int, Criterion], values: Mapping[str, Any]) -> dict[int, Value]:
    numbers = {one.name: number for number, one in criteria.items()}
    strange = [name for name in values if name not in numbers]
    if strange:
        raise ValidationError(_("There is no criterion called %(name)s.") % {"name": strange[0]})
    given = {numbers[name]: value for name, value in values.items()}
    chosen = {number: criteria[number] for number in given}
    try:
        known = accepted(chosen, given)
    except ValuesRefused as refused:
        number, why = next(iter(problems_of(refused.codes).items()))
        raise ValidationError(f"{criteria[number].name}: {why}") from None
    if not known:
        raise ValidationError(_("Enter the correct answer for at least one criterion."))
    return known


def gold_read(evaluation: Evaluation, text: str) -> tuple[list[Gold], list[WrongLine]]:
    """Read gold from JSON Lines: {"row": 3, "a": "model", "b": "other", "values": {"Preference": "A>B"}}. Returns
    the gold items and the rejected lines."""
    found: list[Gold] = []
    wrong: list[WrongLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(_gold_in(evaluation, line))
        except ValidationError as error:
            wrong.append(WrongLine(number, " ".join(error.messages)))
    return found, wrong


def _gold_in(evaluation: Evaluation, line: str) -> Gold:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise ValidationError(_("This line is not JSON.")) from None
    if not isinstance(record, dict) or not isinstance(record.get("values"), dict):
        raise ValidationError(_("Each line must be an object with row, a, b and values."))
    return gold_of(
        evaluation,
        record.get("row"),
        record.get("a"),
        record.get("b"),
        record["values"],
        record.get("answer", 1),
    )
