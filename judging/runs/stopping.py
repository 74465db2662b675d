"""Everything that pauses or ends a run, and the hooks that are called when it does."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from evalsite.audit import Action, record
from judging.endpoints.requests import EndpointError
from judging.runs.models import NOT_ENDED, SETTLED, WORKED_ON, Run, RunState


def run_stopped(run_id: int) -> None:
    """It has ended or was paused, or a reply came after that. Call in the transaction that stores it."""
    for name in settings.RUN_STOPPED:
        import_string(name)(run_id)


def runs_stopped_before(run_ids: Iterable[int]) -> None:
    """The same of those among these runs that rest."""
    for pk in Run.objects.filter(pk__in=run_ids).exclude(state__in=WORKED_ON).values_list("pk", flat=True):
        run_stopped(pk)


@transaction.atomic
def run_pause(run: Run) -> bool:
    """Ask no further; replies under way are stored. False if it was not running."""
    if not Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.PAUSED):
        return False
    run_stopped(run.pk)
    record(Action.RUN_PAUSED, project=run.project, thing=run)
    return True


@transaction.atomic
def run_stop_at_budget(run: Run, problem: str) -> bool:
    """Pause a run that has spent what it may. False if it was not running."""
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    if not going.update(state=RunState.PAUSED, problem=problem):
        return False
    run_stopped(run.pk)
    record(Action.RUN_PAUSED, project=run.project, thing=run, why=problem)
    return True


@transaction.atomic
def run_stop_at_endpoint(run: Run, trouble: EndpointError) -> bool:
    """Pause a run whose endpoint must be put right before it can go on. False if it was not running."""
    words = f"{trouble.endpoint}: {trouble.detail}".removesuffix(": ")
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    if not going.update(state=RunState.PAUSED, problem=trouble.code, problem_detail=words):
        return False
    run_stopped(run.pk)
    record(Action.RUN_PAUSED, project=run.project, thing=run, why=trouble.code, endpoint=trouble.endpoint)
    return True


@transaction.atomic
def run_cancel(run: Run) -> bool:
    """End a run; what was judged stays, the rest is not run. False if it had ended before."""
    going = Run.objects.filter(pk=run.pk, state__in=NOT_ENDED)
    if not going.update(state=RunState.CANCELLED, finished_at=timezone.now()):
        return False
    run_stopped(run.pk)
    record(Action.RUN_CANCELLED, project=run.project, thing=run)
    return True


def run_end_early(run: Run) -> bool:
    """End a run whose answer is known; the rest is not run. False if it was not running."""
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    if not going.update(state=RunState.CANCELLED, problem=SETTLED, finished_at=timezone.now()):
        return False
    run_stopped(run.pk)
    record(Action.RUN_CANCELLED, project=run.project, thing=run, why=SETTLED)
    return True


def stopped_by_endpoint(run: Run) -> bool:
    """Whether it was paused because an endpoint must be put right."""
    return run.state == RunState.PAUSED and bool(run.problem) and not run.problem.startswith("budget_")
