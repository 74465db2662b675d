"""`manage.py serve` reports why it cannot start, in a sentence without a traceback."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from evalsite.management.commands.serve import answers
from evalsite.supervisor import PARENT, manage
from tests.processes.conftest import Processes, ended, wait_until
from tests.starting import free_port, leashed

pytestmark = pytest.mark.processes


def environment_for(folder: Path, **settings: str) -> dict[str, str]:
    unwanted = (PARENT, "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    return environment | {"DATA_DIR": str(folder), "PORT": str(free_port()), **settings}


def served(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = environment_for(folder, **settings)
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


def test_an_interrupt_ends_the_start_also_in_the_background(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "serving")  # opening it to lock it waits for a reader
    in_background = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *manage("serve")]  # as with &
    starting = subprocess.Popen(leashed(in_background), env=environment_for(tmp_path))
    wait_until(lambda: not ignores(starting.pid, signal.SIGINT))
    starting.send_signal(signal.SIGINT)
    assert ended(starting, 30) == -signal.SIGINT


def ignores(pid: int, number: int) -> bool:
    """Whether a process ignores a signal (proc(5), SigIgn), or is not yet the program."""
    status = Path(f"/proc/{pid}/status").read_text()
    is_shell = not Path(f"/proc/{pid}/exe").resolve().name.startswith("python")
    return is_shell or bool(int(status.partition("SigIgn:")[2].split()[0], 16) >> number - 1 & 1)


def test_a_worker_gives_way_to_pages(processes: Processes) -> None:
    worker = processes.start("worker", "--queue", "data")
    pages = os.getpriority(os.PRIO_PROCESS, 0)  # a higher number means a lower priority
    wait_until(lambda: os.getpriority(os.PRIO_PROCESS, worker.pid) > pages)
    assert worker.poll() is None


def test_a_site_without_the_sample_lets_its_local_visitor_in(processes: Processes) -> None:
    port = free_port()
    processes.environment |= {"HOST": "127.0.0.1", "PORT": str(port), "REQUIRE_SIGN_IN": "0"}
    processes.start("serve", "--web-only", "--no-sample")
    address = f"http://127.0.0.1:{port}/"
    wait_until(lambda: answers(address))
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({})
    )
    with opener.open(address, timeout=30) as home:
        assert (home.status, home.url) == (200, address)
