"""Re-judging or re-parsing many judgements: a worker plans the new attempts in batches, each in one transaction.

The run is `planning` until all attempts are planned, so that it is neither processed nor extended meanwhile. Overrides
are copied to the new attempts as usual. If the run is cancelled, attempts planned so far are not run; re-judging stops,
but re-parsing continues, because all scores of a metric must be on one scale.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count
from django_tasks import task

from evalsite.accounts.models import User
from evalsite.tasks import workers
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import MetricVersion
from judging.runs import planning
from judging.runs.budget import budget_of
from judging.runs.counts import MOST_COUNTED, reads_judgements
from judging.runs.models import (
    COUNTERS,
    Judgement,
    JudgementState,
    Reading,
    Rejudging,
    Run,
    RunMetric,
    RunState,
)
from judging.runs.overrides import run_lock
from judging.runs.rerun.rejudge import REJUDGEABLE, reading_by, rejudge_go_on
from judging.runs.rerun.reparse import REPARSEABLE, reading_add, reparse_go_on
from judging.runs.rerun.selection import Selection
from judging.runs.row_filters import these
from judging.runs.services import allow_budget
from judging.runs.teamwork.batches import filters_of, found_within, work_off
from judging.runs.teamwork.models import ReviewAction

BATCH = 10_000  # positions per transaction: a tenth of a second, which blocks other writers on SQLite
State = ReviewAction.State


def too_many_at_once(run: Run, selection: Selection) -> bool:
    """Whether the selection is too large, or too expensive to determine, to be processed within a request."""
    if selection.only is not None:
        return False
    if reads_judgements(run, selection.filters):
        return True
    return selection.of(run).order_by()[: MOST_COUNTED + 1].count() > MOST_COUNTED


@transaction.atomic
def rejudge_begin(
    *, run: Run, selection: Selection, user: User, version: MetricVersion | None = None
) -> ReviewAction | None:
    """Start a re-judging of all matches, planned by a worker; otherwise like `run_rejudge`. None while the run is in
    progress.

    Raises ValidationError if the budget is used up.
    """
    locked = run_lock(run.pk)
    if locked.state not in REJUDGEABLE or not _free(locked):
        return None
    allow_budget(locked, budget_of(locked))
    reading = reading_by(locked, selection, version, user) if version else None
    return _begin(locked, ReviewAction.Kind.REJUDGE, selection, user, reading)


@transaction.atomic
def reparse_begin(
    *,
    run: Run,
    run_metric: RunMetric,
    definition: MetricDefinition,
    selection: Selection,
    user: User,
    version: MetricVersion | None = None,
) -> ReviewAction | None:
    """Start a re-parsing of one metric's matches, planned by a worker; otherwise like `run_reparse`. None while the run
    or any calls are in progress.
    """
    locked = run_lock(run.pk)
    if locked.state not in REPARSEABLE or not _free(locked):
        return None
    reading = reading_add(run_metric, definition, user=user, version=version, whole=selection.whole)
    if not planning.set_rest_aside(locked):
        transaction.set_rollback(True)
        return None
    return _begin(locked, ReviewAction.Kind.REPARSE, selection, user, reading)


def _free(run: Run) -> bool:
    """Whether no other re-judging is being planned. Closes a re-judging left over from when the run was cancelled."""
    held = Rejudging.objects.select_related("action", "reading").filter(run=run).first()
    if held and _only_reads(held):
        return False
    if held:
        _close(held, State.STOPPED)
    return True


def _only_reads(rejudging: Rejudging) -> bool:
    return rejudging.reading is not None and not rejudging.reading.asks


def _begin(
    run: Run, kind: ReviewAction.Kind, selection: Selection, user: User, reading: Reading | None
) -> ReviewAction:
    action = ReviewAction.objects.create(run=run, kind=kind, query=selection.filters.query(), by=user)
    last = run.judgements.order_by("-position").values_list("position", flat=True).first() or 0
    Rejudging.objects.create(run=run, action=action, reading=reading, last=last, state_before=run.state)
    run.state = RunState.PLANNING
    run.save()
    workers.wake(plan_rejudging)
    return action


@task(queue_name=workers.DATA)
def plan_rejudging() -> None:
    """Plan the waiting re-judgings."""
    for pk in list(Rejudging.objects.order_by("action").values_list("action", flat=True)):
        work_off(pk, plan_batch, _fail)


def _held(action_pk: int) -> tuple[Run, Rejudging] | None:
    """The run, locked, and its re-judging; None if that has ended."""
    found = Rejudging.objects.filter(action=action_pk).values_list("run", flat=True).first()
    if found is None:
        return None
    locked = run_lock(found)
    parts = ["action__by", "action__run__version", "action__run__project"]
    parts += ["reading__metric_version", "reading__run_metric", "reading__created_by"]
    rejudging = Rejudging.objects.select_related(*parts).filter(action=action_pk).first()
    return (locked, rejudging) if rejudging else None


@transaction.atomic
def plan_batch(action_pk: int) -> bool:
    """Plan one batch. Returns whether more is left."""
    held = _held(action_pk)
    if held is None:
        return False
    run, rejudging = held
    if run.state != RunState.PLANNING and not _only_reads(rejudging):
        _close(rejudging, State.STOPPED)
        return False
    action = rejudging.action
    upto = min(rejudging.last, action.place + BATCH)
    action.made += _plan(run, rejudging, upto)
    action.place, action.share = upto, (upto + 1) / (rejudging.last + 1)
    action.save()
    if upto < rejudging.last:
        return True
    _go_on(run, rejudging)
    _close(rejudging, State.DONE)
    return False


def _plan(run: Run, rejudging: Rejudging, upto: int) -> int:
    """Plan new attempts for the matches up to a position. Returns the number created."""
    action = rejudging.action
    found = found_within(action.run, filters_of(action), action.place, upto, "state")
    ids = these([pk for pk, (state,) in found.items() if state != JudgementState.NOT_RUN])
    made = planning.plan_attempts(run, Judgement.objects.filter(pk__in=ids), rejudging.reading)
    followed = Judgement.objects.filter(pk__in=ids, current=False).order_by()
    for state, count in followed.values_list("state").annotate(count=Count("*")):
        counter = COUNTERS[JudgementState(state)]
        setattr(run, counter, getattr(run, counter) - count)
    run.revision += 1
    run.save(update_fields=[*COUNTERS.values(), "revision"])
    return made


def _go_on(run: Run, rejudging: Rejudging) -> None:
    """Restore the run's state, and start processing the planned attempts, if any."""
    made, reading = rejudging.action.made, rejudging.reading
    stopped = run.state in (RunState.PAUSED, RunState.CANCELLED)
    if run.state == RunState.PLANNING:
        run.state = rejudging.state_before
    if not made:
        run.save(update_fields=["state"])
    elif reading and _only_reads(rejudging):
        reparse_go_on(run, reading, made, stopped=stopped)
    else:
        rejudge_go_on(run, reading, made, rejudging.action.by)


@transaction.atomic
def _fail(action_pk: int) -> None:
    """End a failed planning. Attempts planned so far are processed."""
    held = _held(action_pk)
    if held is None:
        return
    run, rejudging = held
    if rejudging.reading and _only_reads(rejudging):  # lets the rest be re-parsed separately
        rejudging.reading.whole = False
        rejudging.reading.save(update_fields=["whole"])
    if run.state == RunState.PLANNING:
        _go_on(run, rejudging)
    _close(rejudging, State.FAILED)


def _close(rejudging: Rejudging, state: State) -> None:
    action, reading = rejudging.action, rejudging.reading
    action.state = state
    action.save()
    rejudging.delete()
    if reading and not action.made:
        reading.delete()


def reconcile() -> None:
    """Resume waiting re-judgings after a worker died."""
    if Rejudging.objects.exists():
        workers.wake(plan_rejudging)
