"""Background jobs: claimed by one process, renewed, ended or released, and recovered after a death."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from evalsite.accounts.models import Project
from evalsite.models import Job
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold, WorkStopped

pytestmark = pytest.mark.django_db
KIND, OTHER = "test_kind", "elsewhere:1:1"
Work = Callable[[Hold], object]
AsKind = Callable[..., None]


@pytest.fixture(autouse=True)
def as_kind() -> Iterator[AsKind]:
    """Make a function the work of KIND; without it, there is nothing to do."""

    def define(work: Work = lambda _hold: None, **more: Any) -> None:
        jobs.job(KIND, Project, **more)(lambda hold, _project: work(hold) and None)

    jobs.listed()[KIND] = __name__
    define()
    yield define
    del jobs.listed()[KIND], jobs.kinds[KIND]


@pytest.fixture
def waiting(project: Project) -> int:
    jobs.request(KIND, project.pk)
    return project.pk


def claim(pk: int, owner: str | None = None) -> Hold:
    hold = jobs.claim(KIND, pk, owner=owner)
    assert hold
    return hold


def state(pk: int) -> str:
    job = jobs.of(KIND, pk)
    return job.state if job else ""


def test_a_claimed_job_is_claimed_by_no_other(waiting: int) -> None:
    claim(waiting)
    assert jobs.claim(KIND, waiting, owner=OTHER) is None


def test_a_job_is_deleted_when_its_work_is_done(waiting: int) -> None:
    assert jobs.run(KIND, waiting)
    assert jobs.of(KIND, waiting) is None
    assert not jobs.run(KIND, waiting)


def test_a_released_job_waits_from_the_start(waiting: int) -> None:
    hold = claim(waiting)
    hold.renew(done=7, total=9)
    hold.release()
    job = jobs.of(KIND, waiting)
    assert job
    assert (job.state, job.owner, job.done, job.total) == ("waiting", "", 0, 0)


def test_a_holder_that_lost_its_job_changes_nothing(waiting: int) -> None:
    late = claim(waiting, OTHER)
    jobs.reconcile()
    claim(waiting)
    late.release()
    for act in (late.renew, late.finish, lambda: late.fail("x")):
        with pytest.raises(WorkStopped):
            act()
    assert state(waiting) == "working"


def test_a_job_that_is_requested_anew_is_taken_from_its_worker(waiting: int) -> None:
    hold = claim(waiting)
    jobs.request(KIND, waiting, restart=True)
    with pytest.raises(WorkStopped):
        hold.renew()
    assert state(waiting) == "waiting"


def test_a_job_that_is_requested_again_is_done_once_more(waiting: int) -> None:
    hold = claim(waiting)
    jobs.request(KIND, waiting, again=True)
    hold.finish()
    assert jobs.run(KIND, waiting)
    assert state(waiting) == ""


def test_a_job_is_not_renewed_at_every_call(waiting: int) -> None:
    hold = claim(waiting)
    assert not hold.renew_at_times(done=7)
    job = jobs.of(KIND, waiting)
    assert job
    assert job.done == 0


def test_a_worker_that_is_to_end_stops_at_the_next_check(waiting: int) -> None:
    hold = claim(waiting)
    hold.stop.set()
    for act in (hold.check, hold.pause, hold.renew_at_times):
        with pytest.raises(WorkStopped):
            act()


def locked() -> OperationalError:
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error = OperationalError("database is locked")
    error.__cause__ = cause
    return error


def raising(error: Exception) -> Work:
    def work(_hold: Hold) -> None:
        raise error

    return work


@pytest.mark.parametrize("error", [WorkStopped(), locked()], ids=["stopped", "database"])
def test_work_that_stops_or_misses_the_database_waits_again(
    waiting: int, as_kind: AsKind, error: Exception
) -> None:
    released = list[int]()
    as_kind(raising(error), released=released.append)
    assert jobs.run(KIND, waiting)
    assert (state(waiting), released) == ("waiting", [waiting])


def test_an_error_is_kept_until_the_job_is_requested_again(waiting: int, as_kind: AsKind) -> None:
    as_kind(raising(ValueError()))
    jobs.run(KIND, waiting)
    job = jobs.of(KIND, waiting)
    assert job
    assert (job.state, job.problem) == ("failed", jobs.UNEXPECTED)
    jobs.request(KIND, waiting)
    assert state(waiting) == "waiting"


def test_a_kind_stores_its_own_problem(waiting: int, as_kind: AsKind) -> None:
    seen = list[str]()
    as_kind(
        raising(FileNotFoundError()), failed=lambda hold, _project, error: seen.append(hold.problem(error))
    )
    jobs.run(KIND, waiting)
    assert seen == [jobs.GONE]


def test_jobs_of_dead_workers_and_expired_ones_wait_again(waiting: int) -> None:
    claim(waiting, OTHER)
    jobs.reconcile()
    assert state(waiting) == "waiting"
    claim(waiting)
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.reconcile()
    assert state(waiting) == "waiting"


def test_what_this_process_works_on_is_left_alone(waiting: int, as_kind: AsKind) -> None:
    seen = list[str]()

    def work(hold: Hold) -> None:
        jobs.reconcile()
        seen.append(state(hold.pk))

    as_kind(work)
    jobs.run(KIND, waiting)
    assert seen == ["working"]


def test_a_job_that_kills_workers_fails_in_the_end(waiting: int, as_kind: AsKind) -> None:
    as_kind(most_tries=2)
    for left in ("waiting", "failed"):
        claim(waiting, OTHER)
        jobs.reconcile()
        assert state(waiting) == left


def test_the_job_of_a_deleted_object_ends_without_work(project: Project, as_kind: AsKind) -> None:
    as_kind(raising(AssertionError()))
    jobs.request(KIND, project.pk + 1)
    assert jobs.run(KIND, project.pk + 1)
    assert state(project.pk + 1) == ""


def woken() -> list[dict[str, Any]]:
    return [task.args_kwargs["kwargs"] for task in DBTaskResult.objects.all()]


@pytest.mark.django_db(transaction=True)
def test_one_task_wakes_a_worker_for_a_job(waiting: int) -> None:
    jobs.request(KIND, waiting)
    jobs.reconcile()
    assert woken() == [{"kind": KIND, "object_id": waiting}]


@pytest.mark.django_db(transaction=True)
def test_a_repeated_request_writes_nothing(waiting: int) -> None:
    with CaptureQueriesContext(connection) as queries:
        jobs.request(KIND, waiting)
    assert {query["sql"].split()[0] for query in queries} == {"SELECT"}


def test_a_request_again_is_seen_by_whoever_claims_the_job(waiting: int) -> None:
    with CaptureQueriesContext(connection) as queries:
        jobs.request(KIND, waiting, again=True)
    assert any(query["sql"].startswith('UPDATE "evalsite_job"') for query in queries)
    claim(waiting).finish()
    assert state(waiting) == ""


@pytest.mark.django_db(transaction=True)
def test_workers_leave_a_job_to_the_caller_for_a_while(project: Project) -> None:
    jobs.request(KIND, project.pk, here=True)
    jobs.reconcile()
    assert woken() == []
    Job.objects.update(not_before=timezone.now())
    jobs.reconcile()
    assert woken() == [{"kind": KIND, "object_id": project.pk}]


@pytest.mark.django_db(transaction=True)
def test_a_job_that_waits_for_its_time_is_woken_then(waiting: int) -> None:
    claim(waiting).release(timedelta(hours=1))
    DBTaskResult.objects.all().delete()
    assert 3500 < jobs.wake_due() <= 3600
    assert woken() == []
    Job.objects.update(not_before=timezone.now() - timedelta(minutes=1))
    assert jobs.wake_due() == math.inf
    assert woken() == []  # long due: the reconciler's
    Job.objects.update(not_before=timezone.now())
    assert jobs.wake_due() == math.inf
    assert woken() == [{"kind": KIND, "object_id": waiting}]


def test_the_jobs_of_another_release_are_left_alone(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    Job.objects.create(kind="unknown", object_id=1)
    jobs.reconcile()
    jobs.work.call(kind="unknown", object_id=1)
    assert "Unknown kind of job: unknown" in caplog.text


def test_short_jobs_are_done_in_the_middle_of_longer_work_unless_the_worker_stops(waiting: int) -> None:
    stop = threading.Event()
    stop.set()
    jobs.short_kinds().append(KIND)
    try:
        jobs.do_short_work(stop)
        assert state(waiting) == "waiting"
        jobs.do_short_work(threading.Event())
        assert state(waiting) == ""
    finally:
        jobs.short_kinds().remove(KIND)


def test_every_listed_kind_is_defined_in_its_module() -> None:
    assert all(jobs.kind_called(name) for name in jobs.listed())
