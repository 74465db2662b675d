"""Single calls made from a page, under the same limits as runs.

A manual call acts as a separate worker: its `EndpointClient` takes one slot, observes the rate limits and reports the
server's status. Unlike a run, it does not wait for long. The client runs in an event loop in its own thread; the page's
thread does the database work and reads the events.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from judging.core.judges.client import Guard
from judging.core.judges.errors import Held, JudgeError
from judging.core.judges.rate_limiter import RateLimited, Reservation
from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request
from judging.core.metric_definition import JudgeModel
from judging.endpoints import limiter
from judging.endpoints.client import ClientPool, EndpointClient

COUNTDOWN_SECONDS = 0.5  # interval between events with the remaining waiting time

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """Why the call is waiting (a `Held` code), and for how many seconds, if known."""

    code: str
    seconds: float | None = None


Emit = Callable[[Any], None]
Work = Callable[[Guard, Emit], Awaitable[Result]]
"""Work done in the event loop: every request waits for the guard; `emit` sends an event to the page."""


class ManualGuard:
    """Implements core.judges.client.Guard for a manual call, which waits at most `max_wait` seconds in total.

    `even_if_down`: also send requests to a server marked as down, to find out whether it is up again.
    """

    def __init__(self, client: EndpointClient, emit: Emit, max_wait: float, *, even_if_down: bool) -> None:
        self.waited = 0.0
        self._client = client
        self._emit = emit
        self._max_wait = max_wait
        self._deadline = 0.0
        self._even_if_down = even_if_down
        self._reservation: Reservation | None = None

    async def before(self, request: Request) -> None:
        """Wait until the request may be sent. Raises Held if that would take too long."""
        started = time.monotonic()
        self._deadline = started + self._max_wait - self.waited
        try:
            await self._until_open()
            if not self._client.concurrency.in_flight:
                await self._acquire_slot()
            await self._acquire_rate(request)
        finally:
            self.waited += time.monotonic() - started

    async def _until_open(self) -> None:
        outage = self._client.breaker.outage
        if outage is not None and not self._even_if_down:
            raise Held("held_down", f"{outage.problem}: {outage.detail}".rstrip(": "))
        closed = self._client.concurrency.closed_for()
        if closed > self._left:
            raise Held("held_closed", f"{closed:.0f}")
        await self._sleep("held_closed", closed)

    async def _acquire_slot(self) -> None:
        concurrency = self._client.concurrency
        if self._client.breaker.outage is not None:
            concurrency.share = 1  # requests waiting for the server to come back hold all slots
        if not concurrency.free:
            self._emit(WaitingFor("held_slots"))
        if not await concurrency.try_acquire(self._left):
            raise Held("held_slots")

    async def _acquire_rate(self, request: Request) -> None:
        try:
            self._reservation, wait = await self._client.rate.try_acquire(request, self._left)
        except RateLimited as error:
            raise Held("held_pace", f"{error.seconds:.0f}") from None
        await self._sleep("held_pace", wait)

    @property
    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    async def _sleep(self, code: str, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self._emit(WaitingFor(code, left))
            await asyncio.sleep(min(COUNTDOWN_SECONDS, left))

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        if reply is not None or error is not None:
            self._client.record(reply, error, self._reservation)
            self._reservation = None

    def may_retry(self) -> bool:
        return self._client.retries.spend()


@dataclass(frozen=True, slots=True)
class _DatabaseWork:
    """Work for the page's thread, requested by a coroutine in the event loop."""

    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]

    def run(self) -> None:
        try:
            result, error = self.work(*self.arguments), None
        except Exception as raised:  # raised again where the result is awaited
            result, error = None, raised
        self.future.get_loop().call_soon_threadsafe(self._settle, result, error)

    def _settle(self, result: Any, error: Exception | None) -> None:
        if self.future.done():  # the waiter was cancelled
            return
        self.future.set_exception(error) if error else self.future.set_result(result)


class ManualCall(Generic[Result]):
    """A manual call: `with ManualCall(judge, work, max_wait=…) as call: for event in call.events(): …; call.result()`.

    Exiting the context ends the call.
    """

    def __init__(
        self, judge: JudgeModel, work: Work[Result], *, max_wait: float, even_if_down: bool = False
    ) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        owner = f"{limiter.MANUAL}{uuid.uuid4().hex}"
        in_page = self._in_page_thread
        self._pool = ClientPool(owner, reads=in_page, writes=in_page, manual=True)
        self._client = self._pool.client(judge)
        self._guard = ManualGuard(self._client, self._queue.put, max_wait, even_if_down=even_if_down)
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def waited(self) -> float:
        """Seconds spent waiting for a slot and the rate limit."""
        return self._guard.waited

    def __enter__(self) -> ManualCall[Result]:
        self._thread.start()
        self._future: Future[Result] = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        self._future.add_done_callback(lambda _: self._queue.put(None))
        return self

    async def _run(self) -> Result:
        await self._pool.refresh()
        keeping = asyncio.create_task(self._pool.keep_in_sync())
        try:
            return await self._work(self._guard, self._queue.put)
        finally:
            keeping.cancel()

    async def _in_page_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        waiting = _DatabaseWork(work, arguments, asyncio.get_running_loop().create_future())
        self._queue.put(waiting)
        return await waiting.future

    def __exit__(self, *_: object) -> None:
        try:
            self._future.cancel()
            asyncio.run_coroutine_threadsafe(_settled(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()
            self._pool.report_remaining()
        finally:
            limiter.release_shares(self._pool.clients, self._pool.owner)

    def events(self) -> Iterator[Any]:
        """Yield the events that the work emits and WaitingFor events, until the work has ended."""
        while (event := self._queue.get()) is not None:
            if isinstance(event, _DatabaseWork):
                event.run()
            else:
                yield event

    def result(self) -> Result:
        """The work's result; call after `events` has ended. Raises the work's exception."""
        return self._future.result(0)


async def _settled() -> None:
    """Let cancelled tasks close their connections before the loop is closed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(others, timeout=5) if others else None
