"""What people said of an answer, to stand beside what a judge said of it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from judging.people.looking import criteria_of
from judging.people.messages import value_label, values_of
from judging.people.models import Adjudication, Assignment, AssignmentState, Evaluation, Item
from judging.people.showing import Shown, shown_in
from judging.runs.models import Judgement

MOST = 50


@dataclass(frozen=True, slots=True)
class Said:
    """One person's verdict (or, without a pseudonym, an adjudicator's decision): [(criterion, value)], the comment."""

    evaluation: Evaluation
    item: Item
    pseudonym: str
    told: list[tuple[str, str]]
    comment: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An item as its raters saw it, the judged answer on the left, with the names that they did not see."""

    shown: Shown
    names: list[str]


def seen_by_people(judgement: Judgement) -> Seen | None:
    """What a person's judgement is about."""
    parts = ("evaluation__run__version", "evaluation__other_version", "row")
    known = Item.objects.select_related(*parts, "response__candidate", "other_response__candidate")
    about = {"response": judgement.response_id, "other_response": judgement.other_response_id}
    item = known.filter(evaluation__run=judgement.run_id, **about).first()
    if item is None:
        return None
    names = [one.candidate.name for one in (item.response, item.other_response) if one]
    return Seen(shown_in(item.evaluation, item, 1, with_reference=not item.rates_reference), names)


def said_of(response_id: int) -> list[Said]:
    """All that counts of what people said of an answer, alone or beside another; decisions on differences last."""
    about = Item.objects.filter(Q(response=response_id) | Q(other_response=response_id), needed__gt=0)
    items = list(about.values_list("pk", flat=True)[:MOST])
    if not items:
        return []
    given = Assignment.objects.filter(item__in=items, state=AssignmentState.GIVEN, rating__isnull=False)
    parts = ("item__evaluation__run", "item__response__candidate", "item__other_response__candidate")
    found = [
        _said(one.item, one.rater.pseudonym, one.rating.values, one.rating.comment)
        for one in given.select_related("rater", "rating", *parts).order_by("pk")[:MOST]
        if one.rating
    ]
    decided = Adjudication.objects.filter(item__in=items).select_related(*parts).order_by("pk")[:MOST]
    return found + [_said(one.item, "", one.values, one.reason) for one in decided]


def _said(item: Item, pseudonym: str, values: str, comment: str) -> Said:
    criteria = criteria_of(item.evaluation)
    names = [one.candidate.name for one in (item.response, item.other_response) if one]
    told = [
        (criteria[number].name, value_label(criteria[number], value, names))
        for number, value in sorted(values_of(values).items())
        if number in criteria
    ]
    return Said(item.evaluation, item, pseudonym, told, comment)
