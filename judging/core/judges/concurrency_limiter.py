"""Limits one worker's requests in flight at an endpoint, and decides which request is next.

The workers share the number of slots (judging/endpoints/limiter.py): `adapted_slots` estimates how many requests the
server can handle at once, `fair_shares` divides them among the workers.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

COOLDOWN_SECONDS = 1.0  # all requests in flight report the same overload, which must count once


def adapted_slots(slots: float, maximum: int, *, successes: int = 0, overloaded: bool = False) -> float:
    """The new number of concurrent requests: one more per round without errors, half after an overload.

    Additive increase, multiplicative decrease, as in TCP congestion control (Chiu & Jain 1989).
    """
    if overloaded:
        return max(1.0, min(slots, maximum) / 2)
    return min(float(maximum), slots + successes / max(1.0, slots))


def fair_shares(slots: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Max-min fair integer shares: small demands are met in full, others divide the rest evenly, the first get more."""
    shares: dict[str, int] = {}
    left = slots
    for place, (owner, wants) in enumerate(sorted(wanted.items(), key=lambda one: (one[1], one[0]))):
        shares[owner] = min(wants, -(-left // (len(wanted) - place)))
        left -= shares[owner]
    return shares


@dataclass(slots=True)
class LimiterEvents:
    """What happened since the last report to the other workers."""

    successes: int = 0
    overloads: int = 0
    retry_after: float = 0.0


class ConcurrencyLimiter:
    """For the event loop of one worker: `await acquire(group)` … `release(group)`.

    Free slots are divided evenly among parties (projects), and within a party among groups (runs) by weight, so
    starting ten runs gains nothing over starting one. An overload halves the share at once, before the workers agree on
    new shares.
    """

    def __init__(self, share: int = 64, *, clock: Callable[[], float] | None = None) -> None:
        self._share = share
        self._clock = clock
        self._halved_at = float("-inf")
        self._closed_until = float("-inf")
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._held: Counter[Hashable] = Counter()
        self._held_by: Counter[Hashable] = Counter()
        self._weights: dict[Hashable, float] = {}
        self._parties: dict[Hashable, Hashable] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.in_flight = 0
        self.events = LimiterEvents()

    @property
    def share(self) -> int:
        """How many requests this worker may have in flight; 0 while other workers hold all slots."""
        return self._share

    @share.setter
    def share(self, share: int) -> None:
        self._share = share
        self._wake()

    @property
    def waiting(self) -> int:
        return sum(len(turns) for turns in self._waiting.values())

    def succeeded(self) -> None:
        self.events.successes += 1

    def overloaded(self, retry_after: float | None = None) -> None:
        """Halve the share, and start nothing for `retry_after` seconds."""
        now = self._now()
        if now - self._halved_at >= COOLDOWN_SECONDS:
            self._halved_at = now
            self._share = max(1, self._share // 2)
            self.events.overloads += 1
        if retry_after:
            self.events.retry_after = max(self.events.retry_after, retry_after)
            self.close_for(retry_after)

    def close_for(self, seconds: float) -> None:
        """Start nothing for `seconds`."""
        self._closed_until = max(self._closed_until, self._now() + seconds)
        self._wake()

    def closed_for(self) -> float:
        """Seconds until a request may start."""
        return max(0.0, self._closed_until - self._now())

    def take_events(self) -> LimiterEvents:
        events, self.events = self.events, LimiterEvents()
        return events

    @property
    def free(self) -> bool:
        """Whether a request may start now."""
        return self.in_flight < self._share and self._now() >= self._closed_until

    async def acquire(self, group: Hashable = "", weight: float = 1.0, party: Hashable = "") -> None:
        """Return when it is this group's turn and a slot is free."""
        self._weights[group], self._parties[group] = weight, party
        if self.free and not self._waiting:
            self._take(group)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(turn)
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had been given a slot already
                self.release(group)
            raise

    async def try_acquire(self, max_wait: float) -> bool:
        """Take a slot if one becomes free within `max_wait` seconds; returns whether it did."""
        try:
            async with asyncio.timeout(max_wait):
                await self.acquire()
        except TimeoutError:
            return False
        return True

    def release(self, group: Hashable = "") -> None:
        self.in_flight -= 1
        for held, key in ((self._held, group), (self._held_by, self._parties[group])):
            held[key] -= 1
            if not held[key]:
                del held[key]
        self._wake()

    def _take(self, group: Hashable) -> None:
        self.in_flight += 1
        self._held[group] += 1
        self._held_by[self._parties[group]] += 1

    def _wake(self) -> None:
        while self._waiting and self.free:
            group = self._next()
            turn = self._waiting[group].popleft()
            if not self._waiting[group]:
                del self._waiting[group]
            if not turn.done():
                self._take(group)
                turn.set_result(None)
        if self._waiting and self.in_flight < self._share:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(self.closed_for() + 0.001, self._wake)

    def _next(self) -> Hashable:
        """The group with the fewest requests in flight for its weight, in the party with the fewest."""
        if len(self._waiting) == 1:
            return next(iter(self._waiting))
        least = min(self._held_by[self._parties[group]] for group in self._waiting)
        poorest = next(
            party for group in self._waiting if self._held_by[party := self._parties[group]] == least
        )
        return min(
            (group for group in self._waiting if self._parties[group] == poorest),
            key=lambda group: (self._held[group] + 1) / self._weights[group],
        )

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()
