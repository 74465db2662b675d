"""Clients that send or read slowly, or keep connections open, do not slow the site down for others."""

from __future__ import annotations

import http.client
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create
from evalsite.web.server import ServerLimits
from tests.deadlines import slack
from tests.processes.conftest import Processes, ended, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes
EACH = 40
BODY = "Host: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000000\r\n"
FILE_START = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n' + b"x" * 100_000
)


@pytest.fixture
def port(processes: Processes, project: Project) -> Iterator[int]:
    """The port of a site that requires signing in."""
    port = free_port()
    processes.environment |= {"PORT": str(port), "REQUIRE_SIGN_IN": "1"}
    web = processes.start("serve", "--web-only")
    wait_until(lambda: answers(port))
    yield port
    web.send_signal(signal.SIGTERM)
    assert ended(web, 15) == 0


def answers(port: int) -> bool:
    try:
        return ask(port, "/healthz")[0] == 200
    except OSError:
        return False


def ask(port: int, path: str, **headers: str) -> tuple[int, float]:
    """Status code, and seconds until the last byte."""
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, time.monotonic() - start


def open_all(stack: ExitStack, port: int, sent: bytes, *, receives: int = 0) -> list[socket.socket]:
    found = []
    for _ in range(EACH):
        one = stack.enter_context(socket.socket())
        if receives:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        one.connect(("127.0.0.1", port))
        one.settimeout(60)
        one.sendall(sent)
        found.append(one)
    return found


def test_240_slow_clients_leave_pages_as_fast_as_ever(port: int, alice: User, processes: Processes) -> None:
    incoming = Path(processes.environment["DATA_DIR"]) / "incoming"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 1024)), hard))
    _, secret = token_create(user=alice, name="test", days=None)
    upload = f"POST /api/v1/projects/physics/datasets HTTP/1.1\r\n{BODY}"
    signed_in = f"{upload}Authorization: Bearer {secret}\r\n\r\n".encode()
    with_token = {"Authorization": f"Bearer {secret}"}
    measured = (("/healthz", {}), ("/sign-in/", {}), ("/api/v1/projects", with_token))
    for path, headers in measured:
        ask(port, path, **headers)
    with ExitStack() as stack:
        idle = open_all(stack, port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        open_all(stack, port, b"GET / HTTP/1.1\r\nHost: local")
        open_all(
            stack, port, b"POST /sign-in/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\nusername="
        )
        open_all(stack, port, b"GET /sign-in/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, receives=4096)
        uploads = open_all(stack, port, signed_in + FILE_START)
        anonymous = open_all(stack, port, upload.encode() + b"\r\n" + FILE_START)
        # Uploads beyond the limit get 503.
        assert uploads[-1].recv(20).startswith(b"HTTP/1.1 503")
        wait_until(lambda: any(incoming.iterdir()))
        assert len(list(incoming.iterdir())) <= ServerLimits().aside
        assert all(one.recv(20).startswith(b"HTTP/1.1 200") for one in idle)
        assert all(one.recv(20).startswith(b"HTTP/1.1 401") for one in anonymous)
        for path, headers in measured:
            tries = [ask(port, path, **headers) for _ in range(5)]
            assert {status for status, _ in tries} == {200}
            assert sorted(seconds for _, seconds in tries)[2] < slack(), path
    wait_until(lambda: not any(incoming.iterdir()))
