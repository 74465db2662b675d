"""Real processes on the test's own database."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import AnyStr

import pytest
from django.db import connection

from evalsite.supervisor import manage
from tests.starting import leashed

SETTINGS = {"DJANGO_SETTINGS_MODULE": "evalsite.settings"}  # a process of its own has no tests around it


class Processes:
    """Starts manage.py commands that see the test's database; ends what is left."""

    def __init__(self, data_dir: Path) -> None:
        self.environment = {**os.environ, **SETTINGS, "DATA_DIR": str(data_dir), "DEMO_JUDGE": "0"}
        self.started: list[subprocess.Popen[bytes]] = []
        name = connection.settings_dict["NAME"]
        if connection.vendor == "sqlite":
            (data_dir / "evalsite.sqlite3").symlink_to(Path(str(name)).resolve())
        else:
            base = os.environ["DATABASE_URL"].rpartition("/")[0]
            self.environment["DATABASE_URL"] = f"{base}/{name}"

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(leashed(manage(*arguments)), env=self.environment, start_new_session=True)
        self.started.append(process)
        return process

    def end_all(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def processes(transactional_db: None, tmp_path: Path) -> Iterator[Processes]:
    running = Processes(tmp_path)
    yield running
    running.end_all()
    connection.close()


def wait_until(true: Callable[[], object], seconds: float) -> float:
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


def ended(process: subprocess.Popen[AnyStr], seconds: float) -> int:
    """The status of a process that ends in time."""
    wait_until(lambda: process.poll() is not None, seconds)
    return process.returncode


def crowd() -> float:
    """How many tasks beside this one want each processor at this moment, at least one."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    return max(1.0, (running - 1) / (os.cpu_count() or 1))
