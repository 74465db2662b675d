"""Review actions on all matches of a filter, and undo: immediately for few marks, else by a worker in batches, each in
one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django_tasks import task

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.storage.errors import database_unavailable
from evalsite.tasks import workers
from judging.runs.counts import MOST_COUNTED, reads_judgements
from judging.runs.filter_form import FilterForm
from judging.runs.filters import CURRENT, Filters, among, matching
from judging.runs.models import Run
from judging.runs.overrides import metrics_lock
from judging.runs.teamwork.marks import (
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
from judging.runs.teamwork.models import UNDER_WAY, Mark, MarkQuerySet, ReviewAction

log = logging.getLogger("judging.runs.teamwork.batches")

BATCH = 2_000  # positions or marks per transaction, which blocks other writers on SQLite
LOOKED_UP = 8  # batches per transaction if each one has to look up all matches of the filter


@transaction.atomic
def change_many(*, run: Run, filters: Filters, change: Change, by: User) -> ReviewAction:
    """Change the marks of all answers that match a filter."""
    action = action_new(run, change, by, query=filters.query())
    pairs = first_pairs(run, filters)
    if pairs is None or len(pairs) > MOST_COUNTED:
        workers.wake(work_off_actions)
        return action
    metrics_lock(run.pk)
    action_apply(action, pairs)
    action_finish(action)
    return action


def first_pairs(run: Run, filters: Filters) -> list[Pair] | None:
    """Distinct (metric, response) pairs that match a filter, at most MOST_COUNTED + 1. None if too many judgements
    would have to be read."""
    filters = replace(filters, attempts=CURRENT)
    if reads_judgements(run, filters):
        return None
    found = matching(run, filters).order_by().values_list("run_metric_id", "response_id")
    return list((found if run.by_workers else found.distinct())[: MOST_COUNTED + 1])


@transaction.atomic
def undo(*, action: ReviewAction, by: User) -> bool:
    """Undo the action, except where marks have changed since. False if it is in progress or already undone."""
    metrics_lock(action.run_id)
    action.refresh_from_db()
    if action.kind not in CHANGES or action.state not in (State.DONE, State.FAILED):
        return False
    action.state, action.undone_by, action.undone_at = State.UNDOING, by, timezone.now()
    action.place, action.share = 0, 0.0
    if action.made + action.removed > MOST_COUNTED:
        action.save()
        workers.wake(work_off_actions)
        return True
    while action.state == State.UNDOING:
        _undo_batch(action)
    return True


@task(queue_name=workers.DATA)
def work_off_actions() -> None:
    """Process waiting actions and undos."""
    for pk in _waiting().values_list("pk", flat=True):
        work_off(pk, _step, _fail)


def work_off(pk: int, step: Callable[[int], bool], fail: Callable[[int], object]) -> None:
    """Call `step` until it returns False or the worker must stop; `fail` on errors other than a lost database."""
    try:
        while not workers.stopping.is_set() and step(pk):
            pass
    except Exception as error:  # an action that fails must not block those after it
        if database_unavailable(error):
            raise
        log.exception("Review action %s failed.", pk)
        fail(pk)


def _waiting() -> QuerySet[ReviewAction]:
    return ReviewAction.objects.filter(state__in=UNDER_WAY, kind__in=CHANGES).order_by("pk")


def _fail(pk: int) -> None:
    _waiting().filter(pk=pk).update(state=State.FAILED)


@transaction.atomic
def _step(pk: int) -> bool:
    """Process one batch of an action. Safe with concurrent workers. Returns whether more is left."""
    action = ReviewAction.objects.select_related("run__project", "run__version", "by", "user").get(pk=pk)
    metrics_lock(action.run_id)
    action.refresh_from_db(fields=["state", "place", "share", "made", "removed"])
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
    pairs = found_within(run, filters, action.place, upto, "run_metric_id", "response_id").values()
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


def found_within(
    run: Run, filters: Filters, after: int, upto: int, *fields: str
) -> dict[int, tuple[Any, ...]]:
    """{judgement id: fields} of the matches in a range of positions. Only these judgements' texts are searched."""
    inside = reads_judgements(run, filters)
    found = matching(run, filters.outside if inside else filters, by_figures=False)
    found = found.filter(position__gt=after, position__lte=upto)
    known = {pk: tuple(values) for pk, *values in found.values_list("pk", *fields)}
    matches = among(run, filters, list(known)) if inside else known.keys()
    return {pk: values for pk, values in known.items() if pk in matches}


def _undo_batch(action: ReviewAction) -> None:
    """Undo some of an action's marks. Call with the run's metrics locked."""
    of_action = Mark.objects.current().filter(action=action, pk__gt=action.place)
    made = list(of_action.order_by("pk")[:BATCH])
    if made:
        Mark.objects.filter(pk__in=[one.pk for one in made]).update(removed_by=action)
        pairs = {(one.run_metric_id, one.response_id) for one in made}
        there = _removed(action).filter(response__in=[one.response_id for one in made])
        back = [one.pk for one in there if (one.run_metric_id, one.response_id) in pairs]
        action.place = made[-1].pk
    else:
        back = [] if action.kind in MAKES else _free(action)
    Mark.objects.filter(pk__in=back).update(removed_by=None)
    if made or back:
        figures_change(action)
        action.share = min(1.0, action.share + max(len(made), len(back)) / action.changed)
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


def _free(action: ReviewAction) -> list[int]:
    """A batch of marks that the action removed and that have no current equivalent."""
    alike = {name: OuterRef(name) for name in ("response", "run_metric", "kind", "name")}
    found = _removed(action).filter(~Exists(Mark.objects.current().filter(**alike)))
    return list(found.values_list("pk", flat=True)[:BATCH])


def reconcile() -> None:
    """Resume waiting actions after a worker died."""
    if _waiting().exists():
        workers.wake(work_off_actions)
