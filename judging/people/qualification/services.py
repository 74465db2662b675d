"""Set up training and qualification, conclude a try, let raters in or give them another try."""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.core.people.gold import hits_of
from judging.core.people.qualification import MOST_QUALIFICATION_ITEMS, passes
from judging.people.assignments import audit, locked
from judging.people.labels import values_of
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater
from judging.people.qualification.models import (
    EntryAssignment,
    Qualification,
    QualificationTry,
    TrainingItem,
)
from judging.people.qualification.selectors import DONE, gold_in_use, items_of_try, unused_gold


@transaction.atomic
def qualification_change(
    *, evaluation: Evaluation, training: Collection[int], items: int, mark: float, by: User
) -> None:
    """Set the training items (ids of gold items) and the qualification: its number of items (0: none) and its pass mark
    (0…1). Tries under way keep theirs. Raises ValidationError."""
    if not 0 <= items <= MOST_QUALIFICATION_ITEMS:
        raise ValidationError(_("A qualification has at most %(n)s items.") % {"n": MOST_QUALIFICATION_ITEMS})
    if not 0 < mark <= 1:
        raise ValidationError(_("Enter a pass mark from 1 to 100 %."))
    evaluation = locked(evaluation)
    chosen = set(gold_in_use(evaluation).filter(pk__in=training).values_list("pk", flat=True))
    before = TrainingItem.objects.filter(item__evaluation=evaluation)
    before.exclude(item__in=chosen).delete()
    training = set(before.values_list("item", flat=True))
    TrainingItem.objects.bulk_create(TrainingItem(item_id=pk) for pk in sorted(chosen - training))
    if items:
        Qualification.objects.update_or_create(evaluation=evaluation, defaults={"items": items, "mark": mark})
    else:
        Qualification.objects.filter(evaluation=evaluation).delete()
    audit(
        Action.QUALIFICATION_CHANGED,
        evaluation,
        by,
        training=len(chosen),
        items=items,
        mark=mark if items else 0,
    )


def is_entry(assignment: Assignment) -> bool:
    """Whether it belongs to a training or a qualification."""
    return EntryAssignment.objects.filter(assignment=assignment).exists()


def over(assignment: Assignment) -> bool:
    """Whether it belongs to a try that has ended, so that nothing in it can be changed."""
    entry = EntryAssignment.objects.filter(assignment=assignment, qualification_try__ended_at__isnull=False)
    return entry.exists()


def try_conclude(held: Assignment) -> None:
    """After a rating or a skip: end the try that it belongs to if that was its last item. Skipped items are not right.
    Call with the evaluation locked."""
    entry = EntryAssignment.objects.filter(assignment=held).select_related("qualification_try").first()
    current = entry.qualification_try if entry else None
    if current is None or current.ended_at is not None:
        return
    done = items_of_try(current).filter(state__in=DONE)
    if done.count() < current.items:
        return
    current.ended_at, current.right = clock.now(), _right(current)
    current.passed = passes(current.right, current.items, current.mark)
    current.save(update_fields=["ended_at", "right", "passed"])
    action = Action.QUALIFICATION_PASSED if current.passed else Action.QUALIFICATION_FAILED
    name = held.rater.user.username
    audit(action, held.evaluation, None, rater=name, right=current.right, of=current.items)


def _right(current: QualificationTry) -> int:
    rated = items_of_try(current).filter(state=AssignmentState.RATED, rating__isnull=False)
    pairs = (
        (values_of(gold), values_of(values))
        for gold, values in rated.values_list("item__gold", "rating__values")
    )
    return sum(hits_of(accepted, values) == len(accepted) for accepted, values in pairs)


def _failed(rater: EvaluationRater) -> QualificationTry:
    last = QualificationTry.objects.filter(rater=rater).order_by("-number").first()
    if last is None or last.ended_at is None or last.passed or last.let_in_at is not None:
        raise ValidationError(_("This rater is not waiting for a decision any more."))
    return last


@transaction.atomic
def rater_let_in(*, rater: EvaluationRater, by: User) -> None:
    """Let a rater into the real queue who has failed. Raises ValidationError if they are not waiting for it."""
    evaluation = locked(rater.evaluation_id)
    last = _failed(rater)
    last.let_in_at, last.let_in_by = clock.now(), by
    last.save(update_fields=["let_in_at", "let_in_by"])
    audit(Action.QUALIFICATION_WAIVED, evaluation, by, rater=rater.user.username)


@transaction.atomic
def rater_try_again(*, rater: EvaluationRater, by: User) -> None:
    """Give a rater who has failed another try, with gold items that they have not had. Raises ValidationError if too
    few are left."""
    evaluation = locked(rater.evaluation_id)
    last = _failed(rater)
    settings = Qualification.objects.filter(evaluation=evaluation).first()
    items, mark = (settings.items, settings.mark) if settings else (last.items, last.mark)
    left = unused_gold(evaluation, rater).count()
    if left < items:
        text = ngettext(
            "A new try needs %(items)s gold items that %(rater)s has not had; there is %(n)s. Add gold, or let "
            "them in.",
            "A new try needs %(items)s gold items that %(rater)s has not had; there are %(n)s. Add gold, or let "
            "them in.",
            left,
        )
        raise ValidationError(text % {"n": left, "items": items, "rater": rater.pseudonym})
    QualificationTry.objects.create(rater=rater, number=last.number + 1, items=items, mark=mark)
    audit(Action.QUALIFICATION_AGAIN, evaluation, by, rater=rater.user.username, number=last.number + 1)
