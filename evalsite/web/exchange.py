"""Connects the event loop, which has the connection, with the thread that runs the WSGI application for a request."""

from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import FileWrapper

from aiohttp.web import BaseRequest

from evalsite.web.threads import Threads, ThreadsBusy

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

BUFFERED = 1024 * 1024  # bytes of a response buffered for the client before the thread has to wait
READ_SIZE = 256 * 1024
log = logging.getLogger(__name__)


class ClientGone(OSError):
    """The client disconnected or was too slow. An OSError, which Django treats as a broken connection."""


class Exchange:
    """Runs the application in a thread and passes its response to the event loop, which awaits `more`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Threads) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.ended = False
        self.failed = False
        self._loop, self._threads = loop, threads
        self._parts: list[bytes] = []
        self._size = 0
        self._gone = self._is_aside = self._notified = False
        self._once_aside: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._news = asyncio.Event()

    # In the event loop

    async def more(self) -> bytes:
        """Wait for and return new response data; b"" at the end."""
        while True:
            await self._news.wait()
            with self._changed:
                self._news.clear()
                self._notified = False
                parts, self._parts, self._size = self._parts, [], 0
                if self.ended:
                    self._news.set()
                self._changed.notify()
                if parts or self.ended:
                    return parts[0] if len(parts) == 1 else b"".join(parts)

    def once_aside(self, act: Callable[[], None]) -> None:
        """Set a callback that is called once: when the thread steps aside, its answer begins, or the exchange ends."""
        self._once_aside = act

    def abandon(self) -> None:
        """The client disconnected: discard the rest of the response."""
        self.act_once()
        with self._changed:
            self._gone = True
            self._changed.notify()

    def act_once(self) -> None:
        """Call the callback of `once_aside` if it was not called yet."""
        act, self._once_aside = self._once_aside, None
        if act is not None:
            act()

    # In the thread

    def run(self, application: WSGIApplication, environ: WSGIEnvironment) -> None:
        """Call the application and pass on its response."""
        try:
            answer = application(environ, self._start_response)  # type: ignore[arg-type]
            try:
                if self._is_short(answer):
                    self._put(b"".join(answer), last=True)
                else:
                    for part in answer:
                        self._put(part)
            finally:
                close: Callable[[], None] | None = getattr(answer, "close", None)
                if close is not None:
                    close()
        except (ClientGone, ThreadsBusy):
            self.failed = True
        except Exception:  # whatever it is, the client's connection must end
            self.failed = True
            log.exception("Unhandled exception in the application.")
        finally:
            with self._changed:
                self.ended = True
                self._notify()

    def step_aside(self) -> None:
        """Give this request's turn to another one before waiting for the client. Raises ThreadsBusy."""
        if not self._is_aside:
            self._threads.step_aside()
            self._is_aside = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.act_once)

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
        self.status, self.headers = status, headers

    def _is_short(self, answer: Iterable[bytes]) -> bool:
        """Whether the response is small or complete, so that it can be sent in one piece."""
        length = next((text for name, text in self.headers if name == "Content-Length"), "")
        if length.isdecimal():
            return int(length) <= BUFFERED
        return isinstance(answer, list) or not getattr(answer, "streaming", True)

    def _put(self, part: bytes, *, last: bool = False) -> None:
        if not part and not last:
            return
        with self._changed:
            while self._size >= BUFFERED and not self._gone:
                self.step_aside()
                self._changed.wait()
            if self._gone:
                raise ClientGone
            self._parts.append(part)
            self._size += len(part)
            self.ended = last
            self._notify()

    def _notify(self) -> None:
        """Wake the event loop, once for all data that it has not fetched."""
        if not self._notified:
            self._notified = True
            with suppress(RuntimeError):  # the loop was closed while this thread was running
                self._loop.call_soon_threadsafe(self._news.set)


class ClientInput(io.RawIOBase):
    """A request body that is still being received; reading it waits for the client."""

    def __init__(
        self, exchange: Exchange, receive: Callable[[], Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._exchange, self._receive, self._loop = exchange, receive, loop
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        if not self._rest:
            try:
                self._exchange.step_aside()
                received = asyncio.run_coroutine_threadsafe(self._receive(), self._loop).result()
            except (ThreadsBusy, RuntimeError) as error:
                raise ClientGone from error
            self._rest = memoryview(received)
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def environ_of(request: BaseRequest, sockname: Any) -> WSGIEnvironment:
    """The WSGI environ (PEP 3333) of a request, without its body."""
    target = request.raw_path if request.raw_path.startswith("/") else request.url.raw_path_qs
    path, _, query = target.partition("?")
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return {
        **_variables(request.headers.items()),
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query.encode("utf-8", "surrogateescape").decode("latin-1"),
        "REMOTE_ADDR": peer[0] if peer else "",
        "SERVER_NAME": sockname[0],
        "SERVER_PORT": str(sockname[1]),
        "SERVER_PROTOCOL": f"HTTP/{request.version.major}.{request.version.minor}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": _file_parts,
    }


def _variables(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers as CGI variables. Names with `_` are dropped, as they would be mistaken for ones with `-`."""
    variables: dict[str, str] = {}
    for name, text in headers:
        if "_" in name:
            continue
        key = name.upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        value = text.encode("utf-8", "surrogateescape").decode("latin-1")
        separator = "; " if key == "HTTP_COOKIE" else ","
        variables[key] = f"{variables[key]}{separator}{value}" if key in variables else value
    return variables


def _file_parts(file: Any, _size: int = 0) -> Iterator[bytes]:
    return FileWrapper(file, READ_SIZE)
