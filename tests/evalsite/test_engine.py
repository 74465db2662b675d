"""Who is alive, what wakes whom."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from datasets.tasks import read_version
from evalsite import engine
from evalsite.models import WorkerProcess

ROOT = Path(__file__).parents[2]


@pytest.mark.django_db
def test_this_process_is_alive() -> None:
    assert engine.is_alive(engine.owner())


@pytest.mark.django_db
def test_a_process_that_ended_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = f"{socket.gethostname()}:{child.pid}:{engine._started(child.pid)}"
    assert engine.is_alive(name)
    child.communicate(b"\n")
    assert not engine.is_alive(name)


def test_another_process_under_the_same_number_is_another_owner() -> None:
    assert not engine.is_alive(f"{socket.gethostname()}:{os.getpid()}:1")


def heard(host: str, ago: timedelta) -> str:
    name = f"{host}:7:7"
    WorkerProcess.objects.create(owner=name, queue="runs", seen_at=timezone.now() - ago)
    return name


@pytest.mark.django_db
def test_a_worker_elsewhere_is_alive_while_it_is_heard_of() -> None:
    assert engine.is_alive(heard("elsewhere", timedelta(seconds=5)))
    assert not engine.is_alive(heard("far-away", timedelta(seconds=60)))


@pytest.mark.django_db
def test_a_queue_without_a_living_worker_is_told() -> None:
    heard("far-away", timedelta(seconds=60))
    assert not engine.worker_alive("runs")
    engine.beat("runs")
    assert engine.worker_alive("runs")
    assert not engine.worker_alive("data")


@pytest.mark.django_db
def test_the_dead_are_forgotten() -> None:
    heard("far-away", timedelta(seconds=60))
    engine.reconcile()
    assert not WorkerProcess.objects.exists()


@pytest.mark.django_db
def test_a_worker_on_this_host_that_has_fallen_silent_is_not_alive_and_not_forgotten() -> None:
    engine.beat("runs")
    WorkerProcess.objects.update(seen_at=timezone.now() - timedelta(seconds=11))
    assert engine.silent_workers() == {engine.owner()}
    engine.reconcile()
    assert not engine.is_alive(engine.owner())
    engine.beat("runs")
    assert engine.is_alive(engine.owner())


@pytest.mark.django_db
def test_a_heartbeat_tells_of_the_loops_last_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(60)
    monkeypatch.setattr(engine, "time", clock)
    with engine.turning() as turned:
        clock.wait(12)
        engine.beat("runs")
        assert not engine.is_alive(engine.owner())
        turned()
        engine.beat("runs")
        assert engine.is_alive(engine.owner())


def test_a_process_whose_loop_does_not_turn_ends() -> None:
    program = "import time; from evalsite import engine; engine.STUCK_SECONDS = 0.1\n"
    program += "with engine.turning(): time.sleep(0.2); engine.end_if_stuck()"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(ROOT)}
    started = "import django; django.setup()\n" + program
    assert subprocess.run([sys.executable, "-c", started], env=environment).returncode == -signal.SIGKILL


def test_a_worker_that_falls_silent_is_noticed_between_the_regular_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, looks = Clock(40), list[float]()
    monkeypatch.setattr(engine, "stopping", clock)
    monkeypatch.setattr(engine, "time", clock)
    monkeypatch.setattr(engine, "beat", lambda _: None)
    monkeypatch.setattr(engine, "silent_workers", lambda: {"other"} if clock.now >= 1020 else set())
    monkeypatch.setattr(engine, "reconcile", lambda _: looks.append(clock.now - 1000))
    engine.keep_house("runs", lambda _: None)
    assert looks == [0, 15, 20, 35]


class Clock:
    """Stands for `stopping` and for the time: each wait takes as long as it may."""

    def __init__(self, ends: float) -> None:
        self.now, self.ends = 1000.0, 1000.0 + ends

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.now > self.ends

    def monotonic(self) -> float:
        return self.now


def test_after_an_outage_the_living_have_time_before_the_dead_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, away, looks, told = Clock(60), range(10, 31), list[float](), list[Exception]()

    def beat(queue: str) -> None:
        if int(clock.now - 1000) in away:
            raise OperationalError("gone")

    monkeypatch.setattr(engine, "stopping", clock)
    monkeypatch.setattr(engine, "time", clock)
    monkeypatch.setattr(engine, "beat", beat)
    monkeypatch.setattr(engine, "silent_workers", set)
    monkeypatch.setattr(engine, "reconcile", lambda _: looks.append(clock.now - 1000))
    engine.keep_house("runs", told.append)
    assert looks == [0, 45, 60]
    assert len(told) == 9


@pytest.mark.django_db(transaction=True)
def test_waking_twice_for_the_same_work_makes_one_task() -> None:
    engine.wake(read_version, version_id=1)
    engine.wake(read_version, version_id=1)
    engine.wake(read_version, version_id=2)
    assert DBTaskResult.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_task_holds_no_more_than_its_number() -> None:
    engine.wake(read_version, version_id=1)
    assert DBTaskResult.objects.get().args_kwargs == {"args": [], "kwargs": {"version_id": 1}}


def test_this_process_holds_a_row_only_while_it_works_on_it() -> None:
    seen = []

    @engine.works_on(WorkerProcess)
    def work(pk: int) -> None:
        held = (engine.is_held(engine.owner(), WorkerProcess, other) for other in (pk, pk + 1))
        seen.extend(held)

    work(7)
    assert seen == [True, False]
    assert not engine.is_held(engine.owner(), WorkerProcess, 7)


@pytest.mark.django_db
def test_a_row_that_another_process_claimed_is_held_while_that_lives() -> None:
    parent = f"{socket.gethostname()}:{os.getppid()}:{engine._started(os.getppid())}"
    assert engine.is_held(parent, WorkerProcess, 7)
    assert not engine.is_held(f"{socket.gethostname()}:{os.getppid()}:1", WorkerProcess, 7)
