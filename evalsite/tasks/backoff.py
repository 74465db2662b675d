"""Pauses before a failed operation is retried."""

from __future__ import annotations

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 5.0  # shorter than leases, so that no other worker takes over


class Backoff:
    """Pauses that double with each failure and reset after a success."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS

    def failed(self) -> float:
        """Seconds to wait after this failure."""
        pause, self._next = self._next, min(2 * self._next, LONGEST_SECONDS)
        return pause

    def succeeded(self) -> None:
        self._next = FIRST_SECONDS
