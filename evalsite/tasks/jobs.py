"""Background jobs: a row of `Job` for each piece of work on an object, done by one worker at a time.

    request ──wake──▶ run: claim ──▶ renew … ──▶ finish (the row is deleted), fail (it stays) or release

The task engine only wakes workers. A lost task or a killed worker loses nothing: the reconciler of every worker
releases the jobs of dead ones every 15 seconds, and wakes a worker for each job that waits. One that was released
until a later time is woken at that time (`wake_due`).

A new kind is a function with `@job`, and its name and module in the `jobs` of the app's AppConfig. The module is
imported when a job of the kind is claimed, not when the process starts.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, Concatenate, TypeVar

from django.apps import apps
from django.db import DatabaseError, transaction
from django.db.models import F, Min, Model, Q, QuerySet
from django.utils import timezone
from django_tasks import task

from evalsite.models import Job
from evalsite.storage.errors import StorageUnreachable, database_unavailable, storage_problem
from evalsite.tasks import workers

log = logging.getLogger("evalsite.tasks.jobs")
LEASE = timedelta(minutes=10)  # for a worker that hangs; a dead one is detected by its process
RENEW_SECONDS = 0.5
PAUSE_SECONDS = 0.01  # between two batches of long work, so that others can write
OWN_TURN = timedelta(minutes=1)  # how long workers leave a job to the process that said it does it itself
FAILED_FOR = timedelta(days=30)  # then a failed job is deleted
UNEXPECTED, GONE, AWAY = "unexpected", "gone", "away"  # problems

M = TypeVar("M", bound=Model)
Work = Callable[Concatenate["Hold", M, ...], None]
State = Job.State


class WorkStopped(Exception):
    """The worker was asked to stop, or another process has the job now."""


class WorkerDied(Exception):
    """Workers died or hung too often while they did the job."""


@dataclass(frozen=True, slots=True)
class Kind:
    """See `job`."""

    model: type[Model]
    work: Callable[..., None]
    failed: Callable[[Hold, Any, Exception], None]
    released: Callable[[int], object]
    most_tries: int


kinds: dict[str, Kind] = {}
_in_hand: list[tuple[str, int]] = []  # (kind, object) that threads of this process work on


def job(
    name: str,
    model: type[M],
    *,
    failed: Callable[[Hold, M, Exception], None] | None = None,
    released: Callable[[int], object] = lambda _pk: None,
    most_tries: int = 0,
) -> Callable[[Work[M]], Work[M]]:
    """Make a function the work of a kind of job: it gets the claimed job and the object.

    The job is finished when the function returns, or when it calls `finish` in the transaction that stores the result.
    `failed` is called after an error and stores its own kind of problem; `released`, with the object's id, when the job
    waits again. After `most_tries` workers died doing it, the job fails; 0: never.
    """

    def decorate(work: Work[M]) -> Work[M]:
        kinds[name] = Kind(model, work, failed or _fail_with_code, released, most_tries)
        return work

    return decorate


def _fail_with_code(hold: Hold, _thing: object, error: Exception) -> None:
    hold.fail(hold.problem(error))


@cache
def listed() -> dict[str, str]:
    """{kind: its module}, from the `jobs` of all AppConfigs."""
    return {
        name: module
        for config in apps.get_app_configs()
        for name, module in getattr(config, "jobs", {}).items()
    }


@cache
def short_kinds() -> list[str]:
    """Kinds that are done in the middle of longer work, as pages wait for them: the `short_jobs` of all AppConfigs."""
    return [name for config in apps.get_app_configs() for name in getattr(config, "short_jobs", ())]


def kind_called(name: str) -> Kind:
    """A kind, whose module is imported."""
    import_module(listed()[name])
    return kinds[name]


class Hold:
    """A claimed job, which is also the fence: whatever the work stores, it renews or ends the job in the same
    transaction."""

    def __init__(self, job: Job, stop: threading.Event | None = None) -> None:
        self.job, self.stop, self.in_worker = job, stop or threading.Event(), stop is not None
        self._row = Job.objects.filter(pk=job.pk, state=State.WORKING, claims=job.claims)
        self._renewed_at = time.monotonic()

    @property
    def pk(self) -> int:
        """The object's id."""
        return self.job.object_id

    def renew(self, **progress: int) -> None:
        """Renew the lease and store `done` and `total`. Raises WorkStopped if another process has the job now."""
        self._renewed_at = time.monotonic()
        if not self._row.update(lease_until=timezone.now() + LEASE, **progress):
            raise WorkStopped

    def renew_at_times(self, **progress: int) -> bool:
        """Like `renew`, at most twice a second; returns whether it was renewed. Also raises WorkStopped if the worker
        is to stop."""
        self.check()
        if time.monotonic() - self._renewed_at < RENEW_SECONDS:
            return False
        self.renew(**progress)
        return True

    def check(self) -> None:
        """Raises WorkStopped if the worker is to stop."""
        if self.stop.is_set():
            raise WorkStopped

    def pause(self) -> None:
        """Pause between two batches so that others can write. Raises WorkStopped if the worker is to stop."""
        if self.stop.wait(PAUSE_SECONDS):
            raise WorkStopped

    def store(self, thing: Model, **changes: object) -> None:
        """Renew, and change fields of the object in the same transaction."""
        with transaction.atomic():
            self.renew()
            type(thing)._base_manager.filter(pk=thing.pk).update(**changes)
        for name, value in changes.items():
            setattr(thing, name, value)

    def finish(self) -> None:
        """End the work, in the transaction that stores its result. Raises WorkStopped if another process has the job
        now, or it has ended."""
        if not self._row.filter(requested_again=False).delete()[0]:
            if not self._row.update(**_waits(), requested_again=False):
                raise WorkStopped
            workers.wake(work, kind=self.job.kind, object_id=self.pk)

    def fail(self, problem: str) -> None:
        """End the work with a problem. Raises WorkStopped if another process has the job."""
        if not self._row.update(state=State.FAILED, owner="", lease_until=None, problem=problem):
            raise WorkStopped

    def problem(self, error: Exception) -> str:
        """The code for why the work failed; errors that are not the file storage's are logged."""
        if isinstance(error, FileNotFoundError):
            return GONE
        if isinstance(error, StorageUnreachable):
            log.warning("%s %s failed: %s", self.job.kind, self.pk, error)
            return AWAY
        log.error("%s %s failed.", self.job.kind, self.pk, exc_info=error)
        return UNEXPECTED

    def release(self, wait: timedelta | None = None) -> None:
        """Let the job wait for any worker, at least for `wait`, unless it has ended."""
        _release(self.job, self._row, not_before=timezone.now() + wait if wait else None)


def _waits() -> dict[str, Any]:
    return {"state": State.WAITING, "owner": "", "lease_until": None, "done": 0, "total": 0}


@transaction.atomic
def _release(job: Job, row: QuerySet[Job], **changes: object) -> None:
    if row.update(**_waits(), **changes):
        kind_called(job.kind).released(job.object_id)


# --- requests --------------------------------------------------------------------------------------------------


def request(
    name: str, object_id: int, *, again: bool = False, restart: bool = False, here: bool = False
) -> None:
    """Have a worker do a job once the transaction is committed, unless it waits or is being done.

    `again`: if it is being done, do it once more afterwards. `restart`: take it from its worker. `here`: the caller
    will `run` it itself, and workers leave it alone for a minute. A page may repeat a request every second: if there is
    nothing to change, nothing is written.
    """
    _module = listed()[name]  # refuses unknown names early
    job = of(name, object_id)
    if job is None or job.state == State.FAILED or again or restart:
        _store_request(name, object_id, again=again, restart=restart, here=here)
    if not here and (job is None or job.state != State.WORKING or restart):
        workers.wake(work, kind=name, object_id=object_id)


@transaction.atomic
def _store_request(name: str, object_id: int, *, again: bool, restart: bool, here: bool) -> None:
    rows = Job.objects.filter(kind=name, object_id=object_id)
    (rows if restart else rows.filter(state=State.FAILED)).delete()
    # The update locks the job, so that whoever claims it sees what this transaction changed.
    if again and rows.update(requested_again=True):
        return
    not_before = timezone.now() + OWN_TURN if here else None
    Job.objects.get_or_create(kind=name, object_id=object_id, defaults={"not_before": not_before})


def cancel(name: str, object_id: int) -> None:
    """Do a job no more; its worker stops at the next renewal."""
    Job.objects.filter(kind=name, object_id=object_id).delete()


def delete_orphans() -> None:
    """Delete the jobs of objects that do not exist any more."""
    for name in listed():
        there = kind_called(name).model._base_manager.values("pk")
        Job.objects.filter(kind=name).exclude(object_id__in=there).delete()


def of(name: str, object_id: int) -> Job | None:
    """The job, if it waits, is being done or failed."""
    return Job.objects.filter(kind=name, object_id=object_id).first()


def ids(name: str, state: Job.State) -> QuerySet[Job, int]:
    """IDs of the objects whose jobs are in this state."""
    return Job.objects.filter(kind=name, state=state).values_list("object_id", flat=True)


def obstacle(job: Job | None) -> str:
    """Why nobody does a job: see workers.obstacle; '' if someone does."""
    attended = job is not None and job.state == State.WORKING and workers.is_alive(job.owner)
    return "" if attended else workers.obstacle(workers.DATA)


# --- the work --------------------------------------------------------------------------------------------------


@task(queue_name=workers.DATA)
def work(kind: str, object_id: int) -> None:
    """Task: do a job, unless another process does."""
    if kind in listed():
        run(kind, object_id, workers.stopping)
    else:
        log.warning("Unknown kind of job: %s", kind)  # another release's


def run(name: str, object_id: int, stop: threading.Event | None = None, **more: Any) -> bool:
    """Claim a job and do it in this process; `more` is passed to its function. False if another process does it, or it
    is done. If the work stops or the database is unavailable, the job waits again."""
    kind = kind_called(name)
    _in_hand.append((name, object_id))
    try:
        hold = claim(name, object_id, stop)
        if hold is None:
            return False
        _do(kind, hold, more)
    except DatabaseError as error:  # neither result nor release could be stored: `reconcile` releases it
        if storage_problem(error) is None:
            raise
        log.warning("The end of %s %s could not be stored: %s", name, object_id, error)
    finally:
        _in_hand.remove((name, object_id))
    return True


def claim(
    name: str, object_id: int, stop: threading.Event | None = None, owner: str | None = None
) -> Hold | None:
    """Claim a waiting job for a process. None if there is none."""
    waiting = Job.objects.filter(kind=name, object_id=object_id, state=State.WAITING)
    job = waiting.first()
    if job is None:
        return None
    free = waiting.filter(pk=job.pk, claims=job.claims)
    job.state, job.owner, job.claims = State.WORKING, owner or workers.owner(), job.claims + 1
    claimed = {"state": job.state, "owner": job.owner, "claims": job.claims, "requested_again": False}
    return Hold(job, stop) if free.update(lease_until=timezone.now() + LEASE, **claimed) else None


def _do(kind: Kind, hold: Hold, more: dict[str, Any]) -> None:
    thing = kind.model._base_manager.filter(pk=hold.pk).first()
    try:
        if thing is not None:  # otherwise it was deleted meanwhile
            kind.work(hold, thing, **more)
        hold.finish()
    except WorkStopped:  # or it has ended
        pass
    except Exception as error:  # no error may leave the work half done
        if database_unavailable(error):
            log.warning("%s %s waits for the database: %s", hold.job.kind, hold.pk, error)
        else:
            _fail(kind, hold, thing, error)
    finally:
        hold.release()


def _fail(kind: Kind, hold: Hold, thing: Model | None, error: Exception) -> None:
    try:
        with suppress(WorkStopped):
            kind.failed(hold, thing, error)
    except Exception:  # the reconciler tries again
        log.exception("The failed %s %s could not be ended yet; retrying.", hold.job.kind, hold.pk)


def do_short_work(stop: threading.Event) -> None:
    """Do the waiting jobs of short kinds in the middle of longer work."""
    waiting = Job.objects.filter(kind__in=short_kinds(), state=State.WAITING).order_by("pk")
    for name, object_id in list(waiting.values_list("kind", "object_id")):
        if not stop.is_set():
            run(name, object_id, stop)


def reconcile() -> None:
    """Release the jobs of dead or stuck workers, and wake a worker for each one that is due."""
    now, mine = timezone.now(), Job.objects.filter(kind__in=listed())
    for job in mine.filter(state=State.WORKING):
        if job.lease_until is None or job.lease_until < now or not _is_held(job):
            _lost(job)
    due = mine.filter(Q(not_before=None) | Q(not_before__lte=now), state=State.WAITING)
    for name, object_id in due.order_by("pk").values_list("kind", "object_id"):
        workers.wake(work, kind=name, object_id=object_id)
    mine.filter(state=State.FAILED, created_at__lt=now - FAILED_FOR).delete()


def wake_due() -> float:
    """Wake a worker for each job whose time has just come; returns the seconds until the next one's (inf: none).
    The maintenance of every worker calls it when the time that it told before is over. Jobs that go on waiting, since
    all workers are busy, are left to the reconciler: Celery would collect a task for each call."""
    now = timezone.now()
    just_now = now - timedelta(seconds=2 * workers.BEAT_SECONDS)
    later = Job.objects.filter(kind__in=listed(), state=State.WAITING, not_before__gt=just_now)
    for name, object_id in later.filter(not_before__lte=now).values_list("kind", "object_id"):
        workers.wake(work, kind=name, object_id=object_id)
    following = later.filter(not_before__gt=now).aggregate(first=Min("not_before"))["first"]
    return (following - now).total_seconds() if following else math.inf


def _is_held(job: Job) -> bool:
    """Whether the process that claimed a job still does it. This process knows without the database, which may have
    been locked or full when the job was to be released."""
    if job.owner == workers.owner():
        return (job.kind, job.object_id) in _in_hand
    return workers.is_alive(job.owner)


def _lost(job: Job) -> None:
    kind, hold = kind_called(job.kind), Hold(job)
    thing = kind.model._base_manager.filter(pk=job.object_id).first()
    if kind.most_tries and job.deaths + 1 >= kind.most_tries and thing is not None:
        _fail(kind, hold, thing, WorkerDied())
    else:
        _release(job, hold._row, deaths=F("deaths") + 1)
