"""The web server: HTTP by aiohttp in one event loop, the WSGI application in a limited number of threads.

A thread is used only when a request is complete, so clients that send slowly, read slowly or keep connections open take
a socket, not a thread. Larger bodies and long responses are streamed; a thread that waits for its client steps aside
(threads.py). docs/decisions/web-server.md has the reasons and measurements.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import resource
import signal
import socket
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aiohttp import ClientPayloadError
from aiohttp.web import BaseRequest, Response, Server, StreamResponse
from aiohttp.web_protocol import RequestHandler

from evalsite.api.errors import is_for_programs, server_refusal
from evalsite.web.exchange import ClientGone, ClientInput, Exchange, environ_of
from evalsite.web.threads import Job, Threads

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

T = TypeVar("T")
SLICE = 64 * 1024
WHOLE_BODY = 64 * 1024  # a body up to this size is received before a thread is used
# Keys in the WSGI environment:
STEP_ASIDE = "evalsite.step_aside"  # call before waiting for the client; raises ThreadsBusy
BODY_WAITS = "evalsite.body_waits"  # the body is still on its way; without CONTENT_LENGTH it cannot be read
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits, mainly for slow clients."""

    pages: int = 6  # requests processed at a time
    aside: int = 24  # additional requests that wait for their client during processing
    programs: int = 2  # of these, requests of programs, so that many of them don't delay pages
    starting: int = 2  # requests with larger bodies that may start processing at a time
    connections: int = 1000
    idle_seconds: float = 30.0  # for the headers of a request, and between requests
    grace_seconds: float = 20.0  # for a body or a response; also the longest pause within one
    bytes_per_second: int = 16 * 1024  # required average rate after the grace period
    ending_seconds: float = 5.0  # for requests in progress when the server stops


class TooSlow(ClientGone):
    """The client is slower than the required rate."""


class ClientTimeout:
    """Time that a client may take: a grace period, extended with each byte transferred."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._moved = 0
        self._waited = 0.0

    def moved(self, count: int) -> None:
        self._moved += count

    async def wait(self, event: Awaitable[T]) -> T:
        """Await an event that depends on the client. Raises TooSlow."""
        limits, loop = self._limits, asyncio.get_running_loop()
        left = limits.grace_seconds + self._moved / limits.bytes_per_second - self._waited
        began = loop.time()
        try:
            async with asyncio.timeout(min(left, limits.grace_seconds)):
                return await event
        except TimeoutError:
            raise TooSlow from None
        finally:
            self._waited += loop.time() - began


class Phase(Enum):
    """State of a connection. If necessary, the server closes connections waiting for their client in this order."""

    IDLE = 0  # between requests, or within the headers of one
    BODY = 1  # receiving a body that no thread is working on yet
    BUSY = 2


class Connection(RequestHandler):
    """aiohttp's connection, extended by its phase and when it began."""

    def __init__(self, site: Site, **options: Any) -> None:
        super().__init__(site.http, **options)
        self.site = site
        self.socket: asyncio.Transport | None = None
        self.enter(Phase.IDLE)

    def enter(self, phase: Phase) -> None:
        self.phase, self.since = phase, asyncio.get_running_loop().time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket = cast(asyncio.Transport, transport)
        super().connection_made(transport)
        self.site.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.site.connections.discard(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close it immediately; data not read by the client is lost."""
        if self.socket is not None:
            self.socket.abort()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer invalid HTTP in one line without logging it, as it says nothing about this site."""
        if isinstance(exc, (ClientGone, ConnectionError)):
            raise ConnectionResetError from exc
        if status == 500:
            return super().handle_error(request, status, exc, message)
        return refused(request, status, "The request is not valid HTTP.\n")


class Site:
    """A WSGI application on a socket."""

    def __init__(
        self, application: WSGIApplication, limits: ServerLimits, *, at_thread_end: Job = lambda: None
    ) -> None:
        self.application, self.limits = application, limits
        self.loop = asyncio.get_running_loop()
        self.threads = Threads(pages=limits.pages, aside=limits.aside, at_end=at_thread_end)
        self.starting, self.programs = map(asyncio.Semaphore, (limits.starting, limits.programs))
        self.connections: set[Connection] = set()
        self.http = Server(self.answer, handler_cancellation=True)
        self.sockname: Any = ("", 0)

    def connection(self) -> Connection:
        return Connection(
            self,
            loop=self.loop,
            keepalive_timeout=self.limits.idle_seconds,
            lingering_time=self.limits.ending_seconds,
            access_log=None,
            auto_decompress=False,
            max_line_size=SLICE,
            max_field_size=SLICE,
        )

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Answer requests until `stop` is set; then finish requests in progress."""
        self.sockname = listening.getsockname()
        server = await self.loop.create_server(self.connection, sock=listening, backlog=1024)
        sweeping = asyncio.create_task(self.sweep())
        await stop.wait()
        server.close()
        sweeping.cancel()
        await self.end()

    async def sweep(self) -> None:
        """Close connections that have been idle for too long."""
        while True:
            await asyncio.sleep(min(1.0, self.limits.idle_seconds / 4))
            latest = self.loop.time() - self.limits.idle_seconds
            for connection in list(self.connections):
                if connection.phase is Phase.IDLE and connection.since < latest:
                    connection.drop()

    async def end(self) -> None:
        """Wait a few seconds for requests in progress, then close all connections."""
        until = self.loop.time() + self.limits.ending_seconds
        while self.loop.time() < until and any(
            connection.phase is Phase.BUSY for connection in self.connections
        ):
            for connection in list(self.connections):
                if connection.phase is not Phase.BUSY:
                    connection.drop()
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.drop()
        await asyncio.sleep(0)

    def opened(self, connection: Connection) -> None:
        """Register a connection; if there are too many, close the one that has waited longest for its client."""
        self.connections.add(connection)
        if len(self.connections) <= self.limits.connections:
            return
        waiting = [candidate for candidate in self.connections if candidate.phase is not Phase.BUSY]
        min(waiting or [connection], key=lambda candidate: (candidate.phase.value, candidate.since)).drop()

    async def answer(self, request: BaseRequest) -> StreamResponse:
        """Handle a request from its headers to the end of the response."""
        connection: Any = request.protocol
        try:
            return await self._answer(request, connection)
        except ClientGone:
            connection.drop()
            raise
        finally:
            connection.enter(Phase.IDLE)

    async def _answer(self, request: BaseRequest, connection: Connection) -> StreamResponse:
        if request.method == "CONNECT":  # a 2xx would promise a tunnel
            return refused(request, 405, "This is not a proxy.\n")
        exchange = Exchange(self.loop, self.threads)
        environ = environ_of(request, self.sockname)
        environ[STEP_ASIDE] = exchange.step_aside
        receive = Body(request, ClientTimeout(self.limits))
        connection.enter(Phase.BODY)
        try:
            whole = await receive.whole(WHOLE_BODY)
        except TooSlow:
            return refused(request, 408, "The request did not arrive in time. Send it again.\n")
        if whole is None:
            environ[BODY_WAITS] = True
            environ["wsgi.input"] = io.BufferedReader(
                ClientInput(exchange, receive.part, self.loop), 4 * SLICE
            )
            await take_turn(self.starting, exchange)  # many concurrent uploads must not delay pages
        elif whole:
            environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(whole), str(len(whole))
        connection.enter(Phase.BUSY)
        if whole is not None and is_for_programs(request.path):
            await take_turn(self.programs, exchange)
        self.threads.submit(lambda: exchange.run(self.application, environ))
        try:
            return await self._pass_on(exchange, request, receive)
        finally:
            exchange.abandon()

    async def _pass_on(self, exchange: Exchange, request: BaseRequest, body: Body) -> StreamResponse:
        """Send the application's response as fast as the client reads it."""
        data = await exchange.more()
        exchange.act_once()
        if not exchange.status or (exchange.failed and not data):
            if body.broken:
                return refused(request, 408, "The request did not arrive in time. Send it again.\n")
            return refused(request, 500, "The server failed. Try again.\n")
        timeout = ClientTimeout(self.limits)
        whole = exchange.ended and not exchange.failed and len(data) <= SLICE
        answer = begun(exchange, data if whole else None)
        if not body.complete:
            answer.force_close()
        await answer.prepare(request)
        done = whole or request.method == "HEAD" or answer.status in (204, 304)
        while data and not done:
            for start in range(0, len(data), SLICE):
                part = memoryview(data)[start : start + SLICE]
                await timeout.wait(answer.write(part))
                timeout.moved(len(part))
            data = await exchange.more()
        if exchange.failed:  # failed midway: the client must not treat the response as complete
            raise ClientGone
        await timeout.wait(answer.write_eof())
        return answer


def begun(exchange: Exchange, whole: bytes | None) -> StreamResponse:
    """aiohttp's response with the application's status and headers; a complete body is sent in one piece."""
    code, _, reason = exchange.status.partition(" ")
    headers = [*exchange.headers, ("Server", "evalsite")]
    if whole is None:
        return StreamResponse(status=int(code), reason=reason, headers=headers)
    return Response(status=int(code), reason=reason, headers=headers, body=whole)


class Body:
    """The body of a request."""

    def __init__(self, request: BaseRequest, timeout: ClientTimeout) -> None:
        self._request, self._timeout = request, timeout
        self._continue_sent = False
        self.broken = False

    @property
    def complete(self) -> bool:
        return not self._request.can_read_body

    async def whole(self, most: int) -> bytes | None:
        """The complete body, or None if it is longer than `most` and must be streamed."""
        if (self._request.content_length or 0) > most:
            return None
        received = bytearray()
        while not self.complete and (part := await self.part()):
            received += part
            if len(received) > most:
                return None
        return bytes(received)

    async def part(self) -> bytes:
        """The next bytes, b"" at the end. Raises TooSlow and ClientGone."""
        await self._send_continue()
        try:
            part = await self._timeout.wait(self._request.content.readany())
        except TooSlow:
            self.broken = True
            raise
        except (ClientPayloadError, ConnectionError) as error:
            self.broken = True
            raise ClientGone from error
        self._timeout.moved(len(part))
        return part

    async def _send_continue(self) -> None:
        """Send "100 Continue" to a client that waits for it."""
        if self._continue_sent:
            return
        self._continue_sent = True
        if self._request.headers.get("Expect", "").lower() == "100-continue" and self._request.can_read_body:
            await self._request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._request.writer.output_size = 0


async def take_turn(turns: asyncio.Semaphore, exchange: Exchange) -> None:
    """Wait for one of the turns, and give it back when the exchange no longer needs it."""
    await turns.acquire()
    exchange.once_aside(turns.release)


def refused(request: BaseRequest, status: int, text: str) -> Response:
    """A refusal by the server itself: JSON where programs ask, else one line."""
    headers = {"Server": "evalsite"}
    document = server_refusal(request.path, status, request.headers.get("Accept-Language", ""))
    if document is None:
        answer = Response(status=status, text=text, headers=headers)
    else:
        answer = Response(status=status, text=document, headers=headers, content_type="application/json")
    answer.force_close()
    return answer


def run(
    application: WSGIApplication, host: str, port: int, *, limits: ServerLimits, at_thread_end: Job
) -> None:
    """Serve until SIGTERM or SIGINT."""
    asyncio.run(_run(application, host, port, limits, at_thread_end))


async def _run(
    application: WSGIApplication, host: str, port: int, limits: ServerLimits, at_thread_end: Job
) -> None:
    raise_open_files(limits.connections + 500)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with listen(host, port) as listening:
        await Site(application, limits, at_thread_end=at_thread_end).serve(listening, stop)


def listen(host: str, port: int) -> socket.socket:
    """Create a listening socket; `::` also accepts IPv4."""
    if ":" not in host:
        return socket.create_server((host, port))
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=socket.AF_INET6, dualstack_ipv6=both)


def raise_open_files(wanted: int) -> None:
    """Raise the limit of open files, as each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
