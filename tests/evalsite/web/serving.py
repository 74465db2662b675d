"""Run the web server on a socket in this process, with a WSGI application that the test controls."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from evalsite.web.server import STEP_ASIDE, ServerLimits, Site, listen
from evalsite.web.threads import ThreadsBusy

MEGABYTE = b"x" * 2**20


class Application:
    """A WSGI application that counts closed responses and broken request bodies."""

    def __init__(self) -> None:
        self.closed = 0
        self.broken = 0
        self.go_on = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        kind = environ["PATH_INFO"].rpartition("/")[2]
        found: tuple[str, Iterable[bytes]] = getattr(self, kind or "page", self.page)(environ)
        start_response(found[0], [("Content-Type", "text/plain")])
        return found[1]

    def page(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        return "200 OK", [b"a page"]

    def environ(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        result = {name: value for name, value in environ.items() if isinstance(value, str)}
        return "200 OK", [json.dumps(result).encode()]

    def body(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        """Read the whole body, even if it has not arrived yet."""
        try:
            environ[STEP_ASIDE]()
            received = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH", 0)))
        except ThreadsBusy:
            return "503 Busy", [b"busy"]
        except OSError:
            self.broken += 1
            raise
        return "200 OK", [str(len(received)).encode()]

    def unread(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        return "413 Too Large", [b"too large"]

    def endless(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        return "200 OK", self._endless()

    def _endless(self) -> Iterator[bytes]:
        try:
            while True:
                yield MEGABYTE
        finally:
            self.closed += 1

    def halves(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        return "200 OK", self._halves()

    def _halves(self) -> Iterator[bytes]:
        yield b"first"
        self.go_on.wait()
        yield b"second"

    def waits(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        self.go_on.wait()
        return "200 OK", [b"done"]

    def fails(self, environ: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        raise ValueError("on purpose")


class Served:
    """A running server with its address and application."""

    def __init__(self, limits: ServerLimits, host: str = "127.0.0.1") -> None:
        self.application = Application()
        self.listening = listen(host, 0)
        self.host, self.port = self.listening.getsockname()[:2]
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(limits)))
        self._thread.start()
        self._started.wait()

    async def _serve(self, limits: ServerLimits) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.site = Site(self.application, limits)
        self._started.set()
        with self.listening:
            await self.site.serve(self.listening, self._stop)

    def begin_to_stop(self) -> None:
        """Start a shutdown, as SIGTERM does."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)

    def stop(self) -> None:
        self.begin_to_stop()
        self._thread.join()

    def connect(self, sent: bytes = b"", *, receives: int = 0) -> socket.socket:
        """Open a connection and send `sent`. `receives` is the receive buffer's size in bytes."""
        found = socket.socket(self.listening.family)
        if receives:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        found.settimeout(60)
        found.connect((self.host, self.port))
        found.sendall(sent)
        return found

    def ask(self, path: str = "/", head: str = "", body: bytes = b"") -> bytes:
        """Send a POST request on a new connection; return the raw response."""
        lines = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}\r\n"
        with self.connect(lines.encode() + body) as connection:
            return everything(connection)


def answer_on(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of the next response."""
    found = http.client.HTTPResponse(connection)
    found.begin()
    return found.status, found.read()


def everything(connection: socket.socket) -> bytes:
    """Everything received until the server closes or resets the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


@contextmanager
def served(host: str = "127.0.0.1", **limits: Any) -> Iterator[Served]:
    server = Served(ServerLimits(**limits), host)
    try:
        yield server
    finally:
        server.application.go_on.set()
        server.stop()
