"""What a pump works on: the runs that ask for it, what each needs to be judged, and whose turn it is."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from django.utils import timezone

from datasets.core.formats import Format
from judging.endpoints.requests import Caller, EndpointError, RunGate
from judging.runs import planning, store
from judging.runs.answers import Answers
from judging.runs.budget import Ledger, Spent
from judging.runs.models import PEOPLE, Priority, Run, RunState
from judging.runs.reply_cache import ReplyCache
from judging.runs.services import budget_of, run_stop_at_budget, run_stop_at_trouble, spent_by
from judging.runs.settling import Settling
from judging.runs.tools import MetricTools

log = logging.getLogger("judging.pump")

WEIGHTS = {Priority.LOW: 1.0, Priority.NORMAL: 3.0, Priority.HIGH: 9.0}  # of runs that want the same slots


@dataclass(slots=True)
class ActiveRun:
    """A run that this pump works on."""

    pk: int
    form: Format
    tools: dict[store.MetricKey, MetricTools]
    gate: RunGate
    ledger: Ledger
    cache: ReplyCache | None
    caller: Caller
    ahead: int  # how many stories may be started: enough to fill all slots while the next chunk is loaded
    fed: float = 0.0  # chunks taken so far, for its weight
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    exhausted: bool = False
    answers: Answers | None = None  # None: all were uploaded


def runs_to_work_on(only: int | None) -> set[int]:
    """Plan the runs that wait for it; ids of those that run."""
    chosen = (Run.objects.filter(pk=only) if only else Run.objects.filter(only_worker="")).exclude(
        kind=PEOPLE
    )
    for pk in chosen.filter(state=RunState.PLANNING).order_by("pk").values_list("pk", flat=True):
        planning.plan(pk)
    return set(chosen.filter(state=RunState.RUNNING).values_list("pk", flat=True))


def running_of(runs: list[int], settling: Settling | None) -> dict[int, Spent]:
    """Those of the runs that may still ask, and what each has spent. One that has spent its budget is paused, one
    whose answer is known ends."""
    found = {}
    for run in Run.objects.filter(pk__in=runs, state=RunState.RUNNING).select_related("project"):
        spent = spent_by(run)
        problem = spent.reached(budget_of(run)) if run.not_run else ""
        if problem and store.asks_further(run):
            run_stop_at_budget(run, problem)
        elif settling is None or not settling.look(run):
            found[run.pk] = spent
    return found


def poorest_of_each_project(runs: list[ActiveRun]) -> list[ActiveRun]:
    """The run of each project that was fed least for its weight."""
    found: dict[int, ActiveRun] = {}
    for run in runs:
        other = found.setdefault(run.gate.project, run)
        if run.fed < other.fed:
            found[run.gate.project] = run
    return list(found.values())


def stop_at_trouble(run: int, trouble: EndpointError) -> None:
    log.warning("Run %s is paused: %s at %s", run, trouble.code, trouble.endpoint)
    run_stop_at_trouble(Run.objects.select_related("project").get(pk=run), trouble)


def refuse(run: Run, code: str, detail: str) -> None:
    """What users wrote is not run where this machine cannot lock it up well enough. The run says why it failed."""
    log.error("Run %s cannot start: %s %s", run.pk, code, detail)
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    going.update(state=RunState.FAILED, problem=code, problem_detail=detail, finished_at=timezone.now())
