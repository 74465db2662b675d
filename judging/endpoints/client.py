"""One worker's endpoint clients, synchronized with those of other workers.

A client tracks the endpoint's concurrency and rate limits, its availability and its retry budget.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import DatabaseError

from evalsite.secrets import Undecryptable
from evalsite.tasks.workers import Backoff
from judging.core.judges.circuit_breaker import REFRESH_SECONDS, CircuitBreaker, EndpointStatus
from judging.core.judges.client import RetryBudget
from judging.core.judges.concurrency_limiter import ConcurrencyLimiter
from judging.core.judges.errors import LIMIT_CODES, JudgeError
from judging.core.judges.rate_limiter import RateLimiter, Reservation
from judging.core.judges.reply import Reply
from judging.core.judges.settings import JudgeSettings
from judging.core.metric_definition import JudgeModel
from judging.core.results import Failure
from judging.endpoints import limiter
from judging.endpoints.models import Endpoint
from judging.endpoints.settings import default_concurrency, judge_settings, unusable

log = logging.getLogger("judging.run_worker")

ALLOCATE_SECONDS = 1.0

RunInThread = Callable[..., Awaitable[Any]]


class EndpointClient:
    """Shared by all models and runs of this worker that use the endpoint. `manual`: for a single call from a page."""

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
        self._expected = max_concurrency  # a starting worker requests the maximum

    def record(self, reply: Reply | None, error: JudgeError | None, reservation: Reservation | None) -> None:
        """Update limits, retry budget and circuit breaker with the result of an attempt."""
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
        """Return the changes since the last report to other workers, and reset them."""
        events, failures, self.breaker.unreported = self.concurrency.take_events(), self.breaker.unreported, 0
        in_flight = self.concurrency.in_flight
        needed = 1 if self.manual else max(in_flight + self.concurrency.waiting, self._expected)
        self._expected = 0
        return limiter.WorkerReport(
            self.key,
            self.endpoint,
            self.max_concurrency,
            needed,
            in_flight,
            events,
            failures,
            *self.breaker.problem,
            capped=self.manual,
        )

    @property
    def urgent(self) -> bool:
        """Whether to report immediately."""
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
        """Apply the status reported by other workers. An unreported success of this worker takes precedence."""
        if status.closed_for:
            self.concurrency.close_for(status.closed_for)
        if status.down_for is None or not self.concurrency.events.successes:
            self.breaker.update(status)


@dataclass(slots=True)
class ModelConnection:
    """A judge or candidate model of one run: its own settings and its endpoint's shared client."""

    settings: JudgeSettings
    client: EndpointClient
    endpoint: int | None = None
    failure: Failure | None = None
    answered: bool = False
    name: str = ""
    setting_failures: int = 0  # in a row


class ClientPool:
    """The endpoint clients of one worker. `reads` and `writes` run database work outside the event loop. `manual`: for
    a single call from a page."""

    def __init__(self, owner: str, *, reads: RunInThread, writes: RunInThread, manual: bool = False) -> None:
        self.owner = owner
        self.manual = manual
        self.clients: dict[str, EndpointClient] = {}
        self._reads = reads
        self._writes = writes
        self._allocated_at = time.monotonic()

    def connection(self, judge: JudgeModel) -> ModelConnection:
        """Return a connection for the model. Reads the database."""
        row = Endpoint.objects.filter(pk=judge.endpoint).first() if judge.endpoint else None
        client, name = self.client(judge), row.name if row else judge.url
        try:
            settings = judge_settings(judge, row)
        except Undecryptable:
            settings = JudgeSettings(url=judge.url, model=judge.model)
            return ModelConnection(settings, client, judge.endpoint, Failure("key_unreadable"), name=name)
        return ModelConnection(settings, client, row.pk if row else None, unusable(judge, row), name=name)

    def client(self, judge: JudgeModel) -> EndpointClient:
        """Return the client of the model's endpoint, creating it if needed. Reads and writes the database."""
        key = limiter.endpoint_key(judge)
        if key not in self.clients:
            limiter.ensure_row(key)
            client = EndpointClient(
                key, judge.endpoint, default_concurrency(), self._writes, manual=self.manual
            )
            client.apply(limiter.allocate([client.report()], self.owner)[key])
            self.clients[key] = client
        return self.clients[key]

    async def keep_in_sync(self) -> None:
        """Synchronize with other workers until cancelled. If the database is unavailable, stop using slots before the
        leases expire and others may take them."""
        backoff = Backoff()
        while True:
            pause = REFRESH_SECONDS
            try:
                await self.refresh()
                urgent = any(client.urgent for client in self.clients.values())
                if urgent or self._unallocated_for() >= ALLOCATE_SECONDS:
                    await self.allocate()
                backoff.succeeded()
            except DatabaseError as error:
                log.warning("Could not synchronize endpoint limits: %s", error)
                pause = min(backoff.failed(), limiter.SHARE_SECONDS / 4)
            if self._unallocated_for() > limiter.SHARE_SECONDS / 2:
                for client in self.clients.values():
                    client.concurrency.share = 0
            await asyncio.sleep(pause)

    def _unallocated_for(self) -> float:
        return time.monotonic() - self._allocated_at

    async def refresh(self) -> None:
        """Apply the status reported by other workers, and claim a probe if one is due and needed."""
        if not self.clients:
            return
        for key, status in (await self._reads(limiter.read_status, list(self.clients))).items():
            client = self.clients[key]
            client.update(status)
            breaker = client.breaker
            if breaker.wants_probe and await self._writes(limiter.claim_probe, key, breaker.probes + 1):
                breaker.probe()

    async def allocate(self) -> None:
        """Report to the other workers and apply this worker's new shares."""
        began = time.monotonic()
        reports = [client.report() for client in self.clients.values()]
        for key, allocation in (await self._writes(limiter.allocate, reports, self.owner)).items():
            self.clients[key].apply(allocation)
        self._allocated_at = began

    def report_remaining(self) -> None:
        """Report the results of a single call before it ends, so that they are not lost. Writes the database."""
        for client in self.clients.values():
            limiter.allocate([client.report()], self.owner)
            if client.rate.owed:
                limiter.reserve(client.key, [], client.rate.owed)

    async def release_shares(self) -> None:
        """Release the slots for other workers, after any allocation that is still being written."""
        await self._writes(limiter.release_shares, list(self.clients), self.owner)
