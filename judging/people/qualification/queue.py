"""The desk's queue: training and qualification first, then the real items."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

from django.db import transaction

from judging.people import assignments, selectors
from judging.people.assignments import assign, lease_end, locked, rater_reload
from judging.people.models import (
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Rating,
    RatingKind,
)
from judging.people.qualification.models import EntryAssignment, QualificationTry
from judging.people.qualification.selectors import (
    Entry,
    entry_of,
    has_entry,
    items_of_try,
    training_items,
    unused_gold,
)
from judging.people.selectors import RaterProgress

_SHOWN = ("item__row", "item__response", "item__other_response", "rater")


def claim(
    *,
    rater: EvaluationRater,
    count: int = 2,
    loaded: Collection[int] = (),
    submitting: Collection[int] = (),
) -> tuple[list[Assignment], Entry | None]:
    """Like `assignments.claim_for`, but what stands before the real queue comes first; none where a rater waits or has
    failed. Also returns where the rater stands then."""
    if not has_entry(rater.evaluation):
        return assignments.claim_for(rater, count, loaded, submitting), None
    claimed = _claim_in_order(rater, count, loaded, submitting)
    return claimed, entry_of(rater.evaluation, rater)


@transaction.atomic
def _claim_in_order(
    rater: EvaluationRater, count: int, loaded: Collection[int], submitting: Collection[int]
) -> list[Assignment]:
    evaluation = locked(rater.evaluation, run=rater.evaluation.run)
    rater_reload(rater, evaluation)
    entry = entry_of(evaluation, rater)
    if entry is None:
        return assignments.claim_for(rater, count, loaded, submitting)
    in_pilot = evaluation.pilot_below is None or rater.in_pilot
    may_rate = rater.left_at is None and not rater.stopped and evaluation.open and in_pilot
    if not may_rate or not entry.rates:
        return []
    return _claim_entry(evaluation, rater, entry, count, {*loaded, *submitting})


def _claim_entry(
    evaluation: Evaluation, rater: EvaluationRater, entry: Entry, count: int, known: Collection[int]
) -> list[Assignment]:
    current = _current_try(rater, entry) if entry.stage == "qualification" else None
    for item in _missing_items(evaluation, rater, current):
        EntryAssignment.objects.create(assignment=assign(evaluation, rater, item), qualification_try=current)
    waiting = Assignment.objects.filter(
        rater=rater,
        entry__isnull=False,
        entry__qualification_try=current,
        item__gold_removed=False,
        state__in=(AssignmentState.LEASED, AssignmentState.RELEASED),
    )
    waiting.update(state=AssignmentState.LEASED, lease_until=lease_end(evaluation))
    held = list(waiting.exclude(pk__in=known).select_related(*_SHOWN).order_by("place")[:count])
    for assignment in held:
        assignment.evaluation = evaluation
    return held


def _current_try(rater: EvaluationRater, entry: Entry) -> QualificationTry:
    return entry.current or QualificationTry.objects.create(
        rater=rater, number=1, items=entry.total, mark=entry.mark
    )


def _missing_items(
    evaluation: Evaluation, rater: EvaluationRater, current: QualificationTry | None
) -> list[Item]:
    """Items of the stage that the rater has not been assigned yet; of a qualification drawn by the seed."""
    if current is None:
        return list(training_items(evaluation).exclude(assignments__rater=rater))
    missing = current.items - items_of_try(current).count()
    gold = list(unused_gold(evaluation, rater).order_by("number")) if missing > 0 else []
    random.Random(f"qualification:{evaluation.seed}:{rater.pk}:{current.number}").shuffle(gold)
    return gold[: max(0, missing)]


def entry_for(rater: EvaluationRater) -> Entry | None:
    """Where a rater stands before the real queue."""
    if rater.left_at is not None or not has_entry(rater.evaluation):
        return None
    return entry_of(rater.evaluation, rater)


def entry_after(rating: Rating) -> Entry | None:
    """The same after an action of the rater's. Who has just rated or skipped an item of the real queue is through: no
    query."""
    assignment = rating.assignment
    if rating.kind != RatingKind.UNDO and not assignment.item.gold:
        return None
    rating.rater.evaluation = assignment.evaluation
    return entry_for(rating.rater)


def desk_progress(rater: EvaluationRater, entry: Entry | None) -> RaterProgress:
    """A rater's progress in the real queue, or in what stands before it."""
    progress = selectors.progress(rater)
    if entry is None:
        return progress
    left = entry.total - entry.done if entry.rates else 0
    return replace(progress, done=entry.done, left=left, quota_reached=False)
