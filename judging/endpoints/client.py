"""A worker's way to one endpoint: its slots, its pace, and what it knows of whether anybody answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from judging.core.judges import circuit_breaker
from judging.core.judges.circuit_breaker import EndpointStatus
from judging.core.judges.concurrency_limiter import ConcurrencyLimiter
from judging.core.judges.errors import ERROR_CODES, LIMIT_CODES, JudgeError
from judging.core.judges.rate_limiter import RateLimiter, TokenEstimator
from judging.core.judges.replies import Reply
from judging.endpoints import limiter

LOOK_SECONDS = 0.25
AGREE_SECONDS = 1.0

RunInThread = Callable[..., Awaitable[Any]]


class EndpointClient:
    """Shared by all judge models of all runs that this worker asks at one address."""

    def __init__(self, key: str, endpoint: int | None, ceiling: int, in_thread: RunInThread) -> None:
        self.key = key
        self.endpoint = endpoint
        self.ceiling = ceiling
        self.slots = ConcurrencyLimiter(ceiling)
        self.guess = TokenEstimator()
        self.retries = circuit_breaker.RetryBudget()
        self.pace = RateLimiter(self._reserve)
        self.down: EndpointStatus | None = None
        self.failures = 0  # that the other workers have not heard of
        self.in_a_row = 0
        self.tries = 0
        self.expected = ceiling  # a worker that begins says that it wants all it may have
        self.problem = ("", "")
        self._stuck: deque[asyncio.Future[None]] = deque()
        self._in_thread = in_thread

    async def _reserve(self, tokens: list[float], owed: float) -> list[float]:
        spacings = [self.pace.spacing(one) for one in tokens]
        found: list[float] = await self._in_thread(limiter.reserve, self.key, spacings, owed)
        return found

    async def until_it_answers(self, patience: float) -> None:
        """Returns when the endpoint is not known to be down, or when this request is the one that tries.

        Raises the JudgeError that it is down with, once it has been so for `patience` seconds.
        """
        while self.down is not None:
            if (self.down.down_for or 0.0) >= patience:
                raise ERROR_CODES[self.down.problem](self.down.problem, self.down.detail)
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._stuck.append(turn)
            left = patience - (self.down.down_for or 0.0)
            try:
                await asyncio.wait_for(turn, None if left == float("inf") else left + LOOK_SECONDS)
            except TimeoutError:
                continue
            return

    def ended(self, reply: Reply | None, error: JudgeError | None) -> None:
        """A try came to its end."""
        if error is None or error.reply is not None:
            self.slots.succeeded()
            self.retries.earn()
            self.failures = self.in_a_row = 0
            self._let_all_go()
        elif error.code in LIMIT_CODES:
            self.slots.overloaded(error.retry_after)
        if error is not None and error.code in circuit_breaker.DOWN_CODES and error.retry_after is None:
            self.failures += 1
            self.in_a_row += 1
            self.problem = (error.code, error.message)
            if self.in_a_row >= circuit_breaker.MAX_FAILURES and self.down is None:
                self.down = EndpointStatus(0.0, 0.0, circuit_breaker.probe_delay(0), *self.problem)

    def told(self) -> limiter.WorkerReport:
        """What the other workers shall know; asked for just before they are told."""
        news, failures, self.failures = self.slots.take_news(), self.failures, 0
        in_flight = self.slots.in_flight
        wanted, self.expected = max(in_flight + self.slots.waiting, self.expected), 0
        return limiter.WorkerReport(
            self.key, self.endpoint, self.ceiling, wanted, in_flight, news, failures, *self.problem
        )

    @property
    def urgent(self) -> bool:
        """Whether the others should hear at once."""
        news = self.slots.news
        return bool(news.overloads or news.retry_after) or (
            self.down is not None and bool(news.successes or self.failures)
        )

    def agreed(self, heard: limiter.Allocation) -> None:
        self.ceiling = heard.ceiling
        self.pace.limits = heard.limits
        self.slots.share = heard.share

    def seen(self, seen: EndpointStatus) -> None:
        """What the others closed or opened. A success here that they have not heard of yet counts for more."""
        if seen.closed_for:
            self.slots.close_for(seen.closed_for)
        if seen.down_for is None:
            if not self.failures:  # else the others have yet to hear that it is down
                self._let_all_go()
        elif not self.slots.news.successes:
            self.down = seen

    @property
    def wants_try(self) -> bool:
        """Whether it is time to find out if it is back, and somebody waits to be asked with."""
        return self.down is not None and self.down.try_in <= 0 and any(not one.done() for one in self._stuck)

    def let_one_try(self) -> None:
        self.tries += 1
        while self._stuck:
            turn = self._stuck.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _let_all_go(self) -> None:
        self.down, self.tries, self.in_a_row = None, 0, 0
        while self._stuck:
            turn = self._stuck.popleft()
            if not turn.done():
                turn.set_result(None)
