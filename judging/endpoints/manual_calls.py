"""Calls that somebody makes by hand, from a page: they take a slot of the endpoint and keep its pace like those of
runs, and what they find out about the server counts for runs too.

The page's thread uses the database and tells its reader what is waited for; the event loop, in a thread of its own,
only says that it wants a turn, and what came of it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from judging.core.judges import circuit_breaker
from judging.core.judges.concurrency_limiter import LimiterEvents
from judging.core.judges.errors import LIMIT_CODES, Held, JudgeError
from judging.core.judges.rate_limiter import RateLimits, TokenEstimator
from judging.core.judges.replies import Reply
from judging.core.judges.retry import Guard
from judging.core.judges.settings import Request
from judging.endpoints import limiter

STEP_SECONDS = 0.2  # between two looks whether a slot has become free
RENEW_SECONDS = 5.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trial is kept waiting: by what (a code of `Held`), and for how many seconds more, where that is known."""

    code: str
    seconds: float | None = None


class Turn:
    """One trial's place among the calls to an endpoint. Its methods use the database.

    `key` and `ceiling` as runs have them (client_pool). `anyway`: also sent to a server that is down, since
    this is what finds out whether it is back.
    """

    def __init__(
        self, key: str, endpoint: int | None, ceiling: int, *, patience: float, anyway: bool = False
    ) -> None:
        self.key, self.endpoint, self.ceiling = key, endpoint, ceiling
        self.patience, self.anyway = patience, anyway
        self.owner = f"{limiter.TRIAL}{uuid.uuid4().hex}"
        self.waited = 0.0
        self._limits: RateLimits | None = None  # None: it has no slot yet
        self._renewed = 0.0
        self._size, self._tokens = 0, 0.0
        limiter.ensure_row(key)

    def until_granted(self, request: Request) -> Iterator[Waiting]:
        """What is waited for, again and again, until `request` may be sent. Raises Held where that takes too long."""
        began = time.monotonic()
        for waits in self._waits(request):
            yield waits
            time.sleep(min(STEP_SECONDS, waits.seconds or STEP_SECONDS))
            self.waited += time.monotonic() - began
            began = time.monotonic()

    def _waits(self, request: Request) -> Iterator[Waiting]:
        down = yield from self._until_open()
        while self._limits is None and not self._take_slot(down):
            if self.waited >= self.patience:
                raise Held("held_slots")
            yield Waiting("held_slots")
        yield from self._until_in_pace(request)

    def _until_open(self) -> Generator[Waiting, None, bool]:
        """Returns whether it is down all the same."""
        while True:
            seen = limiter.read_status([self.key])[self.key]
            if seen.down_for is not None and not self.anyway:
                raise Held("held_down", f"{seen.problem}: {seen.detail}".rstrip(": "))
            if not seen.closed_for:
                return seen.down_for is not None
            if self.waited + seen.closed_for > self.patience:
                raise Held("held_closed", f"{seen.closed_for:.0f}")
            yield Waiting("held_closed", seen.closed_for)

    def _take_slot(self, down: bool) -> bool:
        """What holds the slots of a server that is down waits for it to come back: a test need not wait for them."""
        heard = self._agree(wanted=1, in_flight=0)
        self._limits = heard.limits if heard.share or down else None
        return self._limits is not None

    def _until_in_pace(self, request: Request) -> Iterator[Waiting]:
        if not self._limits:
            return
        self._size = len(msgspec.json.encode(request["messages"]))
        most = request.get("max_tokens") or request.get("max_completion_tokens")
        self._tokens = TokenEstimator().of(self._size, most if isinstance(most, int) else None)
        promised, seconds = limiter.reserve_within(
            self.key, self._spacing(self._tokens), max(0.0, self.patience - self.waited)
        )
        if not promised:
            self._tokens = 0.0
            raise Held("held_pace", f"{seconds:.0f}")
        starts = time.monotonic() + seconds
        while (left := starts - time.monotonic()) > 0:
            yield Waiting("held_pace", left)

    def _spacing(self, tokens: float) -> tuple[float, float]:
        assert self._limits is not None
        return self._limits.request_spacing, self._limits.token_spacing(tokens, tokens)

    def ended(self, reply: Reply | None, error: JudgeError | None) -> None:
        """A call came to its end; both None if it was given up."""
        said = reply or (error.reply if error else None)
        answered = said is not None
        overloaded = error is not None and error.code in LIMIT_CODES
        news = LimiterEvents(int(answered), int(overloaded), (error and error.retry_after) or 0.0)
        failed = error is not None and error.code in circuit_breaker.DOWN_CODES and error.retry_after is None
        problem = (error.code, error.message) if failed and error else ("", "")
        self._agree(1, 1, news, int(failed and not answered), *problem)
        if self._tokens and (reply or error):
            self._settle(said)

    def _settle(self, reply: Reply | None) -> None:
        """What the call really cost: a refused one nothing, one that does not say what was guessed."""
        guessed, self._tokens = self._tokens, 0.0
        used = 0.0
        if reply is not None:
            read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
            used = guessed if read is None or written is None else float(read + written)
        limiter.reserve(self.key, [], self._spacing(used)[1] - self._spacing(guessed)[1])

    def renew(self) -> None:
        """Keep the slot for a call that takes long."""
        if self._limits is not None and time.monotonic() - self._renewed > RENEW_SECONDS:
            self._agree(1, 1)

    def leave(self) -> None:
        limiter.release_shares([self.key], self.owner)

    def _agree(
        self,
        wanted: int,
        in_flight: int,
        news: LimiterEvents | None = None,
        failures: int = 0,
        problem: str = "",
        detail: str = "",
    ) -> limiter.Allocation:
        self._renewed = time.monotonic()
        told = limiter.WorkerReport(
            self.key,
            self.endpoint,
            self.ceiling,
            wanted,
            in_flight,
            news or LimiterEvents(),
            failures,
            problem,
            detail,
            modest=True,
        )
        return limiter.allocate([told], self.owner)[self.key]


Say = Callable[[Any], None]
Work = Callable[[Guard, Say], Awaitable[Result]]
"""What a trial does, in an event loop: each call waits for the watch; `say` tells the page's reader something."""


class Trial(Generic[Result]):
    """`with Trial(turn, work) as trial: for said in trial.said(): …; trial.result()`. Leaving it ends the call."""

    def __init__(self, turn: Turn, work: Work[Result]) -> None:
        self.turn = turn
        self._work = work
        self._heard: queue.SimpleQueue[_Said | _Wants | _Ended | None] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Trial[Result]:
        self._thread.start()
        self._future: Future[Result] = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        self._future.add_done_callback(lambda _: self._heard.put(None))
        return self

    async def _run(self) -> Result:
        return await self._work(_Watch(self._heard.put), lambda said: self._heard.put(_Said(said)))

    def __exit__(self, *_: object) -> None:
        try:
            self._future.cancel()
            asyncio.run_coroutine_threadsafe(_settled(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()
        finally:
            self.turn.leave()

    def said(self) -> Iterator[Any]:
        """What the work says, and what it is kept waiting by (Waits), until it has ended."""
        while True:
            try:
                heard = self._heard.get(timeout=RENEW_SECONDS)
            except queue.Empty:
                self.turn.renew()
                continue
            if heard is None:
                return
            if isinstance(heard, _Said):
                self.turn.renew()
                yield heard.what
            elif isinstance(heard, _Ended):
                self.turn.ended(heard.reply, heard.error)
            else:
                yield from self._grant(heard)

    def _grant(self, wants: _Wants) -> Iterator[Waiting]:
        try:
            yield from self.turn.until_granted(wants.request)
        except Held as error:
            self._loop.call_soon_threadsafe(wants.refuse, error)
        else:
            self._loop.call_soon_threadsafe(wants.grant)

    def result(self) -> Result:
        """After `said` has ended; raises what the work raised."""
        return self._future.result(0)


async def _settled() -> None:
    """Lets what was cancelled close its connection before the loop is closed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(others, timeout=5) if others else None


@dataclass(frozen=True, slots=True)
class _Said:
    what: Any


@dataclass(frozen=True, slots=True)
class _Wants:
    """A call that waits for its turn. To be answered in the event loop; whoever waited may have gone."""

    request: Request
    turn: asyncio.Future[None]

    def grant(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)

    def refuse(self, error: Held) -> None:
        if not self.turn.done():
            self.turn.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Ended:
    reply: Reply | None
    error: JudgeError | None


class _Watch:
    """core.judges.patience.Watch, which leaves everything to the page's thread."""

    def __init__(self, tell: Callable[[_Wants | _Ended], None]) -> None:
        self._tell = tell

    async def before(self, request: Request) -> None:
        wants = _Wants(request, asyncio.get_running_loop().create_future())
        self._tell(wants)
        await wants.turn

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        self._tell(_Ended(reply, error))

    def may_retry(self) -> bool:
        return True
