"""Requests and tokens a minute: when the next call may start, agreed between all workers.

The generic cell rate algorithm in its form of a virtual schedule (ITU-T I.371, annex A): a theoretical arrival time
moves on by each call's spacing, and a call starts no earlier. It is kept in one place for all
(judging/endpoints/limiter.py) and moved on for several calls at once; each worker starts its calls at
the times that it was given. There is no burst, so that no minute, wherever it begins, holds more than the limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice

MINUTE = 60.0
# Part of a limit that is used. n calls that are 60 s / (0.97 n) apart stay n in any minute even if one of them
# arrives 1.8 s late, however many n is.
USED = 0.97
HORIZON_SECONDS = 0.5  # how far ahead calls are reserved
FADING = 0.9995  # of the largest call that is remembered, a call
PATIENCE_SECONDS = 1.0  # before reserving is tried again where it failed
TOO_LATE_SECONDS = 1.0  # a start that was missed by more is lost, lest it push two together


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Of one address; None: as many as come."""

    requests: int | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.requests is not None or self.tokens is not None

    @property
    def request_spacing(self) -> float:
        """Seconds between two calls."""
        return MINUTE / (USED * self.requests) if self.requests else 0.0

    def token_spacing(self, tokens: float, largest: float) -> float:
        """Seconds that a call of so many tokens keeps for itself, among calls of `largest` at most.

        A minute holds what is spaced within it and one call more, so the largest is left out of the rate. A call
        beyond the whole limit has as many minutes as it takes.
        """
        if not self.tokens:
            return 0.0
        if tokens >= self.tokens:
            return MINUTE * tokens / self.tokens
        rest = USED * self.tokens - largest
        return MINUTE if tokens >= rest else MINUTE * tokens / rest


def starts(
    now: float, requests_from: float, tokens_from: float, spacings: Sequence[tuple[float, float]]
) -> list[float]:
    """Seconds from `now` until each call may start, given its (request, token) spacing and where both begin."""
    found = []
    for request, token in spacings:
        found.append(max(requests_from, tokens_from) - now)
        requests_from, tokens_from = requests_from + request, tokens_from + token
    return found


class TokenEstimator:
    """How many tokens a call will cost, learnt from those before; set right when its reply tells."""

    def __init__(self) -> None:
        self.per_byte = 1 / 3  # a token is about four letters of English, one or two bytes of Chinese
        self.written: float | None = None

    def of(self, size: int, max_tokens: int | None) -> float:
        """Of a request of `size` bytes; before any reply, half a thousand written at most."""
        written = self.written if self.written is not None else min(max_tokens or 512, 512)
        return size * self.per_byte + written

    def learn(self, size: int, read: int | None, written: int | None) -> None:
        """Running means over about the last twenty replies."""
        if read and size:
            self.per_byte += (read / size - self.per_byte) / (5 if self.written is None else 20)
        if written is not None:
            self.written = written if self.written is None else self.written + (written - self.written) / 20


Reserve = Callable[[list[float], float], Awaitable[list[float]]]


class RateLimiter:
    """Lets one worker's calls start when it is their time. `reserve` is told the tokens of the calls that wait, and
    by how many seconds the tokens of earlier ones were guessed wrong; it answers with the seconds until each may start.
    What it raises is waited out."""

    def __init__(self, reserve: Reserve, limits: RateLimits = RateLimits()) -> None:
        self.limits = limits
        self._reserve = reserve
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._promised = 0  # starts that are reserved and have not come yet
        self._last_start = 0.0
        self._owed = 0.0
        self._largest = 0.0

    async def turn(self, tokens: float) -> None:
        """Returns when a call of about so many tokens may start."""
        if not self.limits:
            return
        self._largest = max(tokens, self._largest * FADING)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, tokens))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        await turn

    def spacing(self, tokens: float) -> tuple[float, float]:
        """Seconds that a call keeps for itself, as a request and by its tokens."""
        return self.limits.request_spacing, self.limits.token_spacing(tokens, self._largest)

    def correct(self, told: float, used: float) -> None:
        """A call used so many tokens, where `turn` was told another number."""
        self._owed += self.spacing(used)[1] - self.spacing(told)[1]

    async def _work(self) -> None:
        now = asyncio.get_running_loop().time
        while self._waiting:
            self._waiting = deque(one for one in self._waiting if not one[0].done())
            costs = self._next_costs()
            if not costs:
                await asyncio.sleep(max(0.002, self._last_start - now()))
                continue
            owed, self._owed = self._owed, 0.0
            try:
                waits = await self._reserve(costs, owed)
            except Exception:
                self._owed += owed
                await asyncio.sleep(PATIENCE_SECONDS)
                continue
            self._promise([now() + wait for wait in waits], costs)
            await asyncio.sleep(max(0.0, waits[-1] - HORIZON_SECONDS / 2))

    def _next_costs(self) -> list[float]:
        """Of the waiting calls that no start is reserved for: those of the next half second, one at least."""
        costs: list[float] = []
        ahead = 0.0
        for _, tokens in islice(self._waiting, self._promised, None):
            ahead += max(self.spacing(tokens))
            if costs and ahead > HORIZON_SECONDS:
                break
            costs.append(tokens)
        return costs

    def _promise(self, starts: list[float], costs: list[float]) -> None:
        for due, cost in zip(starts, costs, strict=True):
            self._promised += 1
            asyncio.get_running_loop().call_at(due, self._start, due, cost)
        self._last_start = starts[-1]

    def _start(self, due: float, tokens: float) -> None:
        self._promised -= 1
        if asyncio.get_running_loop().time() - due > TOO_LATE_SECONDS:
            return
        while self._waiting:
            turn, wanted = self._waiting.popleft()
            if not turn.done():
                self.correct(tokens, wanted)
                turn.set_result(None)
                return
