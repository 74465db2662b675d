"""Repeated kill -9 of the worker, the web server or all processes during a run: nothing is lost or repeated."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.records.models import JudgeReply, Run, RunState
from tests.make import a_metric, a_project, a_run, a_version
from tests.processes.conftest import Processes, children, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes
KILLED = ("worker", "all", "web", "worker", "all")  # restarting a site takes two seconds of processor time
ROWS = 250
CALLS = 20  # at a time
GOES_ON_WITHIN = 5.0  # seconds from the kill to the next judgement, on an idle machine


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    chance = random.Random(21)
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=chance.uniform(0.4, 1.2))) as scripted:
        yield scripted


def serve(processes: Processes) -> subprocess.Popen[bytes]:
    processes.environment |= {"PORT": str(free_port()), "JUDGE_CONCURRENCY": str(CALLS)}
    return processes.start("serve", "--no-sample")


def everything_of(pid: int) -> list[int]:
    return [pid, *children(pid)]


def victims(site: subprocess.Popen[bytes], who: str) -> list[int]:
    if who == "all":
        return everything_of(site.pid)
    wanted = {"worker": b"--queue\0runs", "web": b"--web-only"}[who]
    return [pid for pid in children(site.pid) if wanted in command_of(pid)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def now(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def test_many_kills_lose_nothing_and_repeat_nothing(processes: Processes, judge: ScriptedJudge) -> None:
    chance = random.Random(20)
    run = a_run(a_version(a_project(), rows=ROWS), a_metric(judge.url))
    site = serve(processes)
    for who in KILLED:
        done = now(run).done
        wait_until(lambda done=done: now(run).done > done, GOES_ON_WITHIN, yielding=True)
        time.sleep(chance.random())
        for pid in victims(site, who):
            with contextlib.suppress(ProcessLookupError):  # it ended with its parent
                os.kill(pid, signal.SIGKILL)
        if who == "all":
            site.wait()
            site = serve(processes)
    assert now(run).state == RunState.RUNNING, "the run was too short for so many kills"
    wait_until(lambda: now(run).state == RunState.FINISHED, 120)
    assert now(run).scored == now(run).total == run.judgements.filter(state="scored").count() == 2 * ROWS
    assert JudgeReply.objects.filter(judgement__run=run).count() == 2 * ROWS
    again = len(judge.requests) - 2 * ROWS
    # A call is recorded before it is sent, so those of a killed worker may not have reached the judge.
    assert again <= now(run).calls_again <= again + CALLS * sum(who != "web" for who in KILLED)


def test_calls_that_a_killed_worker_had_under_way_are_counted(processes: Processes) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=60)) as slow:
        run = a_run(a_version(a_project(), rows=10), a_metric(slow.url))
        worker = processes.start("worker", "--queue", "runs")
        wait_until(lambda: len(slow.requests) == 20, 20)
        worker.kill()
        worker.wait()
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: now(run).calls_again > 0, 20)
        assert now(run).calls_again == 20
