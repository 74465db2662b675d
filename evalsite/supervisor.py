"""Starts processes, restarts those that die, and stops all of them together."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
PARENT = "EVALSITE_SUPERVISOR"  # the supervisor's process id, for its children
GRACE_SECONDS = 10
CALM_SECONDS = 10  # a child that ran this long did not fail because of its configuration
LOOK_SECONDS = 0.1
BEHIND_PAGES = 5  # niceness: pages have priority over background work
KILLED = (-signal.SIGKILL, -signal.SIGTERM)
KILLED_REST = 1.0  # pause before restarting a child that was killed early, to save processor time
STOPPED_SECONDS = 10.0  # a child stopped by SIGSTOP is killed after this long


def end_with_parent() -> None:
    """Ask the kernel to send this process SIGTERM when its supervisor ends, for whatever reason."""
    parent = os.environ.get(PARENT)
    if not parent or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before the call above
        sys.exit(0)


def wait_until_released() -> None:
    """Wait in a child for the end of its `Child.held`; a child that was started otherwise goes on at once."""
    sys.stdin.read()


@dataclass(slots=True)
class Child:
    """A process to keep running."""

    name: str
    command: list[str]
    quiet: bool = False  # discard standard output
    behind_pages: bool = True  # set at start, so that its imports do not delay the first page
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    stopped_at: float | None = None
    not_before: float = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Start the process now; `wait_until_released` returns in it when the block ends. An error kills it."""
        reading, writing = os.pipe()
        try:
            self.start(stdin=reading)
            yield
        except BaseException:
            if self.process is not None:
                kill_group(self.process.pid)
                self.process.wait()
            raise
        finally:
            os.close(reading)
            os.close(writing)

    def start(self, stdin: int = subprocess.DEVNULL) -> None:
        # In a new session: Ctrl-C reaches only the supervisor, which then stops all in order, and processes that the
        # child starts (the web server has a worker process) can be stopped with it.
        self.process = subprocess.Popen(  # noqa: S603
            self.command,
            env={**os.environ, PARENT: str(os.getpid())},
            stdin=stdin,
            stdout=subprocess.DEVNULL if self.quiet else None,
            start_new_session=True,
        )
        if self.behind_pages:
            niceness = os.getpriority(os.PRIO_PROCESS, 0) + BEHIND_PAGES
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, niceness)
        self.started = time.monotonic()

    def restart_if_ended(self) -> str | None:
        """Restart the process if it died; return a log message in that case.

        A killed process is restarted immediately. One that keeps exiting is restarted after increasing pauses (at most
        30 s).
        """
        now = time.monotonic()
        self.end_if_stopped(now)
        if self.process is not None and self.process.poll() is not None:
            code = self.process.returncode
            kill_group(self.process.pid)
            self._rest_after(code, now)
            self.process = None
            message = f"{self.name} ended with {code}; it is started again."
        else:
            message = None
        if self.process is None and now >= self.not_before:
            self.start()
        return message

    def end_if_stopped(self, now: float) -> None:
        """Kill the process if a signal stopped it and it does not continue soon."""
        if self.process is None or not _is_stopped(self.process.pid):
            self.stopped_at = None
        elif self.stopped_at is None:
            self.stopped_at = now
        elif now - self.stopped_at > STOPPED_SECONDS:
            self.stopped_at = None
            kill_group(self.process.pid)
            self.process.wait()

    def _rest_after(self, code: int, now: float) -> None:
        if code in KILLED:  # killed by someone or by lack of memory, not its own fault
            self.failures = 0
            self.not_before = now + KILLED_REST if now - self.started < KILLED_REST else now
            return
        self.failures = 0 if now - self.started > CALM_SECONDS else self.failures + 1
        self.not_before = now + (min(30.0, 0.5 * 2.0**self.failures) if self.failures > 1 else 0.0)


class Supervisor:
    """Keeps its children running until it is stopped by SIGTERM, SIGINT or `stop()`."""

    def __init__(self, children: list[Child]) -> None:
        self.children = children
        self.stopping = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        while not self.stopping:
            for child in self.children:
                message = child.restart_if_ended()
                if message:
                    print(message, file=sys.stderr, flush=True)  # noqa: T201
            time.sleep(LOOK_SECONDS)
        self.end_all()

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def end_all(self) -> None:
        """Send SIGTERM to all, and SIGKILL to those still running after the grace period."""
        running = [child.process for child in self.children if child.process and child.process.poll() is None]
        for process in running:
            process.terminate()
        until = time.monotonic() + GRACE_SECONDS
        for process in running:
            try:
                process.wait(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            kill_group(process.pid)


def _is_stopped(pid: int) -> bool:
    """Whether a process is in state T (proc(5), field 3); False if unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def kill_group(leader: int) -> None:
    """Kill processes that a child left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def manage(*arguments: str) -> list[str]:
    """The command line of another manage.py command under the same Python."""
    return [sys.executable, str(Path(__file__).resolve().parent.parent / "manage.py"), *arguments]


def queue_workers(queues: Iterable[str]) -> list[Child]:
    """A worker process for each queue."""
    return [Child(f"worker ({queue})", manage("worker", "--queue", queue)) for queue in queues]
