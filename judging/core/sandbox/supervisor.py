"""The parent's handle on the zygote: starts it, requests workers from it, and ends both."""

import contextlib
import importlib.util
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

from judging.core.sandbox.job import Layer, SandboxBroken, SandboxLimits, TooManyFiles
from judging.core.sandbox.zygote import ANSWER, REQUEST

_START_SECONDS = 60.0
_NICER = 5  # so that page requests get processor time first
_HERE = Path(__file__).resolve()


def _import_places() -> list[str]:
    """The folders of this project and of the packages that a worker imports."""
    specs = [importlib.util.find_spec(name) for name in ("jinja2", "markupsafe")]
    packages = {str(Path(spec.origin).parents[1]) for spec in specs if spec and spec.origin}
    return [str(_HERE.parents[3]), *sorted(packages)]


class ZygoteSupervisor:
    """A zygote process; ``cpu_seconds`` limits the processor time of each of its workers.

    Requests from all threads are answered one after the other.
    """

    def __init__(self, limits: SandboxLimits, without: frozenset[Layer], cpu_seconds: int) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_START_SECONDS)
        config = {
            "paths": _import_places(),
            "without": sorted(without),
            "memory_mb": limits.memory_mb,
            "seconds": limits.seconds,
            "cpu_seconds": cpu_seconds,
            "nice": _NICER,
        }
        command = [
            sys.executable,
            "-I",
            "-S",
            *(["-B"] if sys.dont_write_bytecode else []),
            "-X",
            "utf8",
            str(_HERE.with_name("zygote.py")),
            json.dumps(config),
        ]
        with theirs:
            self._process = self._started(command, theirs)
        self.held = self._wait_until_ready()

    def _started(self, command: list[str], theirs: socket.socket) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - our own file by its path
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            raise SandboxBroken(f"the sandbox can't be started: {error}") from None

    def _wait_until_ready(self) -> frozenset[str]:
        try:
            message = self._control.recv(4096)
        except OSError as error:
            self.close()
            raise SandboxBroken(f"the sandbox did not start: {error}") from None
        stderr = self._process.stderr
        assert stderr is not None
        if not message:
            said = stderr.read().decode(errors="replace").strip()
            self.close()
            raise SandboxBroken(f"the sandbox did not start: {said[-1000:]}")
        stderr.close()
        return frozenset(json.loads(message))

    def start_worker(self) -> tuple[int, socket.socket]:
        """The process id of a new worker, and the channel to it."""
        number, _, descriptors = self._ask(b"s", 0)
        if not descriptors:  # the kernel drops them when the buffer is full
            self.dismiss_worker(number)
            raise TooManyFiles("this process has too many files open")
        return number, socket.socket(fileno=descriptors[0])

    def processor_seconds(self, worker: int) -> float:
        return self._ask(b"c", worker)[1]

    def end_worker(self, worker: int) -> int:
        """Kill the worker if it is still running, and return its wait status."""
        return self._ask(b"e", worker)[0]

    def dismiss_worker(self, worker: int) -> None:
        """Kill the worker without waiting for it to end."""
        self._ask(b"d", worker)

    def _ask(self, letter: bytes, number: int) -> tuple[int, float, list[int]]:
        try:
            with self._lock:
                self._control.send(REQUEST.pack(letter, number))
                answer, descriptors, _, _ = socket.recv_fds(self._control, ANSWER.size, 1)
        except OSError as error:
            raise SandboxBroken(f"the sandbox's process does not answer: {error}") from None
        if len(answer) != ANSWER.size:
            raise SandboxBroken("the sandbox's process has ended")
        return (*ANSWER.unpack(answer), descriptors)

    def close(self) -> None:
        """End the zygote; the kernel then ends its workers. Pending requests raise SandboxBroken."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._control.close()
        if self._process.stderr:
            self._process.stderr.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)

    def detach(self) -> None:
        """Forget the zygote in a forked child: it is the parent's, and must still notice when the parent ends."""
        self._control.close()
        self._process.returncode = 0  # so that it is not waited for here
