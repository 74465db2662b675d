"""Open, pause and resume a study, by hand or by its dates, and its pilot."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.people.assignments import audit, locked, release, tell_raters
from judging.people.models import Assignment, AssignmentState, Evaluation
from judging.people.pilot import pilot_bound_store
from judging.people.services import evaluation_close


@transaction.atomic
def study_open(*, evaluation: Evaluation, by: User | None) -> bool:
    """Open a draft to its raters. False if it is no draft any more."""
    evaluation = locked(evaluation)
    if not evaluation.draft or evaluation.closed_at is not None:
        return False
    evaluation.draft = False
    evaluation.save(update_fields=["draft"])
    audit(Action.EVALUATION_OPENED, evaluation, by)
    tell_raters(evaluation)
    return True


@transaction.atomic
def study_pause(*, evaluation: Evaluation, by: User) -> bool:
    """Pause an open study: reserved items are released, drafts are kept. False if it is not open."""
    evaluation = locked(evaluation)
    if not evaluation.open:
        return False
    evaluation.paused_at, evaluation.draft = clock.now(), False
    evaluation.save(update_fields=["paused_at", "draft"])
    release(list(Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.LEASED)))
    audit(Action.EVALUATION_PAUSED, evaluation, by)
    return True


@transaction.atomic
def study_resume(*, evaluation: Evaluation, by: User) -> bool:
    """Go on with a paused study. False if it is not paused."""
    evaluation = locked(evaluation)
    if evaluation.state != "paused":
        return False
    evaluation.paused_at = None
    evaluation.save(update_fields=["paused_at"])
    audit(Action.EVALUATION_RESUMED, evaluation, by)
    tell_raters(evaluation)
    return True


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a study opens and closes by itself, and its pilot: the first items, for some raters (ids)."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None
    pilot_items: int | None = None
    pilot_raters: Collection[int] = ()


@transaction.atomic
def schedule_change(*, evaluation: Evaluation, schedule: Schedule, by: User) -> None:
    """Set the dates, and the pilot while the study is a draft. Raises ValidationError with messages by field."""
    evaluation = locked(evaluation)
    schedule_check(evaluation, schedule)
    evaluation.starts_at, evaluation.ends_at = schedule.starts_at, schedule.ends_at
    evaluation.save(update_fields=["starts_at", "ends_at"])
    if evaluation.state == "draft":
        evaluation.pilot_items = schedule.pilot_items
        evaluation.save(update_fields=["pilot_items"])
        evaluation.raters.update(in_pilot=False)
        if schedule.pilot_items:
            evaluation.raters.filter(pk__in=schedule.pilot_raters).update(in_pilot=True)
        pilot_bound_store(evaluation, begin=True)
    dates = {
        name: day.isoformat() if (day := getattr(schedule, name)) else "" for name in ("starts_at", "ends_at")
    }
    audit(Action.EVALUATION_SCHEDULED, evaluation, by, **dates, pilot=evaluation.pilot_items or 0)


def schedule_check(evaluation: Evaluation, schedule: Schedule) -> None:
    """Raises ValidationError with messages by field if the schedule is impossible."""
    problems: dict[str, str] = {}
    if schedule.ends_at is not None and schedule.ends_at <= clock.now():
        problems["ends_at"] = _("This time has passed. Choose a later one, or close the evaluation.")
    if schedule.starts_at and schedule.ends_at and schedule.starts_at >= schedule.ends_at:
        problems["ends_at"] = _("The end must be later than the start.")
    if evaluation.state == "draft" and schedule.pilot_items:
        if schedule.pilot_items >= evaluation.items_count:
            problems["pilot_items"] = _(
                "A pilot must be smaller than the evaluation, which has %(n)s items."
            ) % {"n": evaluation.items_count}
        if not schedule.pilot_raters:
            problems["pilot_raters"] = _("Choose who rates in the pilot.")
    if problems:
        raise ValidationError(problems)


@transaction.atomic
def pilot_end(*, evaluation: Evaluation, by: User) -> bool:
    """Open the rest of the items to all raters. False if no pilot runs."""
    evaluation = locked(evaluation)
    if evaluation.pilot_below is None or evaluation.state == "draft":
        return False
    evaluation.pilot_below = None
    evaluation.save(update_fields=["pilot_below"])
    audit(Action.PILOT_ENDED, evaluation, by)
    tell_raters(evaluation)
    return True


def schedules_apply() -> None:
    """Open the drafts whose start has come and close the studies whose end has come. Workers call it every 15 seconds;
    raters don't depend on it, because a study's state goes by its dates."""
    now = clock.now()
    for evaluation in Evaluation.objects.filter(draft=True, closed_at=None, starts_at__lte=now):
        study_open(evaluation=evaluation, by=None)
    for evaluation in Evaluation.objects.filter(draft=False, closed_at=None, ends_at__lte=now):
        evaluation_close(evaluation=evaluation, by=None)
