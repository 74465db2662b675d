"""The criteria of an evaluation as they stand for one of its rows: a checklist has the lines of the row's rubric."""

from __future__ import annotations

from datasets.core.kinds import CHECKLIST
from datasets.core.rubric import Rubric
from datasets.models import Row
from judging.core.checklists import Checklist, rubric_of
from judging.core.people.criteria import Criterion
from judging.core.people.parts import of_row, outcome_of_rating
from judging.core.values import Outcome, Value, outcome_of_value
from judging.people.models import Evaluation, Item
from judging.records import json_text


def has_checklist(evaluation: Evaluation) -> bool:
    return any(criterion.gives == CHECKLIST for criterion in evaluation.criteria.values())


def rubric_in(row: Row) -> Rubric | None:
    """The row's rubric; None without one that can be read."""
    return rubric_of(json_text.loads(row.raw))


def outcome_in(
    evaluation: Evaluation, item: Item, number: int, value: Value
) -> tuple[Outcome, Checklist | None]:
    """What a value under a criterion comes to for an item, and what becomes of each line of a checklist."""
    criterion = evaluation.criteria[number]
    if criterion.gives != CHECKLIST:
        return outcome_of_value(value), None
    return outcome_of_rating(criterion, value, rubric_in(item.row))


def criteria_for(evaluation: Evaluation, row: Row) -> dict[int, Criterion]:
    """The criteria by number."""
    if not has_checklist(evaluation):
        return evaluation.criteria
    rubric = rubric_in(row)
    return {
        number: of_row(criterion, rubric) if criterion.gives == CHECKLIST else criterion
        for number, criterion in evaluation.criteria.items()
    }
