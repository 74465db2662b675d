"""How long tests wait: generously where there is no limit, otherwise scaled to the machine's load and speed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

TIMEOUT = 300.0
"""Seconds until a test gives up; not a promise of the product."""


YIELDING = 3.0  # the workers of `serve` have niceness 5 and get a third of an equal share (sched(7))


def wait_until(true: Callable[[], object], seconds: float = TIMEOUT, *, yielding: bool = False) -> float:
    """Wait until `true()` is truthy; return the elapsed seconds, or fail after `seconds`.

    `seconds` refers to the idle machine of docs/benchmarks.md. On a slower or busy machine, elapsed time counts less,
    in proportion; with `yielding` still less, for tests that wait for a process of lower priority. The longer it
    takes, the less often it looks: a look is often a query or a page.
    """
    began = last = time.monotonic()
    spent = 0.0
    while not true():
        now = time.monotonic()
        spent += (now - last) / slack() / (YIELDING if yielding and crowd() > 1.0 else 1.0)
        last = now
        assert spent < seconds, f"it did not happen within {seconds} s"
        time.sleep(min(max(0.02, (now - began) / 50), 0.1))
    return time.monotonic() - began


def slack() -> float:
    """Current slowdown compared with the idle machine of docs/benchmarks.md, at least 1."""
    return crowd() * slowness()


def crowd() -> float:
    """Load per processor, now (without this task) or over the last minute, whichever is higher; at least 1."""
    load, *_, tasks, _ = Path("/proc/loadavg").read_text().split()
    running = int(tasks.partition("/")[0]) - 1
    return max(1.0, running / (os.cpu_count() or 1), float(load) / (os.cpu_count() or 1))


ADDITIONS = 1_000_000
SECONDS_OF_THEM = 0.057  # on the machine of docs/benchmarks.md


@cache
def slowness() -> float:
    """Processor time of a bare loop relative to the machine of docs/benchmarks.md, at least 1."""
    return max(1.0, min(_seconds_of_additions() for _ in range(5)) / SECONDS_OF_THEM)


def _seconds_of_additions() -> float:
    began, total = time.process_time(), 0
    for one in range(ADDITIONS):
        total += one
    return time.process_time() - began
