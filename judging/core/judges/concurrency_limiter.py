"""Slots: how many calls a worker may have in flight at one address, and whose turn it is.

How many that is, is agreed between the workers (judging/endpoints/limiter.py) by two rules that stand here:
`adapted` says how many calls at a time the server bears, `fair_shares` divides them among those who want them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

COOLDOWN_SECONDS = 1.0  # all calls in flight tell of the same overload


def adapted_slots(slots: float, ceiling: int, *, successes: int = 0, overloaded: bool = False) -> float:
    """Calls at a time after a while with `successes`, or after an overload: additive rise (one more for each round
    that went well), multiplicative fall (half), as TCP finds its rate (Chiu & Jain 1989)."""
    if overloaded:
        return max(1.0, min(slots, ceiling) / 2)
    return min(float(ceiling), slots + successes / max(1.0, slots))


def fair_shares(slots: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Max-min fair whole shares: who wants little gets it, the others divide the rest evenly, the first get more."""
    shares: dict[str, int] = {}
    left = slots
    for place, (owner, wants) in enumerate(sorted(wanted.items(), key=lambda one: (one[1], one[0]))):
        shares[owner] = min(wants, -(-left // (len(wanted) - place)))
        left -= shares[owner]
    return shares


@dataclass(slots=True)
class LimiterEvents:
    """What has happened since the workers were told last."""

    successes: int = 0
    overloads: int = 0
    retry_after: float = 0.0


class ConcurrencyLimiter:
    """For the event loop of one worker: `await enter(group)` … `leave(group)`.

    What becomes free goes to parties (projects) alike, and to the groups (runs) of one that wait by their weights: who
    starts ten runs gets no more than who starts one. An overload halves the share at once, before the workers have
    agreed again.
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
        self.news = LimiterEvents()

    @property
    def share(self) -> int:
        """How many calls may be in flight here; 0 while other workers have all."""
        return self._share

    @share.setter
    def share(self, share: int) -> None:
        self._share = share
        self._wake()

    @property
    def waiting(self) -> int:
        return sum(len(turns) for turns in self._waiting.values())

    def succeeded(self) -> None:
        self.news.successes += 1

    def overloaded(self, retry_after: float | None = None) -> None:
        """Halves the share; with `retry_after` seconds nothing new starts before they have passed."""
        now = self._now()
        if now - self._halved_at >= COOLDOWN_SECONDS:
            self._halved_at = now
            self._share = max(1, self._share // 2)
            self.news.overloads += 1
        if retry_after:
            self.news.retry_after = max(self.news.retry_after, retry_after)
            self.close_for(retry_after)

    def close_for(self, seconds: float) -> None:
        """Nothing new starts before `seconds` have passed."""
        self._closed_until = max(self._closed_until, self._now() + seconds)
        self._wake()

    def closed_for(self) -> float:
        """Seconds until something may start."""
        return max(0.0, self._closed_until - self._now())

    def take_news(self) -> LimiterEvents:
        news, self.news = self.news, LimiterEvents()
        return news

    @property
    def free(self) -> bool:
        """Whether a call could start now."""
        return self.in_flight < self._share and self._now() >= self._closed_until

    async def enter(self, group: Hashable = "", weight: float = 1.0, party: Hashable = "") -> None:
        """Returns when it is this group's turn and a slot is free."""
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
            self._left(turn, group)
            raise

    def leave(self, group: Hashable = "") -> None:
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

    def _left(self, turn: asyncio.Future[None], group: Hashable) -> None:
        """A waiter was cancelled, perhaps after its turn had come: then the slot goes to the next."""
        if turn.done() and not turn.cancelled():
            self.leave(group)

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
            self._wake_later()

    def _next(self) -> Hashable:
        """Of the party that has least in flight the group that has least for its weight."""
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

    def _wake_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self.closed_for() + 0.001, self._wake)

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()
