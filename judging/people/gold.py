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
from evalsite.audit import Action
from evalsite.names import join_sentences, labelled
from judging.core.people.criteria import Criterion, ValuesRefused, accepted
from judging.core.people.gold import SUM_WITHIN, Accepted, KnownSpans, within
from judging.core.people.parts import UnknownLine
from judging.core.people.spans import MOST_SPANS, SEVERITIES, text_of_records
from judging.core.values import Value
from judging.people.assignments import audit, locked, release
from judging.people.blindness import refuse_names
from judging.people.item_criteria import criteria_for, judgements_each, ranking_by_name
from judging.people.labels import problems_of
from judging.people.models import Assignment, AssignmentState, Evaluation, Item, Scheme
from judging.people.pilot import pilot_bound_store
from judging.records.json_text import storable
from judging.records.models import Run, RunCandidate
from judging.records.seal import in_split

LONGEST_FILE = 20_000_000
LONGEST_REASON = 5_000
MOST_OFF = -MOST_SPANS * min(SEVERITIES)
"""The most by which a sum of severities can be off."""


@dataclass(frozen=True, slots=True)
class WrongLine:
    """A rejected line and the reason."""

    line: int
    why: str


@transaction.atomic
def gold_add(*, evaluation: Evaluation, gold: Sequence[Item], by: User | None = None) -> int:
    """Add gold items (as `gold_of_item` returns them); an ordinary item becomes gold if no rater has had it yet.

    Returns how many. Raises ValidationError for an item that a rater has had, or of a judge's train, dev or test rows.
    """
    if in_split(evaluation.run.version).intersection(item.row_id for item in gold):
        raise ValidationError(
            _("This row is a judge's train, dev or test row, and its answers cannot be gold.")
        )
    evaluation = locked(evaluation)
    last = Item.objects.filter(evaluation=evaluation).aggregate(last=Max("number"))["last"] or 0
    for number, item in enumerate(gold, last + 1):
        if not _convert_to_gold(evaluation, item):
            Item.objects.create(
                evaluation=evaluation,
                number=number,
                rank=number,
                row_id=item.row_id,
                response_id=item.response_id,
                other_response_id=item.other_response_id,
                first_side=1 + number % 2 if item.other_response_id else None,
                gold=item.gold,
                gold_reason=item.gold_reason,
                needed=0,
                free=0,
            )
    pilot_bound_store(evaluation)
    if gold:
        audit(Action.GOLD_ADDED, evaluation, by, items=len(gold))
    return len(gold)


@transaction.atomic
def gold_change(*, item: Item, gold: Item, by: User) -> None:
    """Give a gold item the known answers and the reason of `gold` (see `gold_of_item`); a removed one is used again.
    Hits are counted anew."""
    evaluation = locked(item.evaluation_id)
    Item.objects.filter(pk=item.pk).update(gold=gold.gold, gold_reason=gold.gold_reason, gold_removed=False)
    audit(Action.GOLD_CHANGED, evaluation, by, item=item.number)


@transaction.atomic
def gold_remove(*, item: Item, by: User) -> None:
    """Take a gold item out: raters no longer get it, its ratings are kept and count in no hits."""
    evaluation = locked(item.evaluation_id)
    if Item.objects.filter(pk=item.pk, gold_removed=False).exclude(gold="").update(gold_removed=True):
        release(list(Assignment.objects.filter(item=item, state=AssignmentState.LEASED)))
        audit(Action.GOLD_REMOVED, evaluation, by, item=item.number)


def _convert_to_gold(evaluation: Evaluation, gold: Item) -> bool:
    """Turn the stored item with the same answers into gold; False if there is none."""
    response, other = gold.response_id, gold.other_response_id
    items = Item.objects.filter(evaluation=evaluation, row=gold.row_id, repeat_of=None)
    item = items.filter(response=response, other_response=other).first()
    if item is None:
        if other and items.filter(response=other, other_response=response).exists():
            raise ValidationError(_("This pair exists in the opposite order: swap the two answers."))
        return False
    if item.needed and item.assigned:
        raise ValidationError(_("A rater has already seen this item, so it cannot become gold."))
    if item.needed:
        _remove_from_sample(evaluation, item)
    item.gold, item.needed, item.free, item.drawn_with = gold.gold, 0, 0, None
    item.gold_reason, item.gold_removed = gold.gold_reason, False
    item.save(update_fields=["gold", "gold_reason", "gold_removed", "needed", "free", "drawn_with"])
    return True


def _remove_from_sample(evaluation: Evaluation, item: Item) -> None:
    item.repeats.all().delete()
    Evaluation.objects.filter(pk=evaluation.pk).update(items_count=F("items_count") - 1)
    judgements = item.needed * judgements_each(evaluation.criteria.values(), len(item.answers))
    Run.objects.filter(pk=evaluation.run_id).update(total=F("total") - judgements)


def gold_of_item(evaluation: Evaluation, item: Item, values: Mapping[str, Any], reason: str = "") -> Item:
    """The item with its known values, {criterion name: value}; `A` is its response. Nothing is saved.

    Instead of a value there may be a list of accepted ones, the expected one first, or {"value": 4, "within": 1}, which
    also accepts what is one step away. A ranking may be {candidate: place}. Spans are records or their text; `within`
    is how far the sum may be off. Raises ValidationError with a message for users, also for a reason that names a
    candidate: raters read it in training.
    """
    if reason.strip():
        refuse_names(evaluation, [reason])
    criteria = criteria_for(evaluation, item)
    if item.is_ranked:
        values = {name: _by_position(item, sent) for name, sent in values.items()}
    item.gold = json.dumps(_gold_values(criteria, values), ensure_ascii=False)
    item.gold_reason = storable(reason.strip()[:LONGEST_REASON]) or ""
    return item


def _by_position(item: Item, sent: Any) -> Any:
    """A ranking by names of candidates, or several of them, as text; anything else unchanged."""
    if isinstance(sent, list):
        return [_by_position(item, ranking) for ranking in sent]
    if not isinstance(sent, dict):
        return sent
    try:
        return ranking_by_name(item, sent)
    except UnknownLine as unknown:
        name = {"name": unknown.id}
        raise ValidationError(_("The row has no answer of %(name)s in this evaluation.") % name) from None


def item_at(evaluation: Evaluation, line: Any, a: Any, b: Any, answer: Any = 1) -> Item:
    """An unsaved item from names: the row's line and the candidate, or two; where answers are ranked the stored item of
    the row. Raises ValidationError with a message for
    users."""
    row = _row(evaluation, line)
    if evaluation.scheme == Scheme.RANK:
        return _ranked_item(evaluation, row)
    first = _response(evaluation, row, a, answer)
    other = _response(evaluation, row, b, 1) if evaluation.scheme else None
    return Item(evaluation=evaluation, row=row, response=first, other_response=other)


def _ranked_item(evaluation: Evaluation, row: Row) -> Item:
    item = Item.objects.filter(evaluation=evaluation, row=row, repeat_of=None).order_by("pk").first()
    if item is None:
        raise ValidationError(_("This row is not in the sample, so there is nothing to rank."))
    return item


def _row(evaluation: Evaluation, line: Any) -> Row:
    whole = isinstance(line, int) and not isinstance(line, bool) and 0 < line < 2**31
    row = (
        Row.objects.filter(version=evaluation.run.version_id, line=line, valid=True).first()
        if whole
        else None
    )
    if row is None:
        raise ValidationError(_("The version has no valid row with this number."))
    return row


def _response(evaluation: Evaluation, row: Row, name: Any, number: Any) -> Response:
    taking_part = RunCandidate.objects.filter(run=evaluation.run_id).values("candidate")
    candidate = Candidate.objects.filter(pk__in=taking_part, name=str(name)).first()
    response = None
    if candidate and isinstance(number, int) and 0 < number < 2**15:
        answers = Response.objects.filter(candidate=candidate, number=number)
        response = (
            answers.filter(row=row).first() or answers.filter(pk__in=_rated_at(evaluation, row)).first()
        )
    if response is None:
        raise ValidationError(_("The row has no answer of %(name)s in this evaluation.") % {"name": name})
    return response


def _rated_at(evaluation: Evaluation, row: Row) -> list[int]:
    """Ids of the answers in the row's items: references and the other file's answers belong to rows of their own."""
    items = Item.objects.filter(evaluation=evaluation, row=row)
    pairs = items.values_list("response", "other_response")
    return [pk for pair in pairs for pk in pair if pk is not None]


def _gold_values(criteria: Mapping[int, Criterion], values: Mapping[str, Any]) -> dict[int, Accepted]:
    numbers = {criterion.name: number for number, criterion in criteria.items()}
    strange = [name for name in values if name not in numbers]
    if strange:
        raise ValidationError(_("There is no criterion called %(name)s.") % {"name": strange[0]})
    correct = {
        numbers[name]: known
        for name, sent in values.items()
        if (known := _accepted(criteria[numbers[name]], sent)) is not None
    }
    if not correct:
        raise ValidationError(_("Enter the correct answer for at least one criterion."))
    return correct


def _accepted(criterion: Criterion, sent: Any) -> Accepted | None:
    """The accepted values of a criterion, checked; None if there is none. See `gold_of_item`."""
    if criterion.marks_spans:
        return _known_spans(criterion, sent)
    if isinstance(sent, dict):
        steps = sent.get("within", 0)
        if not sent.keys() <= {"value", "within"} or type(steps) is not int or not 0 <= steps < 10:
            raise ValidationError(
                _("%(name)s: give a value, a list of values, or value and within (0 to 9).")
                % {"name": criterion.name}
            )
        value = _checked(criterion, sent.get("value"))
        sent = None if value is None else within(criterion, value, steps)
    if not isinstance(sent, list):
        return _checked(criterion, sent)
    checked = [value for entry in sent if (value := _checked(criterion, entry)) is not None]
    values = [value for place, value in enumerate(checked) if value not in checked[:place]]
    return values if len(values) > 1 else next(iter(values), None)


def _known_spans(criterion: Criterion, sent: Any) -> KnownSpans | None:
    fields = sent if isinstance(sent, dict) else {"value": sent}
    within = fields.get("within", SUM_WITHIN)
    if not fields.keys() <= {"value", "within"} or type(within) is not int or not 0 <= within <= MOST_OFF:
        text = _("%(name)s: give a list of spans, or value and within (0 to %(most)s).")
        raise ValidationError(text % {"name": criterion.name, "most": MOST_OFF})
    value = fields.get("value")
    spans = _checked(criterion, text_of_records(value) if isinstance(value, list) else value)
    return None if spans is None else KnownSpans(spans=str(spans), within=within)


def _checked(criterion: Criterion, value: Any) -> Value | None:
    try:
        return accepted({0: criterion}, {0: value}).get(0)
    except ValuesRefused as refused:
        why = next(iter(problems_of(refused).values()))
        raise ValidationError(labelled(criterion.name, why)) from None


def gold_read(evaluation: Evaluation, text: str) -> tuple[list[Item], list[WrongLine]]:
    """Read gold from JSON Lines: {"row": 3, "a": "model", "b": "other", "values": {"Preference": "A>B"}}, with a
    "reason" if wanted. Returns the gold items and the rejected lines."""
    items: list[Item] = []
    wrong: list[WrongLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            items.append(_gold_in(evaluation, line))
        except ValidationError as error:
            wrong.append(WrongLine(number, join_sentences(error.messages)))
    return items, wrong


def _gold_in(evaluation: Evaluation, line: str) -> Item:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise ValidationError(_("This line is not JSON.")) from None
    if not isinstance(record, dict) or not isinstance(record.get("values"), dict):
        raise ValidationError(_("Each line must be an object with row, a, b and values."))
    row, a, b = record.get("row"), record.get("a"), record.get("b")
    item = item_at(evaluation, row, a, b, record.get("answer", 1))
    reason = record.get("reason", "")
    if not isinstance(reason, str):
        raise ValidationError(_("The reason must be a string."))
    return gold_of_item(evaluation, item, record["values"], reason)
