"""Single calls made from a page, under the same limits as runs.

A manual call acts as a separate worker that needs one call: it passes the endpoint's gate and reports what happened.
Unlike a run, it does not wait for long. The gate is in an event loop in its own thread; the page's thread does the
database work and reads the events.
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
from random import Random
from typing import Any, Generic, TypeVar

from evalsite.rounding import fixed
from judging.core.judges.client import Guard
from judging.core.judges.errors import Held, JudgeError
from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request
from judging.core.metric_definition import JudgeModel
from judging.endpoints import limiter
from judging.endpoints.gate import Gate, Ticket
from judging.endpoints.gate_pool import GatePool

COUNTDOWN_SECONDS = 0.5  # interval between events with the remaining waiting time
LOOK_SECONDS = 0.02  # until the first of them
DATABASE_SECONDS = 10.0  # for the answer of the database, beyond the longest wait

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """Why the call is waiting (a `Held` code), and for how many seconds, if known."""

    code: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """The call goes on. Passing it on shows a page whether anybody is still there."""


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A request failed, for the `number`th time; it may be sent again."""

    number: int
    code: str
    message: str


Emit = Callable[[Any], None]
Work = Callable[[Guard, Emit], Awaitable[Result]]
"""Work done in the event loop: every request waits for the guard; `emit` sends an event to the page."""


class ManualGuard:
    """Implements core.judges.client.Guard for a manual call, which waits at most `max_wait` seconds in total."""

    def __init__(self, gate: Gate, emit: Emit, max_wait: float) -> None:
        self.waited = 0.0
        self.failed_tries: list[FailedTry] = []
        self.deadline: asyncio.Timeout | None = None
        """The end of the call, which does not come closer while the call waits for its turn."""
        self._gate = gate
        self._emit = emit
        self._max_wait = max_wait
        self._ticket = Ticket(Random().getrandbits(31))

    async def before(self, request: Request) -> None:
        """Wait until the request may be sent. Raises Held if that would take too long."""
        started = time.monotonic()
        ends = self.deadline.when() if self.deadline else None
        if self.deadline and ends is not None:
            self.deadline.reschedule(None)
        entering = asyncio.create_task(self._gate.enter(self._ticket, request))
        try:
            await self._passed(entering, started + self._max_wait - self.waited)
        finally:
            entering.cancel()
            waited = time.monotonic() - started
            self.waited += waited
            if self.deadline and ends is not None:
                self.deadline.reschedule(ends + waited)

    async def _passed(self, entering: asyncio.Task[None], ends: float) -> None:
        """Wait for the gate, telling the page what for. Raises Held if that would last beyond `ends`."""
        pause = LOOK_SECONDS
        while not (await asyncio.wait({entering}, timeout=pause))[0]:
            left = ends - time.monotonic()
            obstacle = self._gate.obstacle() or (("held_slots", None) if left < -DATABASE_SECONDS else None)
            if obstacle is None:  # being decided
                continue
            code, seconds = obstacle
            if code == "held_down" or left < (seconds or 0.0) or left <= 0:
                raise self._held(code, seconds)
            self._emit(WaitingFor(code, seconds))
            pause = min(COUNTDOWN_SECONDS, seconds or COUNTDOWN_SECONDS)
        await entering

    def _held(self, code: str, seconds: float | None) -> Held:
        if code == "held_down":
            problem = self._gate.problem
            return Held(code, f"{problem.code}: {problem.detail}".rstrip(": "))
        return Held(code, "" if seconds is None else fixed(seconds))

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        self._gate.leave(self._ticket, reply, error)
        if error is not None:
            self.failed_tries.append(FailedTry(len(self.failed_tries) + 1, error.code, error.message))
            self._emit(self.failed_tries[-1])

    def counts(self, error: JudgeError) -> bool:
        return True


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
    """A manual call: `with ManualCall(judge, work, …) as call: for event in call.events(): …; call.result()`.

    `max_wait`: seconds for its turn behind runs; `total`: seconds for all the rest, retries included, after which
    `result` raises TimeoutError. `even_if_down`: also send requests to a server that is down, to find out whether it is
    up again. Exiting the context ends the call.
    """

    def __init__(
        self,
        judge: JudgeModel,
        work: Work[Result],
        *,
        max_wait: float,
        total: float,
        even_if_down: bool = False,
    ) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        owner = f"{limiter.MANUAL}{uuid.uuid4().hex}"
        self._pool = GatePool(owner, self._in_page_thread, single=True)
        gate = self._pool.connection(judge).gate
        gate.tests = even_if_down
        self._guard = ManualGuard(gate, self._queue.put, max_wait)
        self._work, self._total = work, total
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def waited(self) -> float:
        """Seconds spent waiting for a slot and the rate limit."""
        return self._guard.waited

    @property
    def failed_tries(self) -> tuple[FailedTry, ...]:
        return tuple(self._guard.failed_tries)

    def __enter__(self) -> ManualCall[Result]:
        self._thread.start()
        self._future: Future[Result] = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        self._future.add_done_callback(lambda _: self._queue.put(None))
        return self

    async def _run(self) -> Result:
        await self._pool.exchange()
        keeping = asyncio.create_task(self._pool.keep_in_sync())
        try:
            async with asyncio.timeout(self._total) as self._guard.deadline:
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
        finally:
            self._pool.end()

    def events(self) -> Iterator[Any]:
        """Yield the events that the work emits, WaitingFor and (with every heartbeat) StillWaiting events, until the
        work has ended."""
        while (event := self._queue.get()) is not None:
            if isinstance(event, _DatabaseWork):
                event.run()
                yield StillWaiting()
            else:
                yield event

    def result(self) -> Result:
        """The work's result; call after `events` has ended. Raises the work's exception."""
        return self._future.result(0)


async def _settled() -> None:
    """Cancel what is left and let it close its connections before the loop is closed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others, timeout=5) if others else None
