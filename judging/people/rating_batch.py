"""Import of a batch of ratings from a file: each is stored once, however often its file is sent, or rejected.

A batch loads everything it needs in a few queries, decides in memory, and writes in a few more.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.db.models import F, OuterRef, Q, Subquery

from datasets.models import Response, Row
from evalsite import clock
from judging.core.people.criteria import ValuesRefused, accepted, canonical
from judging.core.people.parts import UnknownLine, value_by_id
from judging.core.people.spans import text_of_records
from judging.core.results_file.fields import Refusal
from judging.core.results_file.rating_lines import RatingLine
from judging.core.results_file.records import RefusedLine
from judging.core.values import Value
from judging.people.import_models import RatingsImport
from judging.people.item_criteria import criteria_for, has_checklist, ranking_by_name, rubric_in
from judging.people.judgements import count, tell_of_labels, unsaved_judgements
from judging.people.models import (
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Rating,
    RatingKind,
    Scheme,
)
from judging.people.ratings import LONGEST_COMMENT
from judging.records.json_text import storable
from judging.records.models import Judgement
from judging.records.overrides import carry_over, metrics_lock
from judging.records.seal import closed_for_rating

_NAMES = UUID("6f0b6a56-2d3c-4d6a-9b65-5a1f4c0f6f11")  # namespace of the keys made for lines without one


@dataclass(frozen=True, slots=True)
class _MatchedItem:
    """The item of a line; `turned`: the line names the two answers in the other order."""

    item: Item
    turned: bool = False


@dataclass(slots=True)
class ImportedRatings:
    """Counts of new, existing and non-current verdicts, and the rejected lines."""

    new: int
    existing: int
    not_current: int
    wrong: list[RefusedLine]


class RatingBatch:
    """Lines to import into an evaluation; the caller has locked it."""

    def __init__(
        self,
        evaluation: Evaluation,
        lines: Sequence[RatingLine | RefusedLine],
        ratings_import: RatingsImport | None = None,
    ) -> None:
        self.evaluation, self.ratings_import = evaluation, ratings_import
        good = [line for line in lines if isinstance(line, RatingLine)]
        self.lines = [line for line in good if line.current]
        self.not_current = len(good) - len(self.lines)
        self.wrong = [line for line in lines if isinstance(line, RefusedLine)]
        self.numbers = {criterion.name: number for number, criterion in self.evaluation.criteria.items()}
        self.raters = self._raters()
        self.items = self._items()
        self.by_row: dict[int, list[Item]] = defaultdict(list)
        for item in sorted(self.items.values(), key=lambda item: item.number):
            self.by_row[item.row.line].append(item)
        self.before = {item.pk: (item.rated, item.free, item.assigned) for item in self.items.values()}
        self.places = {rater.pk: rater.place for rater in self.raters.values()}
        self.assignments = self._assignments()
        self.keys = self._keys()
        self.closed = closed_for_rating(self.evaluation.run)
        self.new_assignments: list[Assignment] = []
        self.changed_assignments: list[Assignment] = []
        self.ratings: list[Rating] = []
        self.judgements: list[Judgement] = []
        self.states: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}  # by Rating.extra

    def import_lines(self) -> ImportedRatings:
        """Import the lines."""
        existing = 0
        for line in self.lines:
            try:
                existing += not self._import_line(line)
            except Refusal as refused:
                self.wrong.append(RefusedLine(line.line, refused.code, refused.params))
        self._write()
        wrong = sorted(self.wrong, key=lambda line: line.line)
        return ImportedRatings(len(self.ratings), existing, self.not_current, wrong)

    # —— existing objects

    def _raters(self) -> dict[str, EvaluationRater]:
        raters = list(EvaluationRater.objects.filter(evaluation=self.evaluation).select_related("user"))
        usernames = {rater.user.username: rater for rater in raters}
        pseudonyms = {rater.pseudonym: rater for rater in raters}
        if any(line.rater not in pseudonyms for line in self.lines):
            return pseudonyms | usernames  # a username may look like another rater's pseudonym
        return usernames | pseudonyms

    def _items(self) -> dict[int, Item]:
        """{number: item} of all items that the lines may refer to."""
        numbers = {line.item for line in self.lines if line.item is not None}
        parts = ("row", "response__candidate", "other_response__candidate")
        items = Item.objects.filter(evaluation=self.evaluation).select_related(*parts)
        if not has_checklist(self.evaluation):
            items = items.defer("row__raw")
        answers = self._answers()
        named = items.filter(Q(response__in=answers) | Q(other_response__in=answers))
        if self.evaluation.scheme == Scheme.RANK:
            rows = {line.row for line in self.lines if line.row is not None}
            items = items.prefetch_related("further__response__candidate")
            named = items.filter(row__line__in=rows)
        return {item.number: item for item in [*items.filter(number__in=numbers), *named]}

    def _answers(self) -> list[int]:
        """Ids of the answers in rows that lines name: items are looked up by answer, because they have no index by
        row."""
        lines = {line.row for line in self.lines if line.row is not None and line.candidate}
        version = self.evaluation.run.version
        rows = Row.objects.filter(version=version, line__in=lines).values("pk")
        of_references = Q(version__dataset=version.dataset_id, version__number=0, line__in=rows)
        own = Row.objects.filter(Q(pk__in=rows) | of_references).values("pk")
        return list(Response.objects.filter(row__in=own).values_list("pk", flat=True))

    def _assignments(self) -> dict[tuple[int, int], Assignment]:
        items = {item.pk: item for item in self.items.values()}
        raters = {rater.pk: rater for rater in self.raters.values()}
        assignments = Assignment.objects.filter(evaluation=self.evaluation, item__in=items)
        for assignment in assignments:
            assignment.evaluation, assignment.item, assignment.rater = (
                self.evaluation,
                items[assignment.item_id],
                raters[assignment.rater_id],
            )
        return {(assignment.item_id, assignment.rater_id): assignment for assignment in assignments}

    def _keys(self) -> dict[UUID, int]:
        """{key: evaluation} of existing ratings whose keys a line may get."""
        keys: set[UUID] = set()
        for line in self.lines:
            if line.key is not None:
                keys |= {line.key, self._own_key(line.key)}
            elif rater := self.raters.get(line.rater):
                keys |= {self._derived_key(item, rater) for item in self._matching_items(line)}
        ratings = Rating.objects.filter(key__in=keys)
        return dict(ratings.values_list("key", "rater__evaluation"))

    def _matching_items(self, line: RatingLine) -> list[Item]:
        try:
            return [self._item(line).item]
        except Refusal:
            return []

    def _derived_key(self, item: Item, rater: EvaluationRater) -> UUID:
        return uuid5(_NAMES, f"{self.evaluation.pk}:{item.pk}:{rater.pk}")

    def _own_key(self, key: UUID) -> UUID:
        """The key used here for a verdict whose key belongs to another evaluation."""
        return uuid5(_NAMES, f"{self.evaluation.pk}:{key}")

    # —— one line

    def _import_line(self, line: RatingLine) -> bool:
        """Return False if it exists already. Raises Refusal."""
        rater = self.raters.get(line.rater)
        if rater is None:
            raise Refusal("no_rater", name=line.rater)
        if rater.set_aside_at is not None:
            raise Refusal("set_aside", name=line.rater)
        if line.key and self.keys.get(line.key) == self.evaluation.pk:
            return False  # even if its answers have other names now
        match = self._item(line)
        key = line.key or self._derived_key(match.item, rater)
        if self.keys.get(key) == self.evaluation.pk:
            return False
        if match.item.row_id in self.closed:
            raise Refusal("test_closed")
        values = self._values(line, match)
        if key in self.keys:  # of another evaluation: the same verdict, stored here too
            key = self._own_key(key)
            if key in self.keys:
                return False
        self._store(line, match, rater, key, values)
        self.keys[key] = self.evaluation.pk
        return True

    def _item(self, line: RatingLine) -> _MatchedItem:
        if self.evaluation.scheme == Scheme.RANK and line.row is not None:
            return self._ranked(line)
        if line.row is not None and line.candidate:
            return self._by_names(line)
        if line.item is None:
            raise Refusal("no_item")
        if line.item not in self.items:
            raise Refusal("no_such_item")
        return _MatchedItem(self.items[line.item])

    def _by_names(self, line: RatingLine) -> _MatchedItem:
        line_sides = [(line.candidate, line.answer)] + (
            [(line.other, line.other_answer)] if line.other else []
        )
        row_items = self.by_row.get(line.row or 0, [])
        by_number = [item for item in row_items if item.number == line.item]
        for item in by_number + [item for item in row_items if item.repeat_of_id is None]:
            sides = [(answer.candidate.name, answer.number) for answer in item.answers]
            if sides == line_sides:
                return _MatchedItem(item)
            if len(sides) == 2 and sides[::-1] == line_sides:
                return _MatchedItem(item, turned=True)
        raise Refusal("no_such_item")

    def _ranked(self, line: RatingLine) -> _MatchedItem:
        """The item of the line's number if it is in the line's row, else the row's item."""
        row_items = self.by_row.get(line.row or 0, [])
        ordinary = [item for item in row_items if item.repeat_of_id is None]
        for item in [item for item in row_items if item.number == line.item] + ordinary:
            return _MatchedItem(item)
        raise Refusal("no_such_item")

    def _values(self, line: RatingLine, match: _MatchedItem) -> dict[int, Value]:
        unknown = [name for name in line.values if name not in self.numbers]
        if unknown:
            raise Refusal("no_criterion", name=unknown[0])
        by_number = {
            self.numbers[name]: self._value(self.numbers[name], value, match.item)
            for name, value in line.values.items()
        }
        try:
            values = accepted(criteria_for(self.evaluation, match.item), by_number)
        except ValuesRefused as refused:
            number, code = next(iter(refused.codes.items()))
            raise Refusal(f"value_{code}", name=self.evaluation.criteria[number].name) from None
        return canonical(self.evaluation.criteria, values, 2 if match.turned else 1)

    def _value(self, number: int, value: Any, item: Item) -> Any:
        """A value as it is stored: marks by id, places by candidate and spans become texts."""
        criterion = self.evaluation.criteria[number]
        if criterion.marks_spans and isinstance(value, Mapping):
            return text_of_records(value.get("spans"), value.get("score"))
        if not isinstance(value, Mapping) or not criterion.by_line:
            return value
        try:
            return (
                ranking_by_name(item, value) if criterion.ranks else value_by_id(value, rubric_in(item.row))
            )
        except UnknownLine as unknown:
            raise Refusal("no_candidate" if criterion.ranks else "no_line", name=unknown.id) from None

    def _store(
        self,
        line: RatingLine,
        match: _MatchedItem,
        rater: EvaluationRater,
        key: UUID,
        values: dict[int, Value],
    ) -> None:
        item, side, at = match.item, _side(line, match), line.at or clock.now()
        assignment = self._assignment(item, rater, side, at)
        assignment.attempt += 1
        newest = self.evaluation.guideline_version
        rating = Rating(
            assignment=assignment,
            rater=rater,
            kind=RatingKind.VERDICT,
            attempt=assignment.attempt,
            key=key,
            values=storable(json.dumps(values, ensure_ascii=False)) or "",
            comment=storable(line.comment[:LONGEST_COMMENT]) or "",
            seconds=line.seconds,
            extra=assignment.extra,
            guideline_version=min(line.guideline_version or newest, newest),
            imported=True,
            ratings_import=self.ratings_import,
            at=at,
        )
        item.rated += not assignment.extra
        assignment.state, assignment.rated_at = AssignmentState.RATED, at
        order = _order(line, item)
        if (assignment.shown_first, assignment.shown_order) != (side, order):
            assignment.token = uuid4()  # a page that still shows it with the other side must not rate it
        assignment.shown_first, assignment.shown_order, assignment.seconds = side, order, line.seconds
        self.ratings.append(rating)
        if item.counts:
            judgements = unsaved_judgements(rating, values)
            self.evaluation.next_position += len(judgements)
            self.judgements += judgements
            self.states[rating.extra].update(judgement.state for judgement in judgements)

    def _assignment(self, item: Item, rater: EvaluationRater, side: int | None, at: datetime) -> Assignment:
        held = self.assignments.get((item.pk, rater.pk))
        if held is not None and held.state == AssignmentState.RATED:
            raise Refusal("rated_already")
        if held is not None:
            self.changed_assignments.append(held)
        else:
            rater.place += 1
            held = Assignment(
                evaluation=self.evaluation,
                item=item,
                rater=rater,
                state=AssignmentState.RELEASED,
                place=rater.place,
                lease_until=at,
                shown_first=side,
            )
            item.assigned += 1
            self.new_assignments.append(held)
            self.assignments[item.pk, rater.pk] = held
        if held.state != AssignmentState.LEASED:
            held.extra = bool(item.needed) and not item.free
            item.free -= bool(item.needed and item.free)
        return held

    # —— writing

    def _write(self) -> None:
        if not self.ratings:
            return
        Assignment.objects.bulk_create(self.new_assignments)
        for held in self.changed_assignments:
            held.save()
        Rating.objects.bulk_create(self.ratings)
        ratings = Rating.objects.filter(
            assignment=OuterRef("pk"), attempt=OuterRef("attempt"), kind=RatingKind.VERDICT
        )
        touched = [rating.assignment_id for rating in self.ratings]
        Assignment.objects.filter(pk__in=touched).update(rating=Subquery(ratings.values("pk")[:1]))
        metrics_lock(self.evaluation.run_id)
        Judgement.objects.bulk_create(self.judgements)
        again = [judgement.pk for judgement in self.judgements if judgement.attempt > 1]
        carry_over(self.evaluation.run_id, Judgement.objects.filter(pk__in=again))
        self.evaluation.save(update_fields=["next_position"])
        for extra, states in self.states.items():
            if states:
                count(self.evaluation, states, 1, extra=extra)
        self._write_counters()
        tell_of_labels(self.evaluation)

    def _write_counters(self) -> None:
        """Update items in groups by the change in their counters: nearly all change alike."""
        changes: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for item in self.items.values():
            submitted, free, assigned = self.before[item.pk]
            changes[item.rated - submitted, item.free - free, item.assigned - assigned].append(item.pk)
        changes.pop((0, 0, 0), None)
        for (submitted, free, assigned), pks in changes.items():
            Item.objects.filter(pk__in=pks).update(
                rated=F("rated") + submitted, free=F("free") + free, assigned=F("assigned") + assigned
            )
        for rater in self.raters.values():
            if rater.place != self.places[rater.pk]:
                EvaluationRater.objects.filter(pk=rater.pk).update(place=rater.place)


def _order(line: RatingLine, item: Item) -> str:
    """The order in which ranked answers were shown, as an assignment stores it; '' if unknown."""
    if not item.is_ranked or not line.shown_order:
        return ""
    names = item.candidate_names
    if sorted(line.shown_order) != sorted(names):
        raise Refusal("order")
    return ",".join(str(names.index(name)) for name in line.shown_order)


def _side(line: RatingLine, match: _MatchedItem) -> int | None:
    if match.item.other_response_id is None or match.item.is_ranked:
        return None
    if line.shown_first not in (None, 1, 2):
        raise Refusal("side")
    return 3 - line.shown_first if match.turned and line.shown_first else line.shown_first
