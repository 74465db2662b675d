"""What a rater learns after rating a training item: the expected answer and its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judging.core.people.criteria import Criterion, as_shown
from judging.core.people.gold import accepted_values, is_hit
from judging.core.values import Value
from judging.people.item_criteria import content_of, criteria_for
from judging.people.labels import spans_quoted, value_label, values_of
from judging.people.models import Assignment
from judging.people.qualification.models import EntryAssignment


@dataclass(frozen=True, slots=True)
class CriterionFeedback:
    """A criterion's expected value, others that are accepted, and the rater's own, as labels."""

    name: str
    expected: str
    also: list[str]
    own: str
    hit: bool


@dataclass(frozen=True, slots=True)
class TrainingFeedback:
    criteria: list[CriterionFeedback]
    reason: str


def training_feedback(assignment: Assignment) -> TrainingFeedback | None:
    """The feedback on a rated training item, with sides as they were shown; None for every other item."""
    if assignment.rating is None or not assignment.item.gold:
        return None
    if not EntryAssignment.objects.filter(assignment=assignment, qualification_try=None).exists():
        return None
    criteria = criteria_for(assignment.evaluation, assignment.item)
    return feedback_on(assignment, criteria, values_of(assignment.rating.values))


def feedback_on(
    assignment: Assignment, criteria: dict[int, Criterion], own: Mapping[int, Value]
) -> TrainingFeedback:
    """The known answers of an item and what was rated (`own`, canonical), with sides as they were shown."""
    first, order = assignment.shown_first, assignment.order
    parts = []
    for number, accepted in values_of(assignment.item.gold).items():
        if (criterion := criteria.get(number)) is None:
            continue
        shown = [
            as_shown(criteria, {number: value}, first, order)[number] for value in accepted_values(accepted)
        ]
        labels = [_label(assignment, criterion, value) for value in shown]
        mine = as_shown(criteria, {number: own[number]}, first, order) if number in own else {}
        label = _label(assignment, criterion, mine[number]) if mine else ""
        hit = is_hit(accepted, own.get(number))
        parts.append(CriterionFeedback(criterion.name, labels[0], labels[1:], label, hit))
    return TrainingFeedback(parts, assignment.item.gold_reason)


def _label(assignment: Assignment, criterion: Criterion, value: Value) -> str:
    if criterion.marks_spans:
        return spans_quoted(value, content_of(assignment.item))
    return value_label(criterion, value)
