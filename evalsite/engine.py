"""Background work: how to wake a worker, and how to know who is alive.

What is to be done stands in our own tables (versions to read, chunks to judge). The task engine only wakes
workers; a lost task loses nothing, because every worker reconciles at its start and every 15 seconds. Which engine
it is (TASK_ENGINE) is known to `wake` and to the worker command alone; engines/ holds one module for each.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django_tasks.base import Task

from evalsite.models import WorkerProcess

log = logging.getLogger("evalsite.engine")
DATA, RUNS = "data", "runs"  # the two queues: reading files, judging
QUEUES = (DATA, RUNS)
BEAT_SECONDS = 5
RECONCILE_SECONDS = 15
DEAD_AFTER = timedelta(seconds=30)

stopping = threading.Event()  # set on SIGTERM: long tasks end soon, their work is taken up by the next worker


def wake(task: Task[..., Any], **arguments: int | str) -> None:
    """Have a worker run `task` once the current transaction is committed. Arguments are ids, never data."""
    transaction.on_commit(lambda: backend().enqueue(task, arguments))


def backend() -> Any:
    """The module of the engine that TASK_ENGINE names: enqueue, waiting, tidy, trouble, work."""
    return import_module(f"evalsite.engines.{settings.CONFIG.task_engine}")


@cache
def owner() -> str:
    """This process's name as the holder of leases: host, process id, and when the process started.

    The start time tells it from a later process that happens to get the same id.
    """
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot (proc(5), field 22); '' if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state_and_on = text.rpartition(")")[2].split()
    return "" if state_and_on[0] == "Z" else state_and_on[19]


def is_alive(name: str) -> bool:
    """Does the process that took a lease under this name still run?

    On this host the system knows; of another host, the time of its last heartbeat.
    """
    host, pid, started = name.rsplit(":", 2)
    if host == socket.gethostname():
        return bool(started) and _started(int(pid)) == started
    return WorkerProcess.objects.filter(owner=name, seen_at__gte=timezone.now() - DEAD_AFTER).exists()


def worker_alive(queue: str) -> bool:
    """Is there a worker that would take up work of this queue?"""
    return any(
        is_alive(name) for name in WorkerProcess.objects.filter(queue=queue).values_list("owner", flat=True)
    )


def obstacle(queue: str) -> str:
    """What keeps waiting work of a queue from being taken up: `worker` (there is none), `broker` (none of the living
    workers reaches it), or nothing."""
    known = WorkerProcess.objects.filter(queue=queue).values_list("owner", "trouble")
    troubles = [trouble for name, trouble in known if is_alive(name)]
    return min(troubles) if troubles else "worker"


def beat(queue: str) -> None:
    """Say that this process lives, and whether messages reach it."""
    seen = {"seen_at": timezone.now(), "trouble": backend().trouble()}
    WorkerProcess.objects.update_or_create(owner=owner(), queue=queue, defaults=seen)


def reconcile(queue: str = RUNS) -> None:
    """Forget dead workers and give back what they held; wake for whatever waits."""
    for worker in WorkerProcess.objects.all():
        if not is_alive(worker.owner):
            worker.delete()
    backend().tidy(queue)
    for name in settings.RECONCILERS:
        import_string(name)()


def keep_house(queue: str, problem: Callable[[Exception], None]) -> None:
    """Beat and reconcile until `stopping` is set. Runs in a thread of its own beside a worker's task.

    A database that is away for a while must not end it: the error goes to `problem`, the loop goes on. When it is
    back, the living have a while to renew what they hold before anybody looks for the dead.
    """
    from django.db import DatabaseError, close_old_connections

    last = 0.0
    while not stopping.wait(BEAT_SECONDS if last else 0):
        close_old_connections()
        try:
            beat(queue)
            if time.monotonic() - last >= RECONCILE_SECONDS or not last:
                reconcile(queue)
                last = time.monotonic()
        except DatabaseError as error:
            problem(error)
            last = time.monotonic()
