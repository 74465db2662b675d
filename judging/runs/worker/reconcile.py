"""Recover the work of dead workers. Runs when a worker starts and every 15 seconds."""

from __future__ import annotations

import time

from evalsite.tasks import workers
from judging.endpoints import limiter
from judging.runs.models import Chunk, Run, RunState
from judging.runs.worker import chunks
from judging.runs.worker.journal import settle_dead
from judging.runs.worker.run_worker import judge_runs


def reconcile() -> None:
    """Free the leases of dead workers, finish runs without open chunks, and wake a worker if unclaimed work is left."""
    free_dead_leases()
    limiter.release_dead_shares()
    for run_id in Run.objects.by_workers().filter(state=RunState.RUNNING).values_list("pk", flat=True):
        chunks.finish_if_done(run_id)
    if chunks.work_waits():
        workers.wake(judge_runs)


def free_dead_leases() -> int:
    """Release chunks whose owner is dead or whose lease has expired. Returns the number released."""
    settle_dead()
    held = Chunk.objects.filter(done=False).exclude(owner="")
    freed = held.filter(lease_until__lt=time.time()).update(owner="", lease_until=0)
    for owner in held.values_list("owner", flat=True).distinct():
        if not workers.is_alive(owner):
            freed += held.filter(owner=owner).update(owner="", lease_until=0)
    return freed
