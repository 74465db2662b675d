"""Liveness of workers, and what wakes them."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import OperationalError
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from evalsite.models import WorkerProcess
from evalsite.tasks import jobs, workers

ROOT = Path(__file__).parents[3]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.django_db
def test_this_process_is_alive() -> None:
    assert workers.is_alive(workers.owner())


@pytest.mark.django_db
def test_a_process_that_ended_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = f"{socket.gethostname()}:{child.pid}:{workers.start_time(child.pid)}"
    assert workers.is_alive(name)
    child.communicate(b"\n")
    assert not workers.is_alive(name)


def test_another_process_under_the_same_number_is_another_owner() -> None:
    assert not workers.is_alive(f"{socket.gethostname()}:{os.getpid()}:1")


def last_seen(host: str, ago: timedelta) -> str:
    name = f"{host}:7:7"
    WorkerProcess.objects.create(owner=name, queue="runs", seen_at=timezone.now() - ago)
    return name


@pytest.mark.django_db
def test_a_worker_elsewhere_is_alive_while_it_reports() -> None:
    assert workers.is_alive(last_seen("elsewhere", timedelta(seconds=5)))
    assert not workers.is_alive(last_seen("far-away", timedelta(seconds=60)))


@pytest.mark.django_db
def test_a_queue_without_a_living_worker_is_reported() -> None:
    last_seen("far-away", timedelta(seconds=60))
    assert workers.obstacle("runs") == "worker"
    workers.heartbeat("runs")
    assert workers.obstacle("runs") == ""
    assert workers.obstacle("data") == "worker"


@pytest.mark.django_db
def test_a_full_disk_is_reported_where_workers_can_t_store_that_they_are_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 1 << 40, 0))
    assert workers.obstacle("runs") == "disk"
    workers.heartbeat("runs")
    assert workers.obstacle("runs") == ""


@pytest.mark.django_db
def test_the_dead_are_forgotten() -> None:
    last_seen("far-away", timedelta(seconds=60))
    workers.reconcile()
    assert not WorkerProcess.objects.exists()


@pytest.mark.django_db
def test_a_worker_on_this_host_that_has_fallen_silent_is_not_alive_and_not_forgotten() -> None:
    workers.heartbeat("runs")
    WorkerProcess.objects.update(seen_at=timezone.now() - timedelta(seconds=11))
    assert workers.silent_workers() == {workers.owner()}
    workers.reconcile()
    assert not workers.is_alive(workers.owner())
    workers.heartbeat("runs")
    assert workers.is_alive(workers.owner())


@pytest.mark.django_db
def test_a_heartbeat_shows_of_the_loops_last_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(60)
    monkeypatch.setattr(workers, "time", clock)
    with workers.turning() as turned:
        clock.wait(12)
        workers.heartbeat("runs")
        assert not workers.is_alive(workers.owner())
        turned()
        workers.heartbeat("runs")
        assert workers.is_alive(workers.owner())


def test_a_process_whose_loop_does_not_turn_ends() -> None:
    program = "import time; from evalsite.tasks import workers; workers.STUCK_SECONDS = 0.1\n"
    program += "with workers.turning(): time.sleep(0.2); workers.end_if_stuck()"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(ROOT)}
    started = "import django; django.setup()\n" + program
    assert subprocess.run([sys.executable, "-c", started], env=environment).returncode == -signal.SIGKILL


@pytest.mark.django_db(transaction=True)  # it closes old connections
def test_a_worker_that_falls_silent_is_noticed_between_the_regular_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, looks = Clock(40), list[float]()
    monkeypatch.setattr(workers, "stopping", clock)
    monkeypatch.setattr(workers, "time", clock)
    monkeypatch.setattr(workers, "heartbeat", lambda _: None)
    monkeypatch.setattr(workers, "silent_workers", lambda: {"other"} if clock.now >= 1020 else set())
    monkeypatch.setattr(workers, "reconcile", lambda _: looks.append(clock.now - 1000))
    workers.run_maintenance("runs", lambda _: None)
    assert looks == [0, 15, 20, 35]


class Clock:
    """Replaces the `stopping` event and the clock: each wait advances the clock by its full timeout."""

    def __init__(self, ends: float) -> None:
        self.now, self.ends = 1000.0, 1000.0 + ends

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.now > self.ends

    def monotonic(self) -> float:
        return self.now


@pytest.mark.django_db(transaction=True)  # it closes old connections
def test_after_an_outage_the_living_have_time_before_the_dead_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, away, looks, found = Clock(60), range(10, 31), list[float](), list[Exception]()

    def heartbeat(queue: str) -> None:
        if int(clock.now - 1000) in away:
            raise OperationalError("gone")

    monkeypatch.setattr(workers, "stopping", clock)
    monkeypatch.setattr(workers, "time", clock)
    monkeypatch.setattr(workers, "heartbeat", heartbeat)
    monkeypatch.setattr(workers, "silent_workers", set)
    monkeypatch.setattr(workers, "reconcile", lambda _: looks.append(clock.now - 1000))
    workers.run_maintenance("runs", found.append)
    assert looks == [0, 45, 60]
    assert len(found) == 9


@pytest.mark.django_db(transaction=True)  # it closes old connections
def test_jobs_are_woken_when_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, turns = Clock(9), list[float]()

    def wake_due() -> float:
        turns.append(clock.now - 1000)
        return 1006.25 - clock.now if clock.now < 1006.25 else math.inf

    monkeypatch.setattr(workers, "stopping", clock)
    monkeypatch.setattr(workers, "time", clock)
    monkeypatch.setattr(workers, "heartbeat", lambda _: None)
    monkeypatch.setattr(workers, "reconcile", lambda _: None)
    monkeypatch.setattr(jobs, "wake_due", wake_due)
    workers.run_maintenance("runs", lambda _: None)
    assert turns == [0, 2.5, 5, 6.25, 8.75]


@pytest.mark.django_db(transaction=True)
def test_waking_twice_for_the_same_work_makes_one_task() -> None:
    for number in (1, 1, 2):
        workers.wake(jobs.work, kind="read_version", object_id=number)
    assert DBTaskResult.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_task_holds_no_more_than_its_number() -> None:
    workers.wake(jobs.work, kind="read_version", object_id=1)
    assert DBTaskResult.objects.get().args_kwargs == {
        "args": [],
        "kwargs": {"kind": "read_version", "object_id": 1},
    }


def test_pauses_double_up_to_a_limit_and_start_again_after_a_success() -> None:
    backoff = workers.Backoff()
    assert [backoff.failed() for _ in range(4)] == [1.0, 2.0, 4.0, workers.LONGEST_RETRY_SECONDS]
    backoff.succeeded()
    assert backoff.failed() == 1.0
