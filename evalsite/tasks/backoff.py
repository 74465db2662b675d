"""How long to wait before something that failed is tried again."""

from __future__ import annotations

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 5.0  # leases last longer, so that no one else starts what is only waiting


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
