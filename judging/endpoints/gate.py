"""A worker's gate: decides which of its requests to an endpoint may be sent, and when.

A request passes when the server has not asked to wait, is not down, a call is free, and the rates allow one more. What
all workers share is exchanged through limiter.py.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from judging.core.judges.errors import LIMIT_CODES, JudgeError, is_answer
from judging.core.judges.limits import (
    COOLDOWN_SECONDS,
    RateLimits,
    Recent,
    Reservation,
    Spacing,
    TokenEstimator,
    Try,
    is_down,
    probe_delay,
    with_tries,
)
from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request
from judging.endpoints import limiter
from judging.endpoints.limiter import Allowance, News, Problem, Report

log = logging.getLogger("judging.run_worker")

RETRY_SECONDS = 1.0  # after the rates could not be asked for
# Before a run's calls use a refilled bucket, so that calls from pages come first.
JITTER_SECONDS = (0.01, 0.05)
DECAY = 0.9995  # of the remembered largest call, per call

RunInThread = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Lot:
    """What a free call is drawn for: each project has the same chance, and in it each run by its weight."""

    project: int = 0
    run: int = 0
    weight: float = 1.0


@dataclass(slots=True, eq=False)
class Ticket:
    """One request, over all its tries. `called_back`: the server asked it to come again, so it keeps its call."""

    number: int
    lot: Lot = Lot()
    tried: bool = False
    failed: bool = False  # its latest try was not answered
    in_flight: bool = False
    called_back: bool = False
    replies_seen: int = -1
    reservation: Reservation | None = None


@dataclass(slots=True, eq=False)
class Turn:
    """A ticket that waits at the gate. `first`: before those not called back."""

    ticket: Ticket
    first: bool
    start: asyncio.Future[None]


class Gate:
    """Shared by all models and runs of this worker that use the endpoint. `single`: for one call from a page."""

    def __init__(
        self,
        key: str,
        endpoint: int | None,
        maximum: int,
        limits: RateLimits,
        in_thread: RunInThread,
        notify: Callable[[], None] = lambda: None,
        *,
        single: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key, self.endpoint, self.maximum, self.limits = key, endpoint, maximum, limits
        self.single = single
        self.tests = False  # also calls a server that is down
        self.share = self.in_flight = 0
        self.replies = 0
        self.problem = Problem()
        self.owed = 0.0  # seconds by which tokens were estimated wrong
        self._in_thread, self._notify, self._clock = in_thread, notify, clock
        self._random = Random()
        self._estimator, self._largest = TokenEstimator(), 0.0
        self._called_back: deque[Turn] = deque()
        self._waiting: dict[Lot, deque[Turn]] = {}
        self._news = News()
        self._recent: Recent = {}
        self._halved_at = self._closed_until = self._paced_until = float("-inf")
        self._down_at: float | None = None
        self._probes, self._probe_at = 0, 0.0
        self._probe: Ticket | None = None
        self._taking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._claims_all = False  # in its last report

    # --- what passes ---

    async def enter(self, ticket: Ticket, request: Request) -> None:
        """Return when the request may be sent. Call `leave` when it has ended."""
        if ticket.replies_seen < 0:
            ticket.replies_seen = self.replies
        turn = Turn(ticket, ticket.called_back, asyncio.get_running_loop().create_future())
        self._release_slot(ticket)
        ticket.reservation = self._estimated(request)
        self._queue_of(turn).append(turn)
        self._admit()
        if not turn.start.done() and not self._claims_all:
            self._notify()
        try:
            await turn.start
        except asyncio.CancelledError:
            self._remove(turn)
            self.release(ticket)
            raise

    def leave(self, ticket: Ticket, reply: Reply | None, error: JudgeError | None) -> None:
        """Record how a try ended; neither reply nor error if it was cancelled."""
        if reply is not None or error is not None:
            self._record(ticket, reply, error)
        # Told to come again, it keeps its call meanwhile: otherwise every other request would be sent and refused too.
        ticket.called_back = error is not None and error.code == "rate_limited"
        if ticket.called_back:
            self._admit()
        else:
            self.release(ticket)

    def release(self, ticket: Ticket) -> None:
        """Let others have the ticket's call, if it still has one."""
        if ticket.in_flight:
            self._release_slot(ticket)
            self._admit()

    def counts(self, ticket: Ticket, error: JudgeError) -> bool:
        """Whether a failed try is one of the request's tries: "come again" is not while others are answered."""
        seen, ticket.replies_seen = ticket.replies_seen, self.replies
        return error.code != "rate_limited" or seen == self.replies

    def _release_slot(self, ticket: Ticket) -> None:
        self.in_flight -= ticket.in_flight
        ticket.in_flight = ticket.called_back = False
        if self._probe is ticket:
            self._probe = None

    def _admit(self) -> None:
        """Start what may start now. Where rates are limited, the shared buckets decide last."""
        if self._taking is not None:
            return
        turns = self._next_turns()
        if turns and self.limits:
            self._taking = asyncio.get_running_loop().create_task(self._take(turns))
            return
        for turn in turns:
            self._start(turn)
        self._set_timer()

    def _next_turns(self) -> list[Turn]:
        now = self._clock()
        if now < max(self._closed_until, self._paced_until):
            return []
        free = self._usable - self.in_flight
        if self._holds_back:
            free = 0 if self._probe or now < self._probe_at else min(free, 1)
        return [self._draw() for _ in range(min(free, self.waiting))]

    def _draw(self) -> Turn:
        """The next turn: of those called back, or else of a run drawn by lot. A probe has not failed, if possible."""
        unfailed = self._unfailed() if self.is_down else None
        if unfailed:
            self._remove(unfailed)
            return unfailed
        if self._called_back:
            return self._called_back.popleft()
        project = self._random.choice([*{lot.project: None for lot in self._waiting}])
        lots = [lot for lot in self._waiting if lot.project == project]
        (lot,) = self._random.choices(lots, [lot.weight for lot in lots])
        turn = self._waiting[lot].popleft()
        self._drop_empty(lot)
        return turn

    def _unfailed(self) -> Turn | None:
        return next((turn for turn in self._turns() if not turn.ticket.failed), None)

    def _turns(self) -> Iterator[Turn]:
        yield from self._called_back
        for turns in self._waiting.values():
            yield from turns

    def _queue_of(self, turn: Turn) -> deque[Turn]:
        return self._called_back if turn.first else self._waiting.setdefault(turn.ticket.lot, deque())

    def _remove(self, turn: Turn) -> None:
        queue = self._queue_of(turn)
        if turn in queue:
            queue.remove(turn)
        self._drop_empty(turn.ticket.lot)

    def _drop_empty(self, lot: Lot) -> None:
        if lot in self._waiting and not self._waiting[lot]:
            del self._waiting[lot]

    def _start(self, turn: Turn) -> None:
        if turn.start.done():  # cancelled meanwhile
            return
        turn.ticket.in_flight = True
        self.in_flight += 1
        self._probe = turn.ticket if self.is_down else None
        turn.start.set_result(None)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        probe_at = self._probe_at if self._holds_back else 0.0
        wait = max(self._closed_until, self._paced_until, probe_at) - self._clock()
        if self.waiting and wait > 0:
            self._timer = asyncio.get_running_loop().call_later(wait + 0.001, self._admit)

    # --- requests and tokens a minute ---

    async def _take(self, turns: list[Turn]) -> None:
        """Start as many of these turns as the shared buckets allow."""
        spacings = [self._spacing(turn.ticket.reservation) for turn in turns]
        owed, self.owed = self.owed, 0.0
        count, wait = 0, RETRY_SECONDS
        try:
            count, wait = await self._in_thread(limiter.take, self.key, spacings, owed)
        except Exception as error:  # no request may wait for ever
            log.warning("No call could be taken from the rate limit; retrying: %r", error)
            self.owed += owed
        finally:
            self._taking = None
            for turn in reversed(turns[count:]):
                if not turn.start.done():
                    self._queue_of(turn).appendleft(turn)
        for turn, (_, tokens) in zip(turns[:count], spacings, strict=False):
            self.owed -= tokens if turn.start.done() else 0.0
            self._start(turn)
        self._paced_until = (
            self._clock() + wait + (0.0 if self.single else self._random.uniform(*JITTER_SECONDS))
        )
        self._admit()

    def _estimated(self, request: Request) -> Reservation | None:
        if not self.limits:
            return None
        reservation = self._estimator.estimate(request)
        self._largest = max(reservation.tokens, self._largest * DECAY)
        return reservation

    def _spacing(self, reservation: Reservation | None) -> Spacing:
        return self.limits.spacing(reservation.tokens if reservation else 0.0, self._largest)

    def _settle(self, reservation: Reservation, reply: Reply | None) -> None:
        """Correct an estimate to the actual cost: 0 without a reply, the estimate if the reply has no usage."""
        used = 0.0
        if reply is not None:
            read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
            self._estimator.learn(reservation.size, read, written)
            used = reservation.tokens if read is None or written is None else float(read + written)
        for sign, tokens in ((1, used), (-1, reservation.tokens)):
            self.owed += sign * self.limits.spacing(tokens, self._largest)[1]

    # --- what happened ---

    def _record(self, ticket: Ticket, reply: Reply | None, error: JudgeError | None) -> None:
        content = reply or (error.reply if error else None)
        answered = error is None or is_answer(error)
        if content:
            self.replies += 1
            self._news.replies += 1
        if error and error.code in LIMIT_CODES:
            self._overloaded()
        if error and not answered:
            self.problem = self._news.problem = Problem(error.code, error.message, error.status)
        self._close_for((error.retry_after if error else None) or (content.closed_for if content else None))
        if ticket.reservation is not None:
            self._settle(ticket.reservation, content)
        if self._probe is ticket and not answered:
            self._probes += 1
            self._probe_at = self._clock() + probe_delay(self._probes)
        self._news.tries.append(Try(ticket.number, answered, first=not ticket.tried))
        ticket.tried, ticket.failed = True, not answered
        self._set_recent(with_tries(self._recent, self._news.tries[-1:]))

    def _overloaded(self) -> None:
        """Halve this worker's calls at once, before the workers agree on new parts."""
        now = self._clock()
        if now - self._halved_at >= COOLDOWN_SECONDS:
            self._halved_at = now
            self.share = max(1, self.share // 2)
            self._news.overloaded = True
            self._notify()

    def _close_for(self, seconds: float | None) -> None:
        """Send nothing for `seconds`, because the server asked for it."""
        if seconds:
            self._closed_until = max(self._closed_until, self._clock() + seconds)
            self._news.closed_for = max(self._news.closed_for, seconds)
            self._notify()

    def _set_recent(self, recent: Recent) -> None:
        self._recent, was_down = recent, self.is_down
        if is_down(recent) == was_down:
            return
        self._down_at = None if was_down else self._clock()
        self._probes, self._probe_at = 0, self._clock() + probe_delay(0)
        self._notify()

    # --- what it shows ---

    @property
    def waiting(self) -> int:
        return len(self._called_back) + sum(len(turns) for turns in self._waiting.values())

    @property
    def is_down(self) -> bool:
        return self._down_at is not None

    @property
    def _holds_back(self) -> bool:
        """Whether only probes pass."""
        return self.is_down and not self.tests

    @property
    def _usable(self) -> int:
        """How many calls at a time this worker may make; a test may always make one."""
        return max(self.share, int(self.tests))

    def holds_back(self, run: int, seconds: float) -> bool:
        """Whether requests of the run have waited `seconds` for a server that is down, as this worker sees it."""
        if self._down_at is None or self._clock() - self._down_at < seconds:
            return False
        return any(turn.ticket.lot.run == run for turn in self._turns())

    def obstacle(self) -> tuple[str, float | None] | None:
        """Why requests have to wait (a `Held` code), and for how many seconds, if known."""
        now = self._clock()
        if self._holds_back:
            return "held_down", None
        if now < self._closed_until:
            return "held_closed", self._closed_until - now
        if self.in_flight >= self._usable:
            return "held_slots", None
        return ("held_pace", self._paced_until - now) if now < self._paced_until else None

    # --- what the workers exchange ---

    @property
    def is_absent(self) -> bool:
        """Whether it needs no call and has nothing to report."""
        return not (self.single or self._busy or self.share or self._news != News())

    @property
    def _busy(self) -> bool:
        return bool(self.waiting or self.in_flight or self._taking)

    def report(self) -> Report:
        """Return what happened since the last report, and forget it."""
        news, self._news = self._news, News()
        self._claims_all = bool(self.waiting or self._taking) and not self.single
        claim = 1 if self.single else None if self._claims_all else self.in_flight
        ended = not (self._busy or self.single)
        return Report(
            self.key,
            self.endpoint,
            self.maximum,
            self.in_flight,
            claim,
            news,
            single=self.single,
            ended=ended,
        )

    def restore_report(self, report: Report) -> None:
        """Remember what could not be reported."""
        earlier, later = report.news, self._news
        self._news = News(
            earlier.replies + later.replies,
            earlier.overloaded or later.overloaded,
            max(earlier.closed_for, later.closed_for),
            earlier.tries + later.tries,
            later.problem or earlier.problem,
        )

    def apply(self, allowance: Allowance) -> None:
        """Go on with what the workers share. What happened here meanwhile takes precedence."""
        self.share, self.maximum, self.limits = allowance.share, allowance.maximum, allowance.limits
        status = allowance.status
        if status.closed_for:
            self._closed_until = max(self._closed_until, self._clock() + status.closed_for)
        self.problem = self._news.problem or status.problem
        self._set_recent(with_tries(status.recent, self._news.tries))
        self._admit()
