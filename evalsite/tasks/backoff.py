"""How long to wait before a failed operation is retried."""

from __future__ import annotations

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 5.0  # shorter than leases, so that no other worker takes over meanwhile


class Backoff:
    """Pauses that double from one failure to the next, and start again after a success."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS

    def failed(self) -> float:
        """Seconds to wait now."""
        pause, self._next = self._next, min(2 * self._next, LONGEST_SECONDS)
        return pause

    def succeeded(self) -> None:
        self._next = FIRST_SECONDS
