"""Real processes that use the test database."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import AnyStr

import pytest
from django.db import connection

from evalsite.supervisor import manage
from tests.deadlines import wait_until
from tests.starting import leashed

__all__ = ["SETTINGS", "Processes", "children", "ended", "wait_until"]
SETTINGS = {"DJANGO_SETTINGS_MODULE": "evalsite.settings"}  # not the settings of the tests

END_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Processes:
    """Starts manage.py commands on the test database, and kills the remaining ones."""

    def __init__(self, data_dir: Path) -> None:
        self.environment = {**os.environ, **SETTINGS, "DATA_DIR": str(data_dir), "DEMO_JUDGE": "0"}
        self.started: list[subprocess.Popen[bytes]] = []
        name = connection.settings_dict["NAME"]
        if connection.vendor == "sqlite":
            (data_dir / "evalsite.sqlite3").symlink_to(Path(str(name)).resolve())
        else:
            base = os.environ["DATABASE_URL"].rpartition("/")[0]
            self.environment["DATABASE_URL"] = f"{base}/{name}"

    def start(self, *arguments: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a command. stderr goes to `log` if given, otherwise to the tests' stderr."""
        with log.open("ab") if log else contextlib.nullcontext() as errors:
            process = subprocess.Popen(
                leashed(manage(*arguments)), env=self.environment, start_new_session=True, stderr=errors
            )
        self.started.append(process)
        return process

    def end_all(self) -> None:
        """Kill all processes and their children, which have their own sessions and would outlive them briefly."""
        for process in self.started:
            if process.poll() is None:
                theirs = children(process.pid)
                os.killpg(process.pid, signal.SIGKILL)
                for pid in theirs:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            process.wait()
        if connection.vendor == "postgresql":  # the server would finish the last query of a killed client
            with connection.cursor() as cursor:
                cursor.execute(END_OTHERS)


def children(parent: int) -> list[int]:
    """Process ids of all descendants."""
    try:
        found = [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:
        return []
    return found + [below for child in found for below in children(child)]


@pytest.fixture
def processes(transactional_db: None, tmp_path: Path) -> Iterator[Processes]:
    running = Processes(tmp_path)
    yield running
    running.end_all()
    connection.close()


def ended(process: subprocess.Popen[AnyStr], seconds: float) -> int:
    """Wait for a process to exit within `seconds`; return its exit status."""
    wait_until(lambda: process.poll() is not None, seconds)
    return process.returncode
