"""Background work: how to wake a worker, and how to know who is alive.

Pending work is stored in our own tables (versions to read, chunks to judge). The task engine only wakes
workers; a lost task loses nothing, because every worker reconciles at its start, every 15 seconds, and when another one
falls silent. Which engine
it is (TASK_ENGINE) is known to `wake` and to the worker command alone; celery.py and database.py hold one each.
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
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError, close_old_connections, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string
from django_tasks.base import Task

from evalsite.models import WorkerProcess
from evalsite.storage.errors import StorageUnreachable

log = logging.getLogger("evalsite.tasks.workers")
DATA, RUNS = "data", "runs"  # the two queues: reading files, judging
QUEUES = (DATA, RUNS)
BEAT_SECONDS = 2.5
RECONCILE_SECONDS = 15
SILENT_AFTER = timedelta(
    seconds=10
)  # a worker that was not heard of for so long is stopped, stuck or cut off
PAUSE_SECONDS = 0.01  # between two batches of long work, for those who wait
UNEXPECTED, GONE, AWAY = "unexpected", "gone", "away"
STUCK_SECONDS = 20.0  # a loop that does not turn for so long never will: its process ends

stopping = threading.Event()  # set on SIGTERM: long tasks end soon, the next worker continues them


def wake(task: Task[..., Any], **arguments: int | str) -> None:
    """Have a worker run `task` once the current transaction is committed. Arguments are ids, never data."""
    transaction.on_commit(lambda: backend().enqueue(task, arguments))


def backend() -> Any:
    """The module of the engine that TASK_ENGINE names: enqueue, waiting, tidy, trouble, work."""
    return import_module(f"evalsite.tasks.{settings.CONFIG.task_engine}")


@cache
def owner() -> str:
    """This process's name as the holder of leases: host, process id, and when the process started.

    The start time distinguishes it from a later process that happens to get the same id.
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
    """Does the process that took a lease under this name still run, and does it move?

    Decided by its heartbeats; a worker on this host may also have none, as a command that judges by itself.
    """
    beats = WorkerProcess.objects.filter(owner=name)
    if _is_of_this_host(name):
        return _runs_here(name) and not beats.filter(seen_at__lt=_long_ago()).exists()
    return beats.filter(seen_at__gte=_long_ago()).exists()


def _long_ago() -> datetime:
    return timezone.now() - SILENT_AFTER


def _is_of_this_host(name: str) -> bool:
    return name.rsplit(":", 2)[0] == socket.gethostname()


def _runs_here(name: str) -> bool:
    """Whether this process runs on this host, stopped or not."""
    _host, pid, started = name.rsplit(":", 2)
    return _is_of_this_host(name) and bool(started) and _started(int(pid)) == started


def silent_workers() -> set[str]:
    """Workers whose heartbeats have ended, whether their processes are still there or not."""
    return {name for name in WorkerProcess.objects.values_list("owner", flat=True) if not is_alive(name)}


def worker_alive(queue: str) -> bool:
    """Is there a worker that would pick up work of this queue?"""
    return any(
        is_alive(name) for name in WorkerProcess.objects.filter(queue=queue).values_list("owner", flat=True)
    )


def obstacle(queue: str) -> str:
    """What keeps waiting work of a queue from being picked up: `worker` (there is none), `broker` (none of the living
    workers reaches it), or nothing."""
    known = WorkerProcess.objects.filter(queue=queue).values_list("owner", "trouble")
    troubles = [trouble for name, trouble in known if is_alive(name)]
    return min(troubles) if troubles else "worker"


_in_hand: list[tuple[type[Model], int]] = []
P = ParamSpec("P")
T = TypeVar("T")
Row = TypeVar("Row", bound=Model)


def works_on(
    model: type[Model],
) -> Callable[[Callable[Concatenate[int, P], T]], Callable[Concatenate[int, P], T]]:
    """Marks a function that claims a row of `model` by its id, works on it, and lets it go.

    This is remembered here too, since the database may be locked or full when the row is to be let go: see `is_held`.
    """

    def decorate(work: Callable[Concatenate[int, P], T]) -> Callable[Concatenate[int, P], T]:
        @wraps(work)
        def remembered(pk: int, /, *args: P.args, **kwargs: P.kwargs) -> T:
            _in_hand.append((model, pk))
            try:
                return work(pk, *args, **kwargs)
            finally:
                _in_hand.remove((model, pk))

        return remembered

    return decorate


def is_held(name: str, model: type[Model], pk: int) -> bool:
    """Does the process that claimed a row under this name still work on it? This one knows by itself."""
    return (model, pk) in _in_hand if name == owner() else is_alive(name)


class WorkStopped(Exception):
    """The worker is to end, or the row is not its own any more."""


class OwnedRow(Generic[Row]):
    """A row with a state that this process has claimed by its `owner`, and works on in batches."""

    def __init__(self, row: Row, owner: str, stop: threading.Event | None) -> None:
        self.row, self.stop = row, stop or threading.Event()
        self.held: QuerySet[Any] = type(row)._default_manager.filter(pk=row.pk, owner=owner)

    def note(self, **changes: object) -> None:
        """Write down how far it is, in the transaction of what was done. Raises WorkStopped."""
        if not self.held.filter(state=getattr(self.row, "state")).update(**changes):  # noqa: B009
            raise WorkStopped
        for name, value in changes.items():
            setattr(self.row, name, value)

    def rest(self) -> None:
        """Between two batches: others may write; whoever ends the worker is heard."""
        if self.stop.wait(PAUSE_SECONDS):
            raise WorkStopped


def file_problem(error: Exception) -> str:
    """Why work on a stored file failed: a code."""
    if isinstance(error, FileNotFoundError):
        return GONE
    return AWAY if isinstance(error, StorageUnreachable) else UNEXPECTED


def reconcile_owned(waiting: QuerySet[Any], wake: Callable[[int], object]) -> None:
    """Give back rows whose `owner` died, and wake for each row that has none."""
    for pk, name in waiting.exclude(owner="").values_list("pk", "owner"):
        if not is_held(name, waiting.model, pk):
            waiting.model._default_manager.filter(pk=pk, owner=name).update(owner="")
    for pk in waiting.filter(owner="").values_list("pk", flat=True):
        wake(pk)


_turned: dict[object, float] = {}  # loops that prove their progress: when each last turned


@contextmanager
def turning() -> Iterator[Callable[[], None]]:
    """For a loop that calls what it gets at each turn: heartbeats report its last turn."""
    loop = object()

    def turned() -> None:
        _turned[loop] = time.monotonic()

    turned()
    try:
        yield turned
    finally:
        del _turned[loop]


def still_for() -> float:
    """Seconds since a loop of this process last turned; 0 if none runs."""
    now = time.monotonic()
    return max((now - turned for turned in list(_turned.values())), default=0.0)


def beat(queue: str) -> None:
    """Say when this process last moved, and whether messages reach it."""
    moved_at = timezone.now() - timedelta(seconds=still_for())
    seen = {"seen_at": moved_at, "trouble": backend().trouble()}
    WorkerProcess.objects.update_or_create(owner=owner(), queue=queue, defaults=seen)


def reconcile(queue: str = RUNS) -> None:
    """Forget dead workers and give back what they held; wake for whatever waits.

    A silent one whose process is still on this host is remembered: it may continue, and holds nothing until it does.
    """
    for worker in WorkerProcess.objects.filter(owner__in=silent_workers()):
        if not _runs_here(worker.owner):
            worker.delete()
    backend().tidy(queue)
    for name in settings.RECONCILERS:
        import_string(name)()


def keep_house(queue: str, problem: Callable[[Exception], None]) -> None:
    """Beat and reconcile until `stopping` is set. Runs in a separate thread alongside a worker's task.

    An unavailable database must not end it: the error goes to `problem` and the loop continues. Once the database
        is back, live workers have time to renew their leases before dead ones are looked for.
    """
    last, known = 0.0, set[str]()
    calm_since = beaten = time.monotonic()
    while not stopping.wait(BEAT_SECONDS if last else 0):
        close_old_connections()
        now = time.monotonic()
        if now - beaten > 2 * BEAT_SECONDS:  # this process was held up; the others may have been too
            last = calm_since = now
        beaten = now
        calm = now - calm_since >= SILENT_AFTER.total_seconds()
        if calm:
            end_if_stuck()
        try:
            beat(queue)
            silent = silent_workers() if calm else known
            if not last or now - last >= RECONCILE_SECONDS or silent - known:
                reconcile(queue)
                last = time.monotonic()
            known = silent
        except DatabaseError as error:
            problem(error)
            last = calm_since = time.monotonic()


def end_if_stuck() -> None:
    """A loop that does not turn any more holds up all that waits for this worker; its supervisor starts another."""
    still = still_for()
    if still > STUCK_SECONDS:
        log.critical("This worker has not moved for %d seconds: its process is ended.", still)
        os.kill(os.getpid(), signal.SIGKILL)
