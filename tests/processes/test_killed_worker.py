"""kill -9 during a run: it continues after a restart; nothing is lost or duplicated."""

from __future__ import annotations

import os
import signal

import pytest

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
        os.kill(first.pid, signal.SIGSTOP)
        held = Chunk.objects.filter(run=run, owner__contains=f":{first.pid}:")
        assert held.exists()
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: not held.exists(), GIVEN_AWAY_WITHIN)
        os.kill(first.pid, signal.SIGCONT)
        wait_until(lambda: Run.objects.get(pk=run.pk).state == RunState.FINISHED, 60)
    assert Run.objects.get(pk=run.pk).scored == run.judgements.filter(state="scored").count() == 1000
    assert JudgeReply.objects.filter(judgement__run=run).count() == 1000


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
