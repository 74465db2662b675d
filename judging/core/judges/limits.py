"""How many calls may be in flight: one more each round that goes well, half when the server groans."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType


class AdaptiveSlots:
    """For the pump of one event loop: `async with slots: …`, then `succeeded()` or `overloaded(retry_after)`.

    The limit starts at `start` (the ceiling by default), rises by one for each limit's worth of successes,
    and is halved by an overload, once per `cooldown` seconds: all calls in flight tell of the same one.
    """

    def __init__(
        self,
        ceiling: int = 64,
        *,
        start: int | None = None,
        cooldown: float = 1.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._ceiling = max(1, ceiling)
        self._limit = float(min(max(1, start or ceiling), self._ceiling))
        self._cooldown = cooldown
        self._clock = clock
        self._halved_at = float("-inf")
        self._closed_until = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.in_flight = 0

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def ceiling(self) -> int:
        return self._ceiling

    @ceiling.setter
    def ceiling(self, ceiling: int) -> None:
        """A share of the endpoint's slots that another worker took or gave back."""
        risen = ceiling > self._ceiling and self._limit >= self._ceiling
        self._ceiling = max(1, ceiling)
        self._limit = float(self._ceiling) if risen else min(self._limit, float(self._ceiling))
        self._wake()

    def succeeded(self) -> None:
        self._limit = min(self._limit + 1.0 / self._limit, float(self._ceiling))
        self._wake()

    def overloaded(self, retry_after: float | None = None) -> None:
        """Halves the limit; with `retry_after` seconds nothing new starts before they have passed."""
        now = self._now()
        if now - self._halved_at >= self._cooldown:
            self._halved_at = now
            self._limit = max(1.0, self._limit / 2)
        if retry_after:
            self._closed_until = max(self._closed_until, now + retry_after)
            self._wake()

    @property
    def free(self) -> bool:
        """Whether a call could start now."""
        return self.in_flight < self.limit and self._now() >= self._closed_until

    async def __aenter__(self) -> None:
        if self.free and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            self._left(turn)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.in_flight -= 1
        self._wake()

    def _left(self, turn: asyncio.Future[None]) -> None:
        """A waiter was cancelled, perhaps after its turn had come: then the slot goes to the next."""
        if not turn.cancelled():
            self.in_flight -= 1
            self._wake()

    def _wake(self) -> None:
        while self._waiting and self.free:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
        if self._waiting and self.in_flight < self.limit:
            self._wake_later()

    def _wake_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, self._closed_until - self._now()) + 0.001, self._wake)

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()
