"""Re-judging or re-parsing many judgements: a worker plans the new attempts in batches, each in one transaction.

The run is `planning` until all attempts are planned, so that it is neither processed nor extended meanwhile. Overrides
are copied to the new attempts as usual. If the run is cancelled, attempts planned so far are not run; re-judging stops,
but re-parsing continues, because all scores of a metric must be on one scale.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count

from evalsite.accounts.models import User
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.metric_definition import MetricDefinition
from judging.engine import planning
from judging.engine.budget import budget_of
from judging.filters.counts import reads_judgements
from judging.filters.page_limits import LIMITS, Limits
from judging.filters.row_filters import id_subquery
from judging.metrics.models import MetricVersion
from judging.records.models import (
    COUNTERS,
    Judgement,
    JudgementState,
    Reading,
    Rejudging,
    Run,
    RunMetric,
    RunState,
)
from judging.records.overrides import run_lock
from judging.runs.rerun.rejudge import REJUDGEABLE, reading_by, rejudge_launch
from judging.runs.rerun.reparse import REPARSEABLE, reading_add, reparse_launch
from judging.runs.rerun.selection import Selection
from judging.runs.services import allow_budget
from judging.teamwork.batches import filters_of, matches_between
from judging.teamwork.models import ReviewAction

BATCH = 10_000  # positions per transaction: a tenth of a second, which blocks other writers on SQLite
JOB = "plan_rejudging"
State = ReviewAction.State


def too_many_at_once(run: Run, selection: Selection, limits: Limits = LIMITS) -> bool:
    """Whether the selection is too large, or too expensive to determine, to be processed within a request."""
    if selection.only is not None:
        return False
    if reads_judgements(run, selection.filters, limits):
        return True
    return selection.of(run).order_by()[: limits.counted + 1].count() > limits.counted


@transaction.atomic
def rejudge_begin(
    *, run: Run, selection: Selection, user: User, version: MetricVersion | None = None
) -> ReviewAction | None:
    """Start a re-judging of all matches, planned by a worker; otherwise like `run_rejudge`. None while the run is in
    progress.

    Raises ValidationError if the budget is used up.
    """
    locked = run_lock(run.pk)
    if locked.state not in REJUDGEABLE or not _can_begin(locked):
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
    if locked.state not in REPARSEABLE or not _can_begin(locked):
        return None
    reading = reading_add(run_metric, definition, user=user, version=version, whole=selection.whole)
    if not planning.remove_open_chunks(locked):
        transaction.set_rollback(True)
        return None
    return _begin(locked, ReviewAction.Kind.REPARSE, selection, user, reading)


def _can_begin(run: Run) -> bool:
    """Whether no other re-judging is being planned. Closes a re-judging left over from when the run was cancelled."""
    held = Rejudging.objects.select_related("action", "reading").filter(run=run).first()
    if held and _only_reparses(held):
        return False
    if held:
        _close(held, State.STOPPED)
    return True


def _only_reparses(rejudging: Rejudging) -> bool:
    return rejudging.reading is not None and not rejudging.reading.sends_requests


def _begin(
    run: Run, kind: ReviewAction.Kind, selection: Selection, user: User, reading: Reading | None
) -> ReviewAction:
    action = ReviewAction.objects.create(run=run, kind=kind, query=selection.filters.query(), by=user)
    last = run.judgements.order_by("-position").values_list("position", flat=True).first() or 0
    Rejudging.objects.create(run=run, action=action, reading=reading, last=last, state_before=run.state)
    run.state = RunState.PLANNING
    run.save()
    jobs.request(JOB, action.pk)
    return action


@transaction.atomic
def _failed(hold: Hold, action: ReviewAction, error: Exception) -> None:
    hold.problem(error)
    hold.finish()
    _fail(action.pk)


@jobs.job(JOB, ReviewAction, failed=_failed)
def plan_rejudging(hold: Hold, _action: ReviewAction) -> None:
    """Plan the new attempts of a re-judging in batches."""
    while _plan_batch(hold):
        hold.pause()


def _held(action_pk: int) -> tuple[Run, Rejudging] | None:
    """The run, locked, and its re-judging; None if that has ended."""
    run_id = Rejudging.objects.filter(action=action_pk).values_list("run", flat=True).first()
    if run_id is None:
        return None
    locked = run_lock(run_id)
    parts = ["action__by", "action__run__version", "action__run__project"]
    parts += ["reading__metric_version", "reading__run_metric", "reading__created_by"]
    rejudging = Rejudging.objects.select_related(*parts).filter(action=action_pk).first()
    return (locked, rejudging) if rejudging else None


@transaction.atomic
def _plan_batch(hold: Hold) -> bool:
    """Plan one batch. Returns whether more is left."""
    held = _held(hold.pk)
    hold.renew()
    if held is None:
        return False
    run, rejudging = held
    if run.state != RunState.PLANNING and not _only_reparses(rejudging):
        _close(rejudging, State.STOPPED)
        return False
    action = rejudging.action
    upto = min(rejudging.last, action.place + BATCH)
    action.added += _plan(run, rejudging, upto)
    action.place, action.share = upto, (upto + 1) / (rejudging.last + 1)
    action.save()
    if upto < rejudging.last:
        return True
    _start_attempts(run, rejudging)
    _close(rejudging, State.DONE)
    return False


def _plan(run: Run, rejudging: Rejudging, upto: int) -> int:
    """Plan new attempts for the matches up to a position. Returns the number created."""
    action = rejudging.action
    matches = matches_between(action.run, filters_of(action), action.place, upto, "state")
    ids = id_subquery([pk for pk, (state,) in matches.items() if state != JudgementState.NOT_RUN])
    created = planning.plan_attempts(run, Judgement.objects.filter(pk__in=ids), rejudging.reading)
    followed = Judgement.objects.filter(pk__in=ids, current=False).order_by()
    for state, count in followed.values_list("state").annotate(count=Count("*")):
        counter = COUNTERS[JudgementState(state)]
        setattr(run, counter, getattr(run, counter) - count)
    run.revision += 1
    run.save(update_fields=[*COUNTERS.values(), "revision"])
    return created


def _start_attempts(run: Run, rejudging: Rejudging) -> None:
    """Restore the run's state, and start processing the planned attempts, if any."""
    created, reading = rejudging.action.added, rejudging.reading
    stopped = run.state in (RunState.PAUSED, RunState.CANCELLED)
    if run.state == RunState.PLANNING:
        run.state = rejudging.state_before
    if not created:
        run.save(update_fields=["state"])
    elif reading and _only_reparses(rejudging):
        reparse_launch(run, reading, created, stopped=stopped)
    else:
        rejudge_launch(run, reading, created, rejudging.action.by)


def _fail(action_pk: int) -> None:
    """End a failed planning. Attempts planned so far are processed."""
    held = _held(action_pk)
    if held is None:
        return
    run, rejudging = held
    if rejudging.reading and _only_reparses(rejudging):  # lets the rest be re-parsed separately
        rejudging.reading.whole = False
        rejudging.reading.save(update_fields=["whole"])
    if run.state == RunState.PLANNING:
        _start_attempts(run, rejudging)
    _close(rejudging, State.FAILED)


def _close(rejudging: Rejudging, state: State) -> None:
    action, reading = rejudging.action, rejudging.reading
    action.state = state
    action.save()
    rejudging.delete()
    if reading and not action.added:
        reading.delete()
