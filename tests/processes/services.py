"""Brokers for one test: a Redis that can be killed, and a virtual host on this machine's RabbitMQ."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.starting import free_port, leashed


@dataclass
class Redis:
    """A Redis server without persistence: a restart loses all messages."""

    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(leashed(command), stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def redis() -> Iterator[Redis]:
    if not shutil.which("redis-server"):
        pytest.skip("there is no redis-server on this machine")
    server = Redis()
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def rabbitmq() -> Iterator[str]:
    """Create an empty virtual host and yield its URL."""
    control = shutil.which("rabbitmqctl")
    name = f"evalsite-{uuid.uuid4().hex[:8]}"
    if not control or _run(control, "add_vhost", name):
        pytest.skip("there is no RabbitMQ on this machine that rabbitmqctl may steer")
    _run(control, "set_permissions", "-p", name, "guest", ".*", ".*", ".*")
    try:
        yield f"amqp://guest:guest@127.0.0.1:5672/{name}"
    finally:
        _run(control, "delete_vhost", name)


def _run(*command: str) -> int:
    return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode
