"""Real processes on the test's own database."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from evalsite.supervisor import manage

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
        process = subprocess.Popen(manage(*arguments), env=self.environment, start_new_session=True)
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


def on_this_machine(seconds: float) -> float:
    """A bound that holds on an idle machine, made longer by as much as this one is overloaded now: by what the load
    says, which lags behind, and by other tests that run at the same time with servers of their own."""
    beside = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    shared = 2.0 * beside if beside > 1 else 1.0
    return seconds * max(shared, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_until(true: Callable[[], object], seconds: float) -> float:
    """Seconds that it took; fails if it does not happen in time."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, f"it did not happen within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began
