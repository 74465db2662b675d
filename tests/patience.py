"""How long tests wait: for what has no bound, long; for what has one, as long as an idle machine would take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300.0
"""Seconds after which a test gives up; nothing that the product promises."""


def wait_until(true: Callable[[], object], seconds: float = PATIENCE) -> float:
    """Seconds that it took; fails if it does not happen in time.

    The bound is in seconds of an idle machine: where others want the processors too, a second counts for the share of
    it that is left for the test.
    """
    began = last = time.monotonic()
    spent = 0.0
    while not true():
        now = time.monotonic()
        spent += (now - last) / crowd()
        last = now
        assert spent < seconds, f"it did not happen within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began


def crowd() -> float:
    """How many tasks beside this one want each processor at this moment or did in the last minute, at least one."""
    load, *_, tasks, _ = Path("/proc/loadavg").read_text().split()
    running = int(tasks.partition("/")[0]) - 1
    return max(1.0, running / (os.cpu_count() or 1), float(load) / (os.cpu_count() or 1))
