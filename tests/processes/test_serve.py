"""`manage.py serve` reports why it cannot start, in a sentence without a traceback."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from pathlib import Path

import pytest

from evalsite.supervisor import PARENT, manage
from tests.processes.conftest import Processes, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes


def served(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    unwanted = (PARENT, "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {"DATA_DIR": str(folder), "PORT": str(free_port()), **settings}
    return subprocess.run(
        manage("serve"), env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("PORT", "eighty", "use a whole number from 1 to 65535"),
        ("TIME_ZONE", "Mars/Base", "is not a time zone"),
        ("DATA_DIR", __file__, "use a folder"),
        ("HOST", "192.0.2.1", "HOST must be an address of this machine"),
    ],
)
def test_a_wrong_setting_is_reported_in_a_sentence(tmp_path: Path, name: str, value: str, found: str) -> None:
    ended = served(tmp_path, **{name: value})
    assert ended.returncode != 0
    assert found in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_taken_port_is_reported_with_another_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "Choose another port" in served(tmp_path, PORT=str(taken.getsockname()[1])).stderr


def test_one_folder_is_served_once(tmp_path: Path) -> None:
    with (tmp_path / "serving").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Another evalsite is running with this DATA_DIR" in served(tmp_path).stderr


def test_a_worker_gives_way_to_pages(processes: Processes) -> None:
    worker = processes.start("worker", "--queue", "data")
    pages = os.getpriority(os.PRIO_PROCESS, 0)  # a higher number means a lower priority
    wait_until(lambda: os.getpriority(os.PRIO_PROCESS, worker.pid) > pages)
    assert worker.poll() is None
