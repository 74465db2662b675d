"""A circuit breaker: while an endpoint is down, it gets no requests except an occasional probe.

    up ──5 failures in a row, in any worker──▶ down ──probe after 1, 2, 4 … 30 s succeeds──▶ up

Workers share the state (judging/endpoints/limiter.py); a `CircuitBreaker` is one worker's copy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from judging.core.judges.errors import ERROR_CODES, JudgeError

MAX_FAILURES = 5
MAX_PROBE_DELAY = 30.0
REFRESH_SECONDS = 0.25  # between two reads of the shared state

# These indicate a failing server. A rate limit does not: the server is up and says when to come back.
DOWN_CODES = frozenset(
    {"connect", "timeout_connect", "proxy", "cut", "timeout_first_byte", "overloaded", "server_error"}
)


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """The shared state, in seconds. `down_for` is None while the endpoint answers."""

    closed_for: float
    down_for: float | None
    probe_in: float
    problem: str
    detail: str


def probe_delay(probes: int) -> float:
    """Seconds until the next probe, after `probes` failed ones."""
    return float(min(MAX_PROBE_DELAY, 2.0**probes))


class CircuitBreaker:
    """One worker's view of whether an endpoint is down."""

    def __init__(self) -> None:
        self.outage: EndpointStatus | None = None
        self.probes = 0
        self.problem = ("", "")  # code and message of the last failure
        self.unreported = 0  # failures that are not in the shared state yet
        self._failures = 0  # in a row
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self, max_outage: float) -> None:
        """Return when the endpoint is up, or when this request is the probe.

        Raises the JudgeError of the outage once it has lasted `max_outage` seconds.
        """
        while self.outage is not None:
            left = max_outage - (self.outage.down_for or 0.0)
            if left <= 0:
                raise ERROR_CODES[self.outage.problem](self.outage.problem, self.outage.detail)
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await asyncio.wait_for(turn, None if left == float("inf") else left + REFRESH_SECONDS)
            except TimeoutError:
                continue
            return

    def succeeded(self) -> None:
        self.unreported = 0
        self._close()

    def failed(self, error: JudgeError) -> None:
        """Count an error if it indicates a failing server."""
        if error.code not in DOWN_CODES or error.retry_after is not None:
            return
        self.unreported += 1
        self._failures += 1
        self.problem = (error.code, error.message)
        if self._failures >= MAX_FAILURES and self.outage is None:
            self.outage = EndpointStatus(0.0, 0.0, probe_delay(0), *self.problem)

    def update(self, status: EndpointStatus) -> None:
        """Apply the shared state, unless it does not include this worker's own failures yet."""
        if status.down_for is not None:
            self.outage = status
        elif not self.unreported:
            self._close()

    @property
    def wants_probe(self) -> bool:
        return (
            self.outage is not None
            and self.outage.probe_in <= 0
            and any(not one.done() for one in self._waiting)
        )

    def probe(self) -> None:
        """Let one waiting request through."""
        self.probes += 1
        self._release(1)

    def _close(self) -> None:
        self.outage, self.probes, self._failures = None, 0, 0
        self._release(len(self._waiting))

    def _release(self, count: int) -> None:
        while self._waiting and count:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1
