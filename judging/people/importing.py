"""Ratings from a file: each line taken once, however often the file is sent; what cannot be taken is listed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from datasets.models import Row
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.core.people.criteria import Criterion, ValuesRefused, accepted, canonical
from judging.core.people.rating_lines import BadLine, RatingLine, read_lines
from judging.core.values import Value
from judging.people.keeping import judgements_add
from judging.people.leasing import locked, take_seat
from judging.people.looking import criteria_of
from judging.people.models import (
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Rating,
    RatingKind,
)
from judging.runs.plain import storable

MOST_BYTES = 50_000_000
_NAMES = UUID("6f0b6a56-2d3c-4d6a-9b65-5a1f4c0f6f11")  # where keys of lines without one come from


@dataclass(slots=True)
class Imported:
    """What came of a file: new verdicts, lines that were there already or do not count, lines that are wrong."""

    new: int = 0
    there: int = 0
    not_current: int = 0
    wrong: list[BadLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a line is about; `turned`: it tells the two answers the other way round."""

    item: Item
    turned: bool = False


class _Into:
    """An evaluation that ratings are taken into; holds what every line needs."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.criteria = criteria_of(evaluation)
        self.numbers = {one.name: number for number, one in self.criteria.items()}
        self.raters: dict[str, EvaluationRater] = {}
        for rater in EvaluationRater.objects.filter(evaluation=evaluation).select_related("user"):
            self.raters[rater.user.username] = rater
        for rater in list(self.raters.values()):
            self.raters[rater.pseudonym] = rater

    def take(self, line: RatingLine) -> str:
        """'new' or 'there'; raises Wrong."""
        rater = self.raters.get(line.rater)
        if rater is None:
            raise Wrong("no_rater", name=line.rater)
        found = self._item(line)
        key = line.key or uuid5(_NAMES, f"{self.evaluation.pk}:{found.item.pk}:{rater.pk}")
        if Rating.objects.filter(key=key, rater__evaluation=self.evaluation).exists():
            return "there"
        values = self._values(line, found)
        if Rating.objects.filter(
            key=key
        ).exists():  # from another evaluation: the same verdict, kept here too
            key = uuid5(_NAMES, f"{self.evaluation.pk}:{key}")
            if Rating.objects.filter(key=key).exists():
                return "there"
        self._keep(line, found, rater, key, values)
        return "new"

    def _item(self, line: RatingLine) -> _Found:
        if line.row is not None and line.candidate:
            return self._by_names(line)
        if line.item is None:
            raise Wrong("no_item")
        found = self._items().filter(number=line.item).first()
        if found is None:
            raise Wrong("no_such_item")
        return _Found(found)

    def _items(self) -> QuerySet[Item]:
        parts = ("response__candidate", "other_response__candidate")
        return Item.objects.filter(evaluation=self.evaluation).select_related(*parts)

    def _by_names(self, line: RatingLine) -> _Found:
        row = Row.objects.filter(version=self.evaluation.run.version_id, line=line.row or 0).first()
        wanted = [(line.candidate, line.answer)] + ([(line.other, line.other_answer)] if line.other else [])
        there = list(self._items().filter(row=row).order_by("number")) if row else []
        by_number = [item for item in there if item.number == line.item]
        for item in by_number + [item for item in there if item.repeat_of_id is None]:
            sides = [(one.candidate.name, one.number) for one in (item.response, item.other_response) if one]
            if sides == wanted:
                return _Found(item)
            if len(sides) == 2 and sides[::-1] == wanted:
                return _Found(item, turned=True)
        raise Wrong("no_such_item")

    def _values(self, line: RatingLine, found: _Found) -> dict[int, Value]:
        strange = [name for name in line.values if name not in self.numbers]
        if strange:
            raise Wrong("no_criterion", name=strange[0])
        given = {self.numbers[name]: value for name, value in line.values.items()}
        try:
            values = accepted(self.criteria, given)
        except ValuesRefused as refused:
            number, code = next(iter(refused.codes.items()))
            raise Wrong(f"value_{code}", name=self._name(number)) from None
        return canonical(self.criteria, values, 2 if found.turned else 1)

    def _name(self, number: int) -> str:
        criterion: Criterion = self.criteria[number]
        return criterion.name

    def _keep(
        self, line: RatingLine, found: _Found, rater: EvaluationRater, key: UUID, values: dict[int, Value]
    ) -> None:
        side = self._side(line, found)
        at = line.at or timezone.now()
        assignment = self._assignment(found.item, rater, side, at)
        assignment.attempt += 1
        rating = Rating.objects.create(
            assignment=assignment,
            rater=rater,
            kind=RatingKind.VERDICT,
            attempt=assignment.attempt,
            key=key,
            values=storable(json.dumps(values, ensure_ascii=False)) or "",
            comment=storable(line.comment[:20_000]) or "",
            seconds=line.seconds,
            extra=assignment.extra,
            imported=True,
            at=at,
        )
        judgements_add(self.evaluation, assignment, rating, values)
        Item.objects.filter(pk=found.item.pk).update(given=F("given") + 1)
        assignment.state, assignment.rating, assignment.given_at = AssignmentState.GIVEN, rating, at
        assignment.shown_first, assignment.seconds = side, line.seconds
        assignment.save()

    def _side(self, line: RatingLine, found: _Found) -> int | None:
        if found.item.other_response_id is None:
            return None
        if line.shown_first not in (None, 1, 2):
            raise Wrong("side")
        return 3 - line.shown_first if found.turned and line.shown_first else line.shown_first

    def _assignment(self, item: Item, rater: EvaluationRater, side: int | None, at: datetime) -> Assignment:
        held = Assignment.objects.select_related("item", "rater").filter(item=item, rater=rater).first()
        if held is not None and held.state == AssignmentState.GIVEN:
            raise Wrong("rated_already")
        if held is None:
            rater.place += 1
            rater.save(update_fields=["place"])
            held = Assignment(
                evaluation=self.evaluation,
                item=item,
                rater=rater,
                place=rater.place,
                lease_until=at,
                shown_first=side,
            )
            held.state = AssignmentState.RELEASED
            held.save()
            Item.objects.filter(pk=item.pk).update(dealt=F("dealt") + 1)
        if held.state != AssignmentState.LEASED:
            take_seat(held)
        return held


class Wrong(Exception):
    """A line that cannot be taken, by its code."""

    def __init__(self, code: str, **params: str) -> None:
        super().__init__(code)
        self.code, self.params = code, params


@transaction.atomic
def ratings_import(*, evaluation: Evaluation, text: str, by: User) -> Imported:
    """Take a file's verdicts in. Lines that are wrong are listed and the others taken; sent again, nothing doubles."""
    evaluation = locked(evaluation)
    into, told = _Into(evaluation), Imported()
    for line in read_lines(text, list(into.criteria.values())):
        if isinstance(line, BadLine):
            told.wrong.append(line)
        elif not line.current:
            told.not_current += 1
        else:
            _take(into, line, told)
    if told.new:
        project = Project.objects.get(pk=evaluation.run.project_id)
        record(Action.RATINGS_IMPORTED, project=project, thing=evaluation.run, by=by, ratings=told.new)
    return told


def _take(into: _Into, line: RatingLine, told: Imported) -> None:
    try:
        with transaction.atomic():
            made = into.take(line)
    except Wrong as wrong:
        told.wrong.append(BadLine(line.line, wrong.code, wrong.params))
    else:
        told.new += made == "new"
        told.there += made == "there"
