"""The supervisor starts again what died, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evalsite.supervisor import PARENT
from tests.processes.conftest import wait_until

pytestmark = pytest.mark.processes

PROGRAM = """
import sys
from evalsite.supervisor import Child, Supervisor
child = "import os,sys,time; from evalsite.supervisor import end_with_parent; end_with_parent();" \\
        "open(sys.argv[1],'a').write(f'{os.getpid()}\\\\n'); time.sleep(60)"
Supervisor([Child("sleeper", [sys.executable, "-c", child, sys.argv[1]])]).run()
"""


def supervised(log: Path) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if key != PARENT}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(log)], env=environment)


def pids(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_child_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    supervisor = supervised(log)
    wait_until(lambda: len(pids(log)) == 1, 10)
    os.kill(pids(log)[0], signal.SIGKILL)
    wait_until(lambda: len(pids(log)) == 2, 10)
    supervisor.terminate()
    supervisor.wait(15)
    assert not any(alive(pid) for pid in pids(log))


def test_children_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    supervisor = supervised(log)
    wait_until(lambda: len(pids(log)) == 1, 10)
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: not alive(pids(log)[0]), 10)
