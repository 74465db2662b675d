"""Steering an evaluation under way: close, reopen, put away; raters come and go; items change hands."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.people.leasing import assign, free_seat, locked, release
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item
from judging.runs.models import Run, RunState


@transaction.atomic
def evaluation_close(*, evaluation: Evaluation, by: User) -> bool:
    """Nobody rates any more; what is held is given back, drafts stay. False if it was closed."""
    evaluation = locked(evaluation)
    if not evaluation.open:
        return False
    evaluation.closed_at = timezone.now()
    evaluation.save(update_fields=["closed_at"])
    release(list(Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.LEASED)))
    Run.objects.filter(pk=evaluation.run_id).update(state=RunState.FINISHED, finished_at=timezone.now())
    _written(Action.EVALUATION_CLOSED, evaluation, by)
    return True


@transaction.atomic
def evaluation_reopen(*, evaluation: Evaluation, by: User) -> bool:
    """Raters may go on. False if it was open."""
    evaluation = locked(evaluation)
    if evaluation.open:
        return False
    evaluation.closed_at = None
    evaluation.save(update_fields=["closed_at"])
    Run.objects.filter(pk=evaluation.run_id).update(state=RunState.RUNNING, finished_at=None)
    _written(Action.EVALUATION_REOPENED, evaluation, by)
    return True


@transaction.atomic
def evaluation_archive(*, evaluation: Evaluation, by: User) -> None:
    """Out of sight and closed; nothing is deleted."""
    evaluation_close(evaluation=evaluation, by=by)
    if Run.objects.filter(pk=evaluation.run_id, archived_at=None).update(archived_at=timezone.now()):
        _written(Action.RUN_ARCHIVED, evaluation, by)


@transaction.atomic
def evaluation_restore(*, evaluation: Evaluation, by: User) -> None:
    """In the lists again, still closed."""
    archived = Run.objects.filter(pk=evaluation.run_id, archived_at__isnull=False)
    if archived.update(archived_at=None):
        _written(Action.RUN_RESTORED, evaluation, by)


def _written(action: Action, evaluation: Evaluation, by: User | None, **detail: Any) -> None:
    project = Project.objects.get(pk=evaluation.run.project_id)
    record(action, project=project, thing=evaluation.run, by=by, **detail)


@transaction.atomic
def rater_add(*, evaluation: Evaluation, user: User, by: User | None = None) -> EvaluationRater:
    """Somebody rates from now on, or again."""
    evaluation = locked(evaluation)
    known = EvaluationRater.objects.filter(evaluation=evaluation)
    rater, made = known.get_or_create(
        evaluation=evaluation, user=user, defaults={"pseudonym": f"R{known.count() + 1}"}
    )
    if rater.left_at is not None:
        rater.left_at, made = None, True
        rater.save(update_fields=["left_at"])
    if made:
        _written(Action.RATER_ADDED, evaluation, by, rater=user.username)
    return rater


@transaction.atomic
def rater_leave(*, rater: EvaluationRater, by: User) -> None:
    """Somebody rates no more: what they hold is given back, what they gave stays."""
    evaluation = locked(rater.evaluation_id)
    if not EvaluationRater.objects.filter(pk=rater.pk, left_at=None).update(left_at=timezone.now()):
        return
    release(list(Assignment.objects.filter(rater=rater, state=AssignmentState.LEASED)))
    _written(Action.RATER_LEFT, evaluation, by, rater=rater.user.username)


@transaction.atomic
def item_reassign(*, assignment: Assignment, to: EvaluationRater | None, by: User) -> Assignment | None:
    """Take an item that waits in one rater's hands, and give it to another, or (None) to whoever comes.

    Its first rater does not get it again; a verdict that comes from there all the same is kept. Raises ValidationError
    where it has been rated meanwhile or the other one has had it.
    """
    evaluation = locked(assignment.evaluation_id)
    now = Assignment.objects.select_related("item", "rater").get(pk=assignment.pk)
    if now.state != AssignmentState.LEASED:
        raise ValidationError(_("This item is not waiting with that rater any more."))
    if to is not None and Assignment.objects.filter(item=now.item, rater=to).exists():
        raise ValidationError(_("%(rater)s has had this item already.") % {"rater": to.pseudonym})
    Assignment.objects.filter(pk=now.pk).update(state=AssignmentState.TAKEN_AWAY)
    free_seat(now)
    made = assign(evaluation, to, Item.objects.get(pk=now.item_id)) if to else None
    to_whom = to.user.username if to else ""
    _written(
        Action.ITEM_REASSIGNED,
        evaluation,
        by,
        item=now.item.number,
        of=now.rater.user.username,
        to=to_whom,
    )
    return made
