"""A whole site in processes of its own: web, workers, demo judge, sample project."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalsite.supervisor import manage
from tests.processes.conftest import SETTINGS, wait_until


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Its address, once it answers; its data lies below `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, **SETTINGS, "DATA_DIR": str(folder / "data"), "PORT": str(port)}
    environment["DATABASE_URL"] = ""
    process = subprocess.Popen(manage("serve"), env=environment, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(address), 180)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address + "/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
