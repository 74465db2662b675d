"""A database that is locked, lost or full for a while: the run waits, logs the reason, and continues."""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from evalsite.models import WorkerProcess
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.records.models import JudgeReply, Run, RunState
from tests.make import a_metric, a_project, a_run, a_version
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes
ROWS = 150
LOCKED_SECONDS = 30
FULL_SECONDS = 6
MOST_WARNINGS = (
    16  # in that time, from all users of the database: three loops of a run worker, and its heartbeat
)


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.5)) as scripted:
        yield scripted


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def run(processes: Processes, judge: ScriptedJudge, log: Path) -> Run:
    """A run in progress in a worker process."""
    begun = a_run(a_version(a_project(), rows=ROWS), a_metric(judge.url))
    processes.start("worker", "--queue", "runs", log=log)
    wait_until(lambda: now(begun).done > 20, 20)
    return begun


def now(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def assert_whole(run: Run, judge: ScriptedJudge) -> None:
    """Assert that the run ends, every judgement is stored once, and no call was repeated."""
    wait_until(lambda: now(run).state == RunState.FINISHED, 90)
    assert now(run).scored == now(run).total == JudgeReply.objects.filter(judgement__run=run).count()
    assert len(judge.requests) == now(run).total


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a lock of the whole file, on this database only")
def test_a_database_that_is_locked_for_half_a_minute(run: Run, judge: ScriptedJudge) -> None:
    other = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    time.sleep(LOCKED_SECONDS)
    other.execute("ROLLBACK")
    other.close()
    assert_whole(run, judge)
    assert now(run).problem == ""


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="connections that can be cut, on this database only"
)
def test_connections_that_are_cut(run: Run, judge: ScriptedJudge) -> None:
    for _ in range(5):
        cut_all_other_connections()
        time.sleep(0.4)
    assert_whole(run, judge)
    assert now(run).problem == ""


def cut_all_other_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a file that cannot grow, on this database only")
def test_a_full_disk(run: Run, judge: ScriptedJudge, log: Path) -> None:
    limit_files(Path(f"{connection.settings_dict['NAME']}-wal").stat().st_size)
    wait_until(lambda: warnings(log), 20)
    before = warnings(log)
    time.sleep(FULL_SECONDS)
    assert 0 < warnings(log) - before <= MOST_WARNINGS
    limit_files(resource.RLIM_INFINITY)
    assert_whole(run, judge)


def warnings(log: Path) -> int:
    return sum(" WARNING " in line or " ERROR " in line for line in log.read_text().splitlines())


def limit_files(most: int) -> None:
    """Limit the file size of the run worker to `most` bytes; Python ignores SIGXFSZ, so writes raise OSError."""
    pid = int(WorkerProcess.objects.get(queue="runs").owner.rsplit(":", 2)[1])
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
