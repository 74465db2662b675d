"""Everything that pauses or ends a run, and the hooks that are called when it does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from evalsite.audit import Action, record
from judging.endpoints.requests import EndpointError
from judging.runs.models import NOT_ENDED, SETTLED, WORKED_ON, Run, RunState

log = logging.getLogger("judging.run_worker")


def run_stopped(run_id: int) -> None:
    """It has ended or was paused, or a reply came after that. Call in the transaction that stores it."""
    for name in settings.RUN_STOPPED:
        import_string(name)(run_id)


def runs_stopped_before(run_ids: Iterable[int]) -> None:
    """The same for those among these runs that no one works on."""
    for pk in Run.objects.filter(pk__in=run_ids).exclude(state__in=WORKED_ON).values_list("pk", flat=True):
        run_stopped(pk)


@transaction.atomic
def _stop(run: Run, action: Action, states: Sequence[str], why: dict[str, Any], **changes: Any) -> bool:
    """Whether it was in one of the states. `why` goes into the audit log."""
    if not Run.objects.filter(pk=run.pk, state__in=states).update(**changes):
        return False
    run_stopped(run.pk)
    record(action, project=run.project, thing=run, **why)
    return True


def run_pause(run: Run) -> bool:
    """Send no more requests; replies in progress are stored. False if it was not running."""
    return _stop(run, Action.RUN_PAUSED, (RunState.RUNNING,), {}, state=RunState.PAUSED)


def run_stop_at_budget(run: Run, problem: str) -> bool:
    """Pause a run that has spent what it may. False if it was not running."""
    changes = {"state": RunState.PAUSED, "problem": problem}
    return _stop(run, Action.RUN_PAUSED, (RunState.RUNNING,), {"why": problem}, **changes)


def run_stop_at_endpoint(run: Run, error: EndpointError) -> bool:
    """Pause a run whose endpoint must be fixed before it can continue. False if it was not running."""
    detail = f"{error.endpoint}: {error.detail}".removesuffix(": ")
    changes = {"state": RunState.PAUSED, "problem": error.code, "problem_detail": detail}
    why = {"why": error.code, "endpoint": error.endpoint}
    return _stop(run, Action.RUN_PAUSED, (RunState.RUNNING,), why, **changes)


def run_cancel(run: Run) -> bool:
    """End a run; what was judged stays, the rest is not run. False if it had ended before."""
    changes = {"state": RunState.CANCELLED, "finished_at": timezone.now()}
    return _stop(run, Action.RUN_CANCELLED, NOT_ENDED, {}, **changes)


def run_end_early(run: Run) -> bool:
    """End a run whose result is known; the rest is not run. False if it was not running."""
    changes = {"state": RunState.CANCELLED, "problem": SETTLED, "finished_at": timezone.now()}
    return _stop(run, Action.RUN_CANCELLED, (RunState.RUNNING,), {"why": SETTLED}, **changes)


def run_refuse(run: Run, code: str, detail: str) -> None:
    """Users' code is not run if this machine cannot isolate it well enough. The run says why it failed."""
    log.error("Run %s cannot start: %s %s", run.pk, code, detail)
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    going.update(state=RunState.FAILED, problem=code, problem_detail=detail, finished_at=timezone.now())


def stopped_by_endpoint(run: Run) -> bool:
    """Whether it was paused because an endpoint must be fixed."""
    return run.state == RunState.PAUSED and bool(run.problem) and not run.problem.startswith("budget_")
