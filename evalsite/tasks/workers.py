"""Background work: waking workers, and tracking which are alive.

Pending work is stored in our own tables (versions to read, chunks to judge). The task engine only wakes workers; a lost
task loses nothing, because every worker reconciles at start, every 15 seconds, and when another one falls silent. Only
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
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError, close_old_connections, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone
from django_tasks.base import Task

from evalsite.models import WorkerProcess
from evalsite.storage.errors import StorageUnreachable, database_unavailable

log = logging.getLogger("evalsite.tasks.workers")
DATA, RUNS = "data", "runs"  # the two queues: reading files, judging
QUEUES = (DATA, RUNS)
BEAT_SECONDS = 2.5
RECONCILE_SECONDS = 15
SILENT_AFTER = timedelta(
    seconds=10
)  # without a heartbeat so long, a worker is stopped, stuck or disconnected
PAUSE_SECONDS = 0.01  # between two batches of long work, so that others can write
UNEXPECTED, GONE, AWAY = "unexpected", "gone", "away"
STUCK_SECONDS = 20.0  # a loop without progress for this long is stuck: its process ends
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 5.0  # shorter than leases, so that no other worker takes over

reconcilers: list[Callable[[], None]] = []
"""Called by workers at start and every 15 seconds, in this order, to recover the work of dead ones. The apps register
them in AppConfig.ready."""
cleanups: list[Callable[[], None]] = []
"""Called after `reconcilers`, to delete what has expired."""

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
    """Why a queue is not processed: `worker` (none is alive), `broker` (no worker reaches it), or ''."""
    known = WorkerProcess.objects.filter(queue=queue).values_list("owner", "error")
    errors = [error for name, error in known if is_alive(name)]
    return min(errors) if errors else "worker"


_in_hand: list[tuple[type[Model], int]] = []
P = ParamSpec("P")
T = TypeVar("T")
Row = TypeVar("Row", bound=Model)


def works_on(
    model: type[Model],
) -> Callable[[Callable[Concatenate[int, P], T]], Callable[Concatenate[int, P], T]]:
    """Decorator for a function that claims a row of `model` by its id, works on it, and releases it.

    The process also tracks the rows itself, since the database may be locked or full when a row is to be released: see
    `is_held`.
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
    """Whether the process that claimed a row still works on it; for this process, without using the database."""
    return (model, pk) in _in_hand if name == owner() else is_alive(name)


class WorkStopped(Exception):
    """The worker was asked to stop, or no longer owns the row."""


def may_retry(error: Exception, what: str) -> bool:
    """Whether work that ended with this error may be tried again: the worker had to stop, or the database is
    unavailable. Otherwise it failed. Logs the error under the name `what`."""
    if isinstance(error, WorkStopped):
        return True
    if database_unavailable(error):
        log.warning("%s is waiting for the database: %s", what, error)
        return True
    log.error("%s failed.", what, exc_info=error)
    return False


class OwnedRow(Generic[Row]):
    """A row with a state, claimed by this process through `owner` and processed in batches."""

    def __init__(self, row: Row, owner: str, stop: threading.Event | None) -> None:
        self.row, self.stop = row, stop or threading.Event()
        self.held: QuerySet[Any] = type(row)._default_manager.filter(pk=row.pk, owner=owner)

    def note(self, **changes: object) -> None:
        """Store progress in the transaction of the work done. Raises WorkStopped."""
        if not self.held.filter(state=getattr(self.row, "state")).update(**changes):  # noqa: B009
            raise WorkStopped
        for name, value in changes.items():
            setattr(self.row, name, value)

    def rest(self) -> None:
        """Pause between two batches so that others can write. Raises WorkStopped if the worker is to stop."""
        if self.stop.wait(PAUSE_SECONDS):
            raise WorkStopped


def file_problem(error: Exception) -> str:
    """The code for why work on a stored file failed."""
    if isinstance(error, FileNotFoundError):
        return GONE
    return AWAY if isinstance(error, StorageUnreachable) else UNEXPECTED


def reconcile_owned(waiting: QuerySet[Any], wake: Callable[[int], object]) -> None:
    """Release rows whose `owner` died, and call `wake` for each row without an owner."""
    for pk, name in waiting.exclude(owner="").values_list("pk", "owner"):
        if not is_held(name, waiting.model, pk):
            waiting.model._default_manager.filter(pk=pk, owner=name).update(owner="")
    for pk in waiting.filter(owner="").values_list("pk", flat=True):
        wake(pk)


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


def beat(queue: str) -> None:
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
    for call in (*reconcilers, *cleanups):
        call()


def run_maintenance(queue: str, problem: Callable[[Exception], None]) -> None:
    """Send heartbeats and reconcile until `stopping` is set. Runs in a separate thread alongside a worker's task.

    An unavailable database must not end it: the error is passed to `problem` and the loop continues. Once the database
    is back, live workers have time to renew their leases before dead ones are searched for.
    """
    last, known = 0.0, set[str]()
    calm_since = beaten = time.monotonic()
    while not stopping.wait(BEAT_SECONDS if last else 0):
        close_old_connections()
        now = time.monotonic()
        if now - beaten > 2 * BEAT_SECONDS:  # this process was suspended; others may have been too
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
    """Kill this process if a loop is stuck, as that blocks all work waiting for it; the supervisor restarts it."""
    still = still_for()
    if still > STUCK_SECONDS:
        log.critical("This worker has not moved for %d seconds: its process is ended.", still)
        os.kill(os.getpid(), signal.SIGKILL)
