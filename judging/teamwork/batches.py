"""Review actions on all matches of a filter, and undo: immediately for few marks, else by a worker in batches, each in
one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import QueryDict
from django.utils import timezone

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold, WorkStopped
from judging.filters.conditions import Conditions, matching
from judging.filters.counts import reads_judgements
from judging.filters.filter_form import FilterForm
from judging.filters.judgement_filter import CURRENT, Filters
from judging.filters.page_limits import LIMITS, Limits
from judging.records.models import Run
from judging.records.overrides import metrics_lock
from judging.teamwork.marks import (
    CHANGES,
    MAKES,
    Change,
    Pair,
    State,
    action_apply,
    action_finish,
    action_new,
    figures_change,
)
from judging.teamwork.models import UNDER_WAY, Mark, MarkQuerySet, ReviewAction

JOB = "apply_action"
BATCH = 2_000  # positions or marks per transaction, which blocks other writers on SQLite
LOOKED_UP = 8  # batches per transaction if each one has to look up all matches of the filter


@transaction.atomic
def change_many(
    *, run: Run, filters: Filters, change: Change, by: User, limits: Limits = LIMITS
) -> ReviewAction:
    """Change the marks of all answers that match a filter."""
    action = action_new(run, change, by, query=filters.query())
    pairs = first_pairs(run, filters, limits)
    if pairs is None or len(pairs) > limits.counted:
        jobs.request(JOB, action.pk)
        return action
    metrics_lock(run.pk)
    action_apply(action, pairs)
    action_finish(action)
    return action


def first_pairs(run: Run, filters: Filters, limits: Limits = LIMITS) -> list[Pair] | None:
    """Distinct (metric, response) pairs that match a filter, at most `limits.counted` + 1. None if too many judgements
    would have to be read."""
    filters = replace(filters, attempts=CURRENT)
    if reads_judgements(run, filters, limits):
        return None
    pairs = matching(run, filters).order_by().values_list("run_metric_id", "response_id")
    return list((pairs if run.by_workers else pairs.distinct())[: limits.counted + 1])


@transaction.atomic
def undo(*, action: ReviewAction, by: User, limits: Limits = LIMITS) -> bool:
    """Undo the action, except where marks have changed since. False if it is in progress or already undone."""
    metrics_lock(action.run_id)
    action.refresh_from_db()
    if action.kind not in CHANGES or action.state not in (State.DONE, State.FAILED):
        return False
    action.state, action.undone_by, action.undone_at = State.UNDOING, by, timezone.now()
    action.place, action.share = 0, 0.0
    if action.added + action.removed > limits.counted:
        action.save()
        jobs.request(JOB, action.pk)
        return True
    while action.state == State.UNDOING:
        _undo_batch(action)
    return True


def _failed(hold: Hold, action: ReviewAction, error: Exception) -> None:
    with transaction.atomic():
        hold.problem(error)
        hold.finish()
        ReviewAction.objects.filter(pk=action.pk, state__in=UNDER_WAY).update(state=State.FAILED)


@jobs.job(JOB, ReviewAction, failed=_failed)
def apply_action(hold: Hold, action: ReviewAction) -> None:
    """Process a waiting action or undo in batches, after the earlier ones of its run."""
    under_way = ReviewAction.objects.filter(run=action.run_id, state__in=UNDER_WAY, kind__in=CHANGES)
    if under_way.filter(pk__lt=action.pk).exists():
        raise WorkStopped
    while _step(hold):
        hold.pause()


@transaction.atomic
def _step(hold: Hold) -> bool:
    """Process one batch of an action. Returns whether more is left."""
    parts = ("run__project", "run__version", "by", "user")
    action = ReviewAction.objects.select_related(*parts).get(pk=hold.pk)
    metrics_lock(action.run_id)
    hold.renew()
    action.refresh_from_db(fields=["state", "place", "share", "added", "removed"])
    if action.state == State.WAITING:
        _next_batch(action)
    elif action.state == State.UNDOING:
        _undo_batch(action)
    return action.under_way


def _next_batch(action: ReviewAction) -> None:
    """Process the next positions of a waiting action. Call with the run's metrics locked."""
    run = action.run
    last = run.judgements.order_by("-position").values_list("position", flat=True).first() or 0
    filters = filters_of(action)
    upto = action.place + BATCH * (LOOKED_UP if filters.further else 1)
    pairs = matches_between(run, filters, action.place, upto, "run_metric_id", "response_id").values()
    action_apply(action, {(metric, response) for metric, response in pairs})
    action.place, action.share = upto, min(1.0, upto / max(1, last))
    if upto >= last:
        action_finish(action)
    else:
        action.save()


def filters_of(action: ReviewAction) -> Filters:
    """The action's filter, restricted to current attempts."""
    query = QueryDict(action.query.removeprefix("?"))
    return replace(FilterForm(query, action.run).filters, attempts=CURRENT)


def matches_between(
    run: Run, filters: Filters, after: int, upto: int, *fields: str
) -> dict[int, tuple[Any, ...]]:
    """{judgement id: fields} of the matches in a range of positions. Only these judgements' texts are searched."""
    within = run.judgements.filter(position__gt=after, position__lte=upto)
    return {pk: tuple(values) for pk, _, *values in Conditions(run, filters).among(within, *fields)}


def _undo_batch(action: ReviewAction) -> None:
    """Undo some of an action's marks. Call with the run's metrics locked."""
    of_action = Mark.objects.current().filter(action=action, pk__gt=action.place)
    marks = list(of_action.order_by("pk")[:BATCH])
    if marks:
        Mark.objects.filter(pk__in=[mark.pk for mark in marks]).update(removed_by=action)
        pairs = {(mark.run_metric_id, mark.response_id) for mark in marks}
        removed = _removed(action).filter(response__in=[mark.response_id for mark in marks])
        restored = [mark.pk for mark in removed if (mark.run_metric_id, mark.response_id) in pairs]
        action.place = marks[-1].pk
    else:
        restored = [] if action.kind in MAKES else _restorable(action)
    Mark.objects.filter(pk__in=restored).update(removed_by=None)
    if marks or restored:
        figures_change(action)
        action.share = min(1.0, action.share + max(len(marks), len(restored)) / action.changed)
    else:
        _finish_undo(action)
    action.save()


def _finish_undo(action: ReviewAction) -> None:
    action.state = State.UNDONE
    action.notices.filter(read_at=None).delete()
    record(
        Action.REVIEW_UNDONE,
        project=action.run.project,
        thing=action.run,
        by=action.undone_by,
        undone=action.kind,
        tag=action.name,
        judgements=action.changed,
    )


def _removed(action: ReviewAction) -> MarkQuerySet:
    return Mark.objects.filter(removed_by=action).exclude(action=action)


def _restorable(action: ReviewAction) -> list[int]:
    """A batch of marks that the action removed and that have no current equivalent."""
    alike = {name: OuterRef(name) for name in ("response", "run_metric", "kind", "name")}
    marks = _removed(action).filter(~Exists(Mark.objects.current().filter(**alike)))
    return list(marks.values_list("pk", flat=True)[:BATCH])
