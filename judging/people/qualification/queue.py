"""The desk's queue: training and qualification first, then the real items."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

from django.db import transaction

from evalsite.accounts.models import User
from judging.people import assignments, selectors
from judging.people.assignments import assign, lease_end, locked
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
    evaluation: Evaluation,
    user: User,
    count: int = 2,
    loaded: Collection[int] = (),
    submitting: Collection[int] = (),
) -> list[Assignment]:
    """Like `assignments.claim`, but what stands before the real queue comes first; none where a rater waits or has
    failed."""
    if not has_entry(evaluation):
        return _claim_real(evaluation, user, count, loaded, submitting)
    return _claim_in_order(evaluation, user, count, loaded, submitting)


@transaction.atomic
def _claim_in_order(
    evaluation: Evaluation, user: User, count: int, loaded: Collection[int], submitting: Collection[int]
) -> list[Assignment]:
    evaluation = locked(evaluation)
    rater = EvaluationRater.objects.filter(evaluation=evaluation, user=user, left_at=None).first()
    entry = entry_of(evaluation, rater) if rater else None
    if rater is None or entry is None:
        return _claim_real(evaluation, user, count, loaded, submitting)
    in_pilot = evaluation.pilot_below is None or rater.in_pilot
    if rater.stopped or not evaluation.open or not in_pilot or not entry.rates:
        return []
    return _claim_entry(evaluation, rater, entry, count, {*loaded, *submitting})


def _claim_real(
    evaluation: Evaluation, user: User, count: int, loaded: Collection[int], submitting: Collection[int]
) -> list[Assignment]:
    return assignments.claim(
        evaluation=evaluation, user=user, count=count, loaded=loaded, submitting=submitting
    )


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


def entry_for(evaluation: Evaluation, user: User) -> Entry | None:
    """Where a user stands before the real queue."""
    if not has_entry(evaluation):
        return None
    rater = EvaluationRater.objects.filter(evaluation=evaluation, user=user, left_at=None).first()
    return entry_of(evaluation, rater) if rater else None


def entry_after(rating: Rating, user: User) -> Entry | None:
    """The same after an action of the user's. Who has just rated or skipped an item of the real queue is through: no
    query."""
    assignment = rating.assignment
    if rating.kind != RatingKind.UNDO and not assignment.item.gold:
        return None
    return entry_for(assignment.evaluation, user)


def desk_progress(evaluation: Evaluation, user: User, entry: Entry | None) -> RaterProgress:
    """A rater's progress in the real queue, or in what stands before it."""
    progress = selectors.progress(evaluation=evaluation, user=user)
    if entry is None:
        return progress
    left = entry.total - entry.done if entry.rates else 0
    return replace(progress, done=entry.done, left=left, quota_reached=False)
