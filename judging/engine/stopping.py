"""Pausing and ending runs, and what is computed when that happens."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from evalsite.audit import Action, record
from evalsite.tasks import jobs
from evalsite.webhooks.kinds import Event
from judging.endpoints.requests import EndpointError
from judging.records.models import NOT_ENDED, SET_ASIDE, SETTLED, WORKED_ON, WORKER_DIED, Run, RunState
from judging.records.run_events import emit_run

log = logging.getLogger("judging.run_worker")


def run_stopped(run_id: int) -> None:
    """Have the figures of a run computed that ended or was paused, or got a reply after that. Call in the transaction
    that stores the change."""
    if Run.objects.get(pk=run_id).done:
        jobs.request("compute_figures", run_id, again=True)


def runs_stopped_before(run_ids: Iterable[int]) -> None:
    """`run_stopped` for those of these runs that are not in progress."""
    for pk in Run.objects.filter(pk__in=run_ids).exclude(state__in=WORKED_ON).values_list("pk", flat=True):
        run_stopped(pk)


@transaction.atomic
def _stop(
    run: Run,
    action: Action,
    states: Sequence[str],
    why: dict[str, Any],
    event: Event = Event.RUN_STOPPED,
    **changes: Any,
) -> bool:
    """Apply the changes if the run is in one of the states; returns whether it was. `why` goes to the audit log,
    `event` to webhooks."""
    if not Run.objects.filter(pk=run.pk, state__in=states).update(**changes):
        return False
    run_stopped(run.pk)
    record(action, project=run.project, thing=run, **why)
    emit_run(event, run.pk)
    return True


def run_pause(run: Run) -> bool:
    """Send no more requests; replies in progress are stored. False if it was not running."""
    return _stop(run, Action.RUN_PAUSED, (RunState.RUNNING,), {}, state=RunState.PAUSED)


def run_stop_at_budget(run: Run, problem: str) -> bool:
    """Pause a run that has reached its budget. False if it was not running."""
    changes: dict[str, Any] = {"state": RunState.PAUSED, "problem": problem}
    event = Event.RUN_BUDGET_REACHED
    return _stop(run, Action.RUN_PAUSED, (RunState.RUNNING,), {"why": problem}, event, **changes)


def run_stop_at_endpoint(run: Run, error: EndpointError) -> bool:
    """Pause a run whose endpoint must be fixed before it can continue. False if it was not running."""
    detail = f"{error.endpoint}: {error.detail}".removesuffix(": ")
    changes: dict[str, Any] = {"state": RunState.PAUSED, "problem": error.code, "problem_detail": detail}
    why = {"why": error.code, "endpoint": error.endpoint}
    return _stop(run, Action.RUN_PAUSED, (RunState.RUNNING,), why, **changes)


def run_set_aside(run: Run, problem: str = WORKER_DIED, detail: str = "") -> bool:
    """Pause a run that keeps workers from working on the others. False if it was not in progress."""
    log.error("Run %s is set aside: %s %s", run.pk, problem, detail)
    changes: dict[str, Any] = {"state": RunState.PAUSED, "problem": problem, "problem_detail": detail}
    return _stop(run, Action.RUN_PAUSED, WORKED_ON, {"why": problem}, **changes)


def run_cancel(run: Run) -> bool:
    """Cancel a run. Judgements made so far are kept, the rest is not run. False if it had already ended."""
    changes: dict[str, Any] = {"state": RunState.CANCELLED, "finished_at": timezone.now()}
    return _stop(run, Action.RUN_CANCELLED, NOT_ENDED, {}, **changes)


def run_end_early(run: Run) -> bool:
    """End a run by early stopping; the rest is not run. False if it was not running."""
    changes: dict[str, Any] = {"state": RunState.CANCELLED, "problem": SETTLED, "finished_at": timezone.now()}
    return _stop(run, Action.RUN_CANCELLED, (RunState.RUNNING,), {"why": SETTLED}, **changes)


def run_refuse(run: Run, code: str, detail: str) -> None:
    """Fail a run because this machine cannot isolate user code well enough. The run stores the reason."""
    log.error("Run %s cannot start: %s %s", run.pk, code, detail)
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    changes = {"problem": code, "problem_detail": detail, "finished_at": timezone.now()}
    with transaction.atomic():
        if going.update(state=RunState.FAILED, **changes):
            emit_run(Event.RUN_STOPPED, run.pk)


def stopped_by_endpoint(run: Run) -> bool:
    """Whether the run was paused because an endpoint must be fixed."""
    return (
        run.state == RunState.PAUSED
        and bool(run.problem)
        and not (run.problem.startswith("budget_") or is_set_aside(run))
    )


def is_set_aside(run: Run) -> bool:
    """Whether the run was paused because it kept workers from working on the others."""
    return run.state == RunState.PAUSED and run.problem in SET_ASIDE
