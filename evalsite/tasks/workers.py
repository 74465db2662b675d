"""Background work: waking workers, and tracking which are alive.

Pending work is stored in our own tables (jobs, chunks to judge). The task engine only wakes workers; a lost task loses
nothing, because every worker reconciles at start, every 15 seconds, and when another one falls silent. Only
`wake` and the worker command depend on the engine (TASK_ENGINE); celery.py and database.py implement one each.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, close_old_connections, transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django_tasks.base import Task

from evalsite import health
from evalsite.models import WorkerProcess

log = logging.getLogger("evalsite.tasks.workers")
DATA, RUNS = "data", "runs"  # the two queues: reading files, judging
QUEUES = (DATA, RUNS)
BEAT_SECONDS = 2.5
RECONCILE_SECONDS = 15
WAKE_DUE = "evalsite.tasks.jobs.wake_due"
SILENT_AFTER = timedelta(
    seconds=10
)  # without a heartbeat so long, a worker is stopped, stuck or disconnected
GONE_AFTER_SECONDS = 600.0
STUCK_SECONDS = 20.0  # a loop without progress for this long is stuck: its process ends
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 5.0  # shorter than leases, so that no other worker takes over

stopping = threading.Event()  # set on SIGTERM: long tasks end soon, the next worker continues them


def wake(task: Task[..., Any], **arguments: int | str) -> None:
    """Have a worker run `task` once the current transaction is committed. Arguments are ids, never data."""
    transaction.on_commit(lambda: backend().enqueue(task, arguments))


def backend() -> Any:
    """The module of the configured engine: enqueue, waiting, tidy, connection_error, work."""
    return import_module(f"evalsite.tasks.{settings.CONFIG.task_engine}")


@cache
def owner() -> str:
    """This process's name as an owner of leases: host, process id, and start time.

    The start time distinguishes it from a later process with the same id.
    """
    return f"{socket.gethostname()}:{os.getpid()}:{start_time(os.getpid())}"


def start_time(pid: int) -> str:
    """Start time of a process in clock ticks since boot (proc(5), field 22); '' if it does not run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state_and_on = text.rpartition(")")[2].split()
    return "" if state_and_on[0] == "Z" else state_and_on[19]


class Backoff:
    """Pauses before a failed operation is retried; they double with each failure and reset after a success."""

    def __init__(self) -> None:
        self._next = FIRST_RETRY_SECONDS

    def failed(self) -> float:
        """Seconds to wait after this failure."""
        pause, self._next = self._next, min(2 * self._next, LONGEST_RETRY_SECONDS)
        return pause

    def succeeded(self) -> None:
        self._next = FIRST_RETRY_SECONDS


def is_alive(name: str) -> bool:
    """Whether the process with this owner name is running and making progress.

    Decided by its heartbeats; a process on this host may have none, such as a command that judges.
    """
    beats = WorkerProcess.objects.filter(owner=name)
    if _is_of_this_host(name):
        return _runs_here(name) and not beats.filter(seen_at__lt=_long_ago()).exists()
    return beats.filter(seen_at__gte=_long_ago()).exists()


def has_ended(name: str, last_sign: float) -> bool:
    """Whether the process with this owner name is gone. Not the opposite of `is_alive`: a process that is suspended, or
    whose heartbeats find the database locked, continues. One of another host counts as gone long after its `last_sign`
    (Unix time)."""
    if _is_of_this_host(name):
        return has_ended_on_this_host(name)
    return not is_alive(name) and time.time() - last_sign > GONE_AFTER_SECONDS


def has_ended_on_this_host(name: str) -> bool:
    """Whether a process with this owner name was on this host and is gone."""
    return _is_of_this_host(name) and not _runs_here(name)


def _long_ago() -> datetime:
    return timezone.now() - SILENT_AFTER


def _is_of_this_host(name: str) -> bool:
    return name.rsplit(":", 2)[0] == socket.gethostname()


def _runs_here(name: str) -> bool:
    """Whether this process exists on this host, possibly stopped."""
    _host, pid, started = name.rsplit(":", 2)
    return _is_of_this_host(name) and bool(started) and start_time(int(pid)) == started


def silent_workers() -> set[str]:
    """Workers without recent heartbeats, whether or not their processes exist."""
    return {name for name in WorkerProcess.objects.values_list("owner", flat=True) if not is_alive(name)}


def obstacle(queue: str) -> str:
    """Why a queue is not processed: `worker` (none is alive), `disk` (it is full, and workers can't even store that
    they are alive), `broker` (no worker reaches it), or ''."""
    processes = WorkerProcess.objects.filter(queue=queue).values_list("owner", "error")
    errors = [error for name, error in processes if is_alive(name)]
    if errors:
        return min(errors)
    return "disk" if health.is_disk_full() else "worker"


_turned: dict[object, float] = {}  # time of the last turn of each monitored loop


@contextmanager
def turning() -> Iterator[Callable[[], None]]:
    """Monitor a loop that calls the yielded function at each turn; heartbeats report its last turn."""
    loop = object()

    def turned() -> None:
        _turned[loop] = time.monotonic()

    turned()
    try:
        yield turned
    finally:
        del _turned[loop]


def still_for() -> float:
    """Seconds since a monitored loop last turned; 0 if there is none."""
    now = time.monotonic()
    return max((now - turned for turned in list(_turned.values())), default=0.0)


def heartbeat(queue: str) -> None:
    """Store this process's last progress and whether messages reach it."""
    moved_at = timezone.now() - timedelta(seconds=still_for())
    seen = {"seen_at": moved_at, "error": backend().connection_error()}
    WorkerProcess.objects.update_or_create(owner=owner(), queue=queue, defaults=seen)


def reconcile(queue: str = RUNS) -> None:
    """Remove dead workers, release what they owned, and wake workers for pending work.

    A silent worker whose process exists on this host is kept: it may continue, but owns nothing until then.
    """
    for worker in WorkerProcess.objects.filter(owner__in=silent_workers()):
        if not _runs_here(worker.owner):
            worker.delete()
    backend().tidy(queue)
    for path in reconcilers():
        import_string(path)()


@cache
def reconcilers() -> list[str]:
    """Paths of the functions that recover the work of dead workers or delete what has expired: of the jobs, then the
    `reconcilers` of all AppConfigs. Workers call them at start and every 15 seconds."""
    own = (getattr(config, "reconcilers", ()) for config in apps.get_app_configs())
    return ["evalsite.tasks.jobs.reconcile", *chain.from_iterable(own)]


def run_maintenance(queue: str, problem: Callable[[Exception], None]) -> None:
    """Send heartbeats, reconcile, and wake workers for jobs when they are due, until `stopping` is set. Runs in a
    separate thread alongside a worker's task.

    An unavailable database must not end it: the error is passed to `problem` and the loop continues. Once the database
    is back, live workers have time to renew their leases before dead ones are searched for.
    """
    last, silent_before, pause = 0.0, set[str](), 0.0
    calm_since = beat_at = time.monotonic()
    while not stopping.wait(pause):
        pause = BEAT_SECONDS
        close_old_connections()
        now = time.monotonic()
        if now - beat_at > 2 * BEAT_SECONDS:  # this process was suspended; others may have been too
            last = calm_since = now
        beat_at = now
        calm = now - calm_since >= SILENT_AFTER.total_seconds()
        if calm:
            end_if_stuck()
        try:
            heartbeat(queue)
            if time.monotonic() - now > BEAT_SECONDS:  # others had to wait for the database too
                last = calm_since = time.monotonic()
                continue
            silent = silent_workers() if calm else silent_before
            if not last or now - last >= RECONCILE_SECONDS or silent - silent_before:
                reconcile(queue)
                last = time.monotonic()
            silent_before = silent
            pause = min(BEAT_SECONDS, import_string(WAKE_DUE)())
        except DatabaseError as error:
            problem(error)
            last = calm_since = time.monotonic()


def end_if_stuck() -> None:
    """Kill this process if a loop is stuck, as that blocks all work waiting for it; the supervisor restarts it."""
    still = still_for()
    if still > STUCK_SECONDS:
        log.critical("This worker has not moved for %d seconds: its process is ended.", still)
        os.kill(os.getpid(), signal.SIGKILL)
