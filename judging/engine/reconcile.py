"""Recover the work of dead workers. Runs when a worker starts and every 15 seconds."""

from __future__ import annotations

import time

from evalsite.tasks import workers
from judging.endpoints import limiter
from judging.engine import chunks, deaths
from judging.engine.journal import count_lost_of_ended
from judging.engine.run_worker import judge_runs
from judging.records.models import Chunk, Run, RunState


def reconcile() -> None:
    """Free what dead workers held, finish runs without open chunks, and wake a worker if unclaimed work is left."""
    free_dead_leases()
    limiter.release_dead()
    for run_id in Run.objects.by_workers().filter(state=RunState.RUNNING).values_list("pk", flat=True):
        chunks.finish_if_done(run_id)
    if chunks.has_waiting_work():
        workers.wake(judge_runs)


def free_dead_leases() -> int:
    """Release runs and chunks whose owner is dead, and chunks whose lease has expired. Returns the number of chunks."""
    held = Chunk.objects.filter(done=False).exclude(owner__in=("", chunks.PARKED))
    planned = Run.objects.filter(state=RunState.PLANNING).exclude(planner="")
    freed = deaths.count({*held.values_list("owner", flat=True), *planned.values_list("planner", flat=True)})
    count_lost_of_ended()
    freed += held.filter(lease_until__lt=time.time()).update(owner="", lease_until=0)
    for owner in held.values_list("owner", flat=True).distinct():
        if not workers.is_alive(owner):
            freed += held.filter(owner=owner).update(owner="", lease_until=0)
    for planner in planned.values_list("planner", flat=True):
        if not workers.is_alive(planner):
            planned.filter(planner=planner).update(planner="")
    return freed
