"""Take up again what a dead worker held. Runs at every worker's start and every 15 seconds."""

from __future__ import annotations

import time

from django.db.models import Exists, OuterRef

from evalsite.tasks import workers
from judging.endpoints import limiter
from judging.runs.journal import settle_dead
from judging.runs.models import PEOPLE, Chunk, Run, RunState
from judging.runs.store import finish_if_done


def reconcile() -> None:
    """Free the leases of the dead, wake a pump for runs that have work nobody holds, end runs that have none."""
    from judging.runs.tasks import pump

    free_dead_leases()
    limiter.release_dead_shares()
    for run_id in (
        Run.objects.filter(state=RunState.RUNNING).exclude(kind=PEOPLE).values_list("pk", flat=True)
    ):
        finish_if_done(run_id)
    if work_waits():
        workers.wake(pump)


def free_dead_leases() -> int:
    """Chunks given back because their holder is gone. How many."""
    settle_dead()
    held = Chunk.objects.filter(done=False).exclude(owner="")
    freed = held.filter(lease_until__lt=time.time()).update(owner="", lease_until=0)
    for owner in held.values_list("owner", flat=True).distinct():
        if not workers.is_alive(owner):
            freed += held.filter(owner=owner).update(owner="", lease_until=0)
    return freed


def work_waits() -> bool:
    """Is there a run to plan, or a chunk that nobody holds?"""
    free = Chunk.objects.filter(run=OuterRef("pk"), done=False, owner="")
    for_anyone = Run.objects.filter(only_worker="")
    running = for_anyone.filter(state=RunState.RUNNING).filter(Exists(free))
    return running.exists() or for_anyone.filter(state=RunState.PLANNING).exists()
