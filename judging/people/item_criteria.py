"""The criteria of an evaluation as they stand for one of its items: a checklist has the lines of the row's rubric, a
ranking the item's answers, spans the length of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from datasets.core.kinds import CHECKLIST
from datasets.core.rubric import Rubric
from datasets.core.variables import response_data
from datasets.models import Row
from judging.core.checklists import Checklist, rubric_of
from judging.core.people.criteria import Criterion
from judging.core.people.parts import UnknownLine, of_answers, of_row, outcome_of_rating, outcomes_of_ranking
from judging.core.people.ranking import pairs_among, places_of
from judging.core.values import Outcome, Value
from judging.people.models import Evaluation, Item
from judging.records import json_text


def has_checklist(evaluation: Evaluation) -> bool:
    return any(criterion.gives == CHECKLIST for criterion in evaluation.criteria.values())


def asks_by_item(evaluation: Evaluation) -> bool:
    """Whether what raters are asked for depends on the item."""
    return any(criterion.by_line for criterion in evaluation.criteria.values())


def marks_spans(evaluation: Evaluation) -> bool:
    """Whether raters mark spans in the answers."""
    return any(criterion.marks_spans for criterion in evaluation.criteria.values())


def content_of(item: Item) -> str:
    """The text of the item's answer, or of its first one."""
    return str(response_data(item.response.raw)["content"])


def rubric_in(row: Row) -> Rubric | None:
    """The row's rubric; None without one that can be read."""
    return rubric_of(json_text.loads(row.raw))


def criteria_for(evaluation: Evaluation, item: Item) -> dict[int, Criterion]:
    """The criteria by number."""
    if not asks_by_item(evaluation) and not marks_spans(evaluation):
        return evaluation.criteria
    rubric = rubric_in(item.row) if has_checklist(evaluation) else None
    return {number: _of_item(criterion, item, rubric) for number, criterion in evaluation.criteria.items()}


def _of_item(criterion: Criterion, item: Item, rubric: Rubric | None) -> Criterion:
    if criterion.gives == CHECKLIST:
        return of_row(criterion, rubric)
    if criterion.ranks:
        return of_answers(criterion, len(item.answers))
    if criterion.marks_spans:
        return msgspec.structs.replace(criterion, length=len(content_of(item)))
    return criterion


def judgements_each(criteria: Iterable[Criterion], answers: int) -> int:
    """The number of judgements that one rating of an item with this many answers makes."""
    pairs = len(pairs_among(answers))
    return sum(pairs if criterion.ranks else 1 for criterion in criteria)


class Judged(NamedTuple):
    """What a value comes to for an answer of an item, or for a pair: positions from 0 (`other`: None for a single
    one). `checklist`: what becomes of each line."""

    answer: int
    other: int | None
    outcome: Outcome
    checklist: Checklist | None = None


def judged_by(evaluation: Evaluation, item: Item, number: int, value: Value | None) -> list[Judged]:
    """The judgements of a value under a criterion, in order."""
    criterion, answers = evaluation.criteria[number], item.answers
    if criterion.ranks:
        return [Judged(*of_pair) for of_pair in outcomes_of_ranking(value, len(answers))]
    rubric = rubric_in(item.row) if criterion.gives == CHECKLIST else None
    other = 1 if len(answers) > 1 else None
    return [Judged(0, other, *outcome_of_rating(criterion, value, rubric))]


def places_by_name(item: Item, ranking: str) -> dict[str, int]:
    """A ranking for files: {candidate: place}."""
    return dict(zip(item.candidate_names, places_of(ranking), strict=True))


def ranking_by_name(item: Item, places: Mapping[str, Any]) -> str:
    """The inverse. Answers without a place have an empty one, and places that are none stay as they are, for `accepted`
    to refuse. Raises UnknownLine."""
    names = item.candidate_names
    for name in places:
        if name not in names:
            raise UnknownLine(name)
    return ",".join(str(places.get(name) or "") for name in names)
