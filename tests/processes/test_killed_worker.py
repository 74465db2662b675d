"""kill -9 during a run: it continues after a restart; nothing is lost or duplicated."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing

import pytest
from django.db import OperationalError, connection, transaction

from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.records.models import Chunk, JudgeReply, Run, RunState
from tests.make import a_metric, a_project, a_run, a_version
from tests.processes.conftest import Processes, ended, wait_until

pytestmark = pytest.mark.processes
GOES_ON_WITHIN = 5.0
GIVEN_AWAY_WITHIN = 15.0


def test_a_run_goes_on_after_its_worker_was_killed(processes: Processes) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.3)) as judge:
        run = a_run(a_version(a_project(), rows=500), a_metric(judge.url))
        first = processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).done >= 100, 30)
        first.kill()
        first.wait()
        done = Run.objects.get(pk=run.pk).done
        assert Chunk.objects.filter(run=run).exclude(owner="").exists()
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).done > done, GOES_ON_WITHIN)
        wait_until(lambda: Run.objects.get(pk=run.pk).state == RunState.FINISHED, 60)
    assert Run.objects.get(pk=run.pk).scored == run.judgements.filter(state="scored").count() == 1000
    assert JudgeReply.objects.filter(judgement__run=run).count() == 1000


def test_the_work_of_a_stopped_worker_goes_to_another_one(processes: Processes) -> None:
    """A worker stopped by SIGSTOP exists but does nothing. Once continued, it writes only chunks it still holds."""
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.3)) as judge:
        run = a_run(a_version(a_project(), rows=500), a_metric(judge.url))
        first = processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).done >= 100, 30)
        stop_between_transactions(first.pid, run)
        held = Chunk.objects.filter(run=run, owner__contains=f":{first.pid}:")
        assert held.exists()
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: not held.exists(), GIVEN_AWAY_WITHIN)
        os.kill(first.pid, signal.SIGCONT)
        wait_until(lambda: Run.objects.get(pk=run.pk).state == RunState.FINISHED, 60)
    assert Run.objects.get(pk=run.pk).scored == run.judgements.filter(state="scored").count() == 1000
    assert JudgeReply.objects.filter(judgement__run=run).count() == 1000


def stop_between_transactions(pid: int, run: Run) -> None:
    """Stop a worker at a moment when it holds no lock, which nobody could take from it."""
    for _ in range(100):
        os.kill(pid, signal.SIGSTOP)
        if not holds_lock(run):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    pytest.fail("the worker was never between two transactions")


def holds_lock(run: Run) -> bool:
    """Whether some other process has the run's rows locked; on SQLite the database."""
    try:
        if connection.vendor == "sqlite":
            with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0.2)) as other:
                other.execute("BEGIN IMMEDIATE")
        else:
            with transaction.atomic():
                for rows in (Run.objects.filter(pk=run.pk), Chunk.objects.filter(run=run)):
                    list(rows.select_for_update(nowait=True))
    except (sqlite3.OperationalError, OperationalError):
        return True
    return False


def test_a_worker_that_is_asked_to_stop_gives_everything_back(processes: Processes) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.3)) as judge:
        run = a_run(a_version(a_project(), rows=300), a_metric(judge.url))
        worker = processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).done >= 50, 30)
        worker.terminate()
        assert ended(worker, 15) == 0
        stopped = Run.objects.get(pk=run.pk)
        assert stopped.done == len(judge.requests)
    assert not Chunk.objects.filter(run=run).exclude(owner="").exists()
