"""One worker's client for one endpoint: how many requests at once, how fast, whether it is up, how many retries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from judging.core.judges.circuit_breaker import CircuitBreaker, EndpointStatus
from judging.core.judges.concurrency_limiter import ConcurrencyLimiter
from judging.core.judges.errors import LIMIT_CODES, JudgeError
from judging.core.judges.rate_limiter import RateLimiter, Reservation
from judging.core.judges.replies import Reply
from judging.core.judges.retry import RetryBudget
from judging.core.judges.settings import Request
from judging.endpoints import limiter

RunInThread = Callable[..., Awaitable[Any]]


class EndpointClient:
    """Shared by all models of all runs of this worker that use the endpoint. `manual`: for one call from a page."""

    def __init__(
        self,
        key: str,
        endpoint: int | None,
        max_concurrency: int,
        in_thread: RunInThread,
        *,
        manual: bool = False,
    ) -> None:
        self.key = key
        self.endpoint = endpoint
        self.max_concurrency = max_concurrency
        self.manual = manual
        self.concurrency = ConcurrencyLimiter(max_concurrency)
        self.rate = RateLimiter(partial(in_thread, limiter.reserve, key))
        self.breaker = CircuitBreaker()
        self.retries = RetryBudget()
        self._expected = max_concurrency  # a worker that starts asks for all it may have

    async def admit(self, request: Request, max_outage: float) -> Reservation | None:
        """Returns when a try of a request that holds a slot may be sent.

        Raises the JudgeError of an outage once it has lasted `max_outage` seconds.
        """
        if self.breaker.outage is not None:
            await self.breaker.wait(max_outage)
        return await self.rate.acquire(request)

    def record(self, reply: Reply | None, error: JudgeError | None, reservation: Reservation | None) -> None:
        """Learns from how a try ended."""
        answered = reply or (error.reply if error else None)
        if error is None or answered:
            self.concurrency.succeeded()
            self.retries.earn()
            self.breaker.succeeded()
        else:
            if error.code in LIMIT_CODES:
                self.concurrency.overloaded(error.retry_after)
            self.breaker.failed(error)
        if reservation is not None:
            self.rate.settle(reservation, answered)

    def report(self) -> limiter.WorkerReport:
        """What the other workers have to know; it counts as reported."""
        events, failures, self.breaker.unreported = self.concurrency.take_events(), self.breaker.unreported, 0
        in_flight = self.concurrency.in_flight
        wanted = 1 if self.manual else max(in_flight + self.concurrency.waiting, self._expected)
        self._expected = 0
        return limiter.WorkerReport(
            self.key,
            self.endpoint,
            self.max_concurrency,
            wanted,
            in_flight,
            events,
            failures,
            *self.breaker.problem,
            capped=self.manual,
        )

    @property
    def urgent(self) -> bool:
        """Whether to report at once."""
        events = self.concurrency.events
        if self.manual and self.concurrency.waiting:
            return True
        changed = self.breaker.outage is not None and (events.successes or self.breaker.unreported)
        return bool(events.overloads or events.retry_after or changed)

    def apply(self, allocation: limiter.Allocation) -> None:
        self.max_concurrency = allocation.max_concurrency
        self.rate.limits = allocation.limits
        self.concurrency.share = allocation.share

    def update(self, status: EndpointStatus) -> None:
        """Takes over what other workers found out. A success here that they do not know yet counts for more."""
        if status.closed_for:
            self.concurrency.close_for(status.closed_for)
        if status.down_for is None or not self.concurrency.events.successes:
            self.breaker.update(status)
