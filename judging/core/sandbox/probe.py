"""Attempts forbidden actions inside a worker and reports those that were not blocked."""

import _thread
import mmap
import os
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _executable_memory() -> None:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()


_ATTEMPTS: dict[str, Callable[[], Any]] = {
    "read a file": lambda: os.open("/", os.O_RDONLY),
    "open a TCP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "open a Unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "make a process": _fork,
    "make a thread": lambda: _thread.start_new_thread(lambda: None, ()),
    "signal the parent": lambda: os.kill(os.getppid(), 0),
    "map executable memory": _executable_memory,
}


class SandboxProbe:
    """A job handler that ignores the job's source and items."""

    def __init__(self, job: dict[str, Any]) -> None:
        pass

    def answer(self, raw: memoryview) -> list[str]:
        return [name for name, attempt in _ATTEMPTS.items() if not _refused(attempt)]

    def line_of(self, trace: TracebackType | None) -> int | None:
        return None


def _refused(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except (OSError, RuntimeError):  # RuntimeError: "can't start new thread"
        return True
    return False
