"""A complete site in separate processes: web, workers, demo judge, sample project."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalsite.supervisor import manage
from tests.processes.conftest import SETTINGS, ended, wait_until
from tests.starting import free_port, leashed


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Start a site and yield its URL once it responds. Its DATA_DIR is `folder`/data, which may hold a database."""
    port = free_port()
    environment = {**os.environ, **SETTINGS, "DATA_DIR": str(folder / "data"), "PORT": str(port)}
    environment["DATABASE_URL"] = ""
    mail = {"EMAIL_URL": "dummymail://", "EMAIL_FROM": "site@evals.example"}
    environment |= {"SITE_URL": f"http://127.0.0.1:{port}", **mail}
    process = subprocess.Popen(leashed(manage("serve")), env=environment, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(address), 180)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        ended(process, 30)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address + "/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
