"""When an address counts as down: nobody asks it any more but one call from time to time, until one succeeds.

    answers ──5 failures in a row, by whichever worker──▶ down ──a try after 1, 2, 4 … 30 s──▶ answers
                                                           ▲────────── the try fails ───────┘

(The circuit breaker of M. Nygard, Release It!, with its half-open state as one try that a single worker claims.)
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_FAILURES = 5
LONGEST_PAUSE = 30.0

# What tells of the server and not of one request. A rate limit does not: the server is there and says when.
DOWN_CODES = frozenset(
    {"connect", "timeout_connect", "proxy", "cut", "timeout_first_byte", "overloaded", "server_error"}
)


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """Whether calls may start. Seconds; `down_for` None: it answers."""

    closed_for: float
    down_for: float | None
    try_in: float
    problem: str
    detail: str


def probe_delay(tries: int) -> float:
    """Seconds until the next try, after so many that failed."""
    return float(min(LONGEST_PAUSE, 2.0**tries))


class RetryBudget:
    """How many retries an address may still be sent: a hundred, and one more for each reply. A server that fails more
    often than it answers is not asked twice as much for it."""

    def __init__(self, most: float = 100.0, per_reply: float = 1.0) -> None:
        self._most = self._left = most
        self._per_reply = per_reply

    def earn(self) -> None:
        self._left = min(self._most, self._left + self._per_reply)

    def spend(self) -> bool:
        """Whether there is one left; then it is gone."""
        if self._left < 1:
            return False
        self._left -= 1
        return True
