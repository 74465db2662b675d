"""The supervisor restarts dead processes and leaves none behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evalsite.supervisor import BEHIND_PAGES, PARENT, STOPPED_SECONDS, Child
from tests.processes.conftest import ended, wait_until

pytestmark = pytest.mark.processes

PROGRAM = """
import sys
from evalsite.supervisor import Child, Supervisor
Supervisor([Child("child", [sys.executable, "-c", sys.argv[2], sys.argv[1]])]).run()
"""
SLEEPER = """
import os, sys, time
from evalsite.supervisor import end_with_parent
end_with_parent()
open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')
time.sleep(60)
"""
CHILD = "import os,sys,time; open(sys.argv[1],'a').write(f'{os.getpid()}\\n'); "
GRANDCHILD = CHILD + "os.fork() or open(sys.argv[1],'a').write(f'{os.getpid()}\\n'); time.sleep(60)"
INTERRUPTED = (
    CHILD
    + """
try:
    time.sleep(60)
except KeyboardInterrupt:
    open(sys.argv[1],'a').write('interrupted')
"""
)


def supervised(log: Path, child: str = SLEEPER) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if key != PARENT}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log), child], env=environment, start_new_session=True
    )


def pids(log: Path) -> list[int]:
    text = log.read_text() if log.exists() else ""
    return [int(line) for line in text.split() if line.isdecimal()]


def state(pid: int) -> str:
    """The process state letter of proc(5); "" if there is no process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z")


def test_a_killed_child_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    supervisor = supervised(log)
    wait_until(lambda: len(pids(log)) == 1, 10)
    os.kill(pids(log)[0], signal.SIGKILL)
    wait_until(lambda: len(pids(log)) == 2, 10)
    supervisor.terminate()
    ended(supervisor, 15)
    assert not any(alive(pid) for pid in pids(log))


HELD = """
import sys
from evalsite.supervisor import wait_until_released
wait_until_released()
open(sys.argv[1], "w").write("released")
"""


def test_a_held_child_runs_at_once_and_goes_on_when_it_is_released(tmp_path: Path) -> None:
    done = tmp_path / "done"
    child = Child("child", [sys.executable, "-c", HELD, str(done)])
    with child.held():
        assert child.process is not None
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(0.5)
    assert child.process.wait(30) == 0
    assert done.read_text() == "released"
    done.unlink()
    child.start()  # as after its death: nothing holds it
    assert child.process.wait(30) == 0
    assert done.exists()


def test_a_held_child_is_killed_if_the_preparations_fail(tmp_path: Path) -> None:
    done = tmp_path / "done"
    child = Child("child", [sys.executable, "-c", HELD, str(done)])
    with pytest.raises(ValueError, match="refused"), child.held():
        raise ValueError("refused")
    assert child.process is not None
    assert child.process.returncode == -signal.SIGKILL
    assert not done.exists()


def test_a_child_that_was_stopped_and_does_not_go_on_is_killed_and_started_again() -> None:
    child = Child("child", [sys.executable, "-c", "import time; time.sleep(60)"])
    child.start()
    assert child.process is not None
    stopped = child.process
    stopped.send_signal(signal.SIGSTOP)
    wait_until(lambda: state(stopped.pid) == "T", 10)
    child.end_if_stopped(100.0)
    child.end_if_stopped(100.0 + STOPPED_SECONDS - 1)
    assert stopped.poll() is None
    child.end_if_stopped(100.0 + STOPPED_SECONDS + 1)
    assert stopped.poll() == -signal.SIGKILL
    wait_until(lambda: child.restart_if_ended() is None and child.process is not None, 10)
    assert child.process is not None
    assert child.process.pid != stopped.pid
    child.process.kill()
    child.process.wait()


def test_a_child_that_goes_on_in_time_is_left_alone() -> None:
    child = Child("child", [sys.executable, "-c", "import time; time.sleep(60)"])
    child.start()
    assert child.process is not None
    process = child.process
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state(process.pid) == "T", 10)
    child.end_if_stopped(100.0)
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: state(process.pid) != "T", 10)
    child.end_if_stopped(100.0 + STOPPED_SECONDS + 1)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_children_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    supervisor = supervised(log)
    wait_until(lambda: len(pids(log)) == 1, 10)
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: not alive(pids(log)[0]), 10)
    assert len(pids(log)) == 1


def test_what_a_child_started_itself_is_ended_with_it(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    supervisor = supervised(log, GRANDCHILD)
    wait_until(lambda: len(pids(log)) == 2, 10)
    supervisor.terminate()
    assert ended(supervisor, 15) == 0
    wait_until(lambda: not any(alive(pid) for pid in pids(log)), 5)


def test_ctrl_c_reaches_the_supervisor_alone(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    supervisor = supervised(log, INTERRUPTED)
    wait_until(lambda: len(pids(log)) == 1, 10)
    os.killpg(supervisor.pid, signal.SIGINT)
    ended(supervisor, 15)
    assert "interrupted" not in log.read_text()


@pytest.mark.parametrize(("behind_pages", "further"), [(True, BEHIND_PAGES), (False, 0)])
def test_what_answers_no_pages_gives_way_from_its_first_moment(behind_pages: bool, further: int) -> None:
    child = Child("child", [sys.executable, "-c", "pass"], behind_pages=behind_pages)
    child.start()
    assert child.process is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    # A process that has ended keeps its priority until it is waited for.
    assert os.getpriority(os.PRIO_PROCESS, child.process.pid) == own + further
    child.process.wait()


class Deaths:
    """A child process that exits or is killed by a signal, with a fake clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
        self.now = 1000.0
        monkeypatch.setattr("evalsite.supervisor.time.monotonic", lambda: self.now)
        self.child = Child("child", [sys.executable, "-c", end], quiet=True)

    def rests(self, count: int, lived: float) -> list[float]:
        """Seconds until the next start after each of `count` ends, each after `lived` seconds."""
        found = []
        for _ in range(count):
            if self.child.process is None:
                self.now = max(self.now, self.child.not_before)
                self.child.restart_if_ended()
            assert self.child.process is not None
            self.child.process.wait()
            self.now += lived
            self.child.restart_if_ended()
            found.append(self.child.not_before - self.now if self.child.process is None else 0.0)
        if self.child.process is not None:
            self.child.process.wait()
        return found


KILLED_BY = "import os, signal; os.kill(os.getpid(), signal.{})"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_however_often_a_child_is_killed_it_is_back_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert Deaths(monkeypatch, KILLED_BY.format(name)).rests(5, lived=2) == [0] * 5


def test_what_is_killed_at_once_again_and_again_keeps_no_processor_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Deaths(monkeypatch, KILLED_BY.format("SIGKILL")).rests(3, lived=0.1) == [1] * 3


def test_a_child_that_keeps_ending_by_itself_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Deaths(monkeypatch, "raise SystemExit(1)").rests(4, lived=2) == [0, 2, 4, 8]
