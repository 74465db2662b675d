"""How long tests wait: long for what has no limit, otherwise as long as an idle machine would take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

PATIENCE = 300.0
"""Seconds after which a test gives up; nothing that the product promises."""


YIELDING = 3.0  # the workers of `serve` have niceness 5 and get a third of an equal share (sched(7))


def wait_until(true: Callable[[], object], seconds: float = PATIENCE, *, yielding: bool = False) -> float:
    """Seconds that it took; fails if it does not happen in time.

    The limit is in seconds of the idle machine of docs/benchmarks.md. On a slower or busy machine a second counts for
    the share of it that the test gets; for less with `yielding`, if the test waits for a process of lower priority.
    """
    began = last = time.monotonic()
    spent = 0.0
    while not true():
        now = time.monotonic()
        spent += (now - last) / slack() / (YIELDING if yielding and crowd() > 1.0 else 1.0)
        last = now
        assert spent < seconds, f"it did not happen within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began


def slack() -> float:
    """How many times longer than on the idle machine of docs/benchmarks.md work takes here and now, at least once."""
    return crowd() * slowness()


def crowd() -> float:
    """The load of each processor now or in the last minute, without this task; at least one."""
    load, *_, tasks, _ = Path("/proc/loadavg").read_text().split()
    running = int(tasks.partition("/")[0]) - 1
    return max(1.0, running / (os.cpu_count() or 1), float(load) / (os.cpu_count() or 1))


ADDITIONS = 1_000_000
SECONDS_OF_THEM = 0.057  # on the machine of docs/benchmarks.md


@cache
def slowness() -> float:
    """Processor time of a bare loop to what it takes on the machine of docs/benchmarks.md, at least one."""
    return max(1.0, min(_seconds_of_additions() for _ in range(5)) / SECONDS_OF_THEM)


def _seconds_of_additions() -> float:
    began, total = time.process_time(), 0
    for one in range(ADDITIONS):
        total += one
    return time.process_time() - began
