"""A rate limiter for requests and tokens per minute, shared by all workers.

The generic cell rate algorithm in its virtual scheduling form (ITU-T I.371, annex A): each call advances a theoretical
arrival time by its spacing, and no call starts before that time. The arrival times are stored in the database
(judging/endpoints/limiter.py); a worker reserves several starts at once. There are no bursts, so the limit holds for
any 60-second window.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request

log = logging.getLogger("judging.core.judges.rate_limiter")
MINUTE = 60.0
# The share of a limit that is used. n calls spaced 60 s / (0.97 n) apart remain n in any minute even if one of them
# arrives 1.8 s late, for any n.
USED = 0.97
HORIZON_SECONDS = 0.5  # how far ahead calls are reserved
DECAY = 0.9995  # of the remembered largest call, per call
RETRY_SECONDS = 1.0  # after a reservation failed
TOO_LATE_SECONDS = 1.0  # a start that is later than this is dropped, so that two calls do not start together
NO_LIMIT = 1e12

Spacing = tuple[float, float]
"""Seconds that a call occupies in each schedule: as a request, and for its tokens."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of one endpoint, per minute; None is unlimited."""

    requests: int | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.requests is not None or self.tokens is not None

    def spacing(self, tokens: float, largest: float) -> Spacing:
        """The spacing of a call with `tokens` tokens, among calls of at most `largest`.

        A minute can contain one call more than fits by spacing, so the largest is subtracted from the token rate. A
        call above the whole limit takes as many minutes as it needs.
        """
        request = MINUTE / (USED * self.requests) if self.requests else 0.0
        if not self.tokens:
            return request, 0.0
        if tokens >= self.tokens:
            return request, MINUTE * tokens / self.tokens
        rest = USED * self.tokens - largest
        return request, MINUTE if tokens >= rest else MINUTE * tokens / rest


def start_times(
    now: float, requests_from: float, tokens_from: float, spacings: Sequence[Spacing]
) -> list[float]:
    """Seconds from `now` until each call may start; `requests_from`, `tokens_from`: when the schedules are free."""
    found = []
    for request, token in spacings:
        found.append(max(requests_from, tokens_from) - now)
        requests_from, tokens_from = requests_from + request, tokens_from + token
    return found


class RateLimited(Exception):
    """The next start is further away than the caller is willing to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Reservation:
    """The estimated cost of a call: `size` in bytes, and tokens."""

    size: int
    tokens: float


class TokenEstimator:
    """Estimates how many tokens a call will cost, from earlier replies."""

    def __init__(self) -> None:
        self.per_byte = 1 / 3  # a token is about four letters of English, one or two bytes of Chinese
        self.output: float | None = None

    def estimate(self, request: Request) -> Reservation:
        size = len(msgspec.json.encode(request["messages"]))
        limit = request.get("max_tokens") or request.get("max_completion_tokens")
        output = self.output
        if output is None:
            output = min(limit, 512) if isinstance(limit, int) else 512
        return Reservation(size, size * self.per_byte + output)

    def learn(self, size: int, input_tokens: int | None, output_tokens: int | None) -> None:
        """Update the running means, which cover about the last twenty replies."""
        if input_tokens and size:
            self.per_byte += (input_tokens / size - self.per_byte) / (5 if self.output is None else 20)
        if output_tokens is not None:
            output = float(output_tokens)
            self.output = output if self.output is None else self.output + (output - self.output) / 20


Reserve = Callable[[list[Spacing], float, float], Awaitable[list[float]]]
"""Reserve the starts of the next calls: returns the seconds until each may start.

Arguments: the calls' spacings, the seconds by which earlier token estimates were wrong, and the longest acceptable
wait. Raises RateLimited if it would be longer.
"""


class RateLimiter:
    """Starts one worker's calls at the times reserved with `reserve`."""

    def __init__(self, reserve: Reserve, limits: RateLimits = RateLimits()) -> None:
        self.limits = limits
        self.estimator = TokenEstimator()
        self.owed = 0.0  # seconds by which settled calls were estimated wrong
        self._reserve = reserve
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._reserved = 0  # reserved starts still to come
        self._last_start = 0.0
        self._largest = 0.0

    async def acquire(self, request: Request) -> Reservation | None:
        """Return when `request` may start; None if nothing is limited."""
        reservation = self._estimated(request)
        if reservation is not None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((turn, reservation.tokens))
            if self._worker is None or self._worker.done():
                self._worker = asyncio.create_task(self._work())
            await turn
        return reservation

    async def try_acquire(self, request: Request, max_wait: float) -> tuple[Reservation | None, float]:
        """Reserve the start of one call and return the reservation with the seconds until then.

        Raises RateLimited, without reserving, if that is more than `max_wait`.
        """
        reservation = self._estimated(request)
        if reservation is None:
            return None, 0.0
        (wait,) = await self._reserve([self._spacing(reservation.tokens)], 0.0, max_wait)
        return reservation, max(0.0, wait)

    def settle(self, reservation: Reservation, reply: Reply | None) -> None:
        """Correct a reservation to the actual cost: 0 without a reply, the estimate if the reply has no usage."""
        if reply is None:
            self._correct(reservation.tokens, 0.0)
            return
        read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
        self.estimator.learn(reservation.size, read, written)
        if read is not None and written is not None:
            self._correct(reservation.tokens, read + written)

    def _estimated(self, request: Request) -> Reservation | None:
        if not self.limits:
            return None
        reservation = self.estimator.estimate(request)
        self._largest = max(reservation.tokens, self._largest * DECAY)
        return reservation

    def _spacing(self, tokens: float) -> Spacing:
        return self.limits.spacing(tokens, self._largest)

    def _correct(self, estimated: float, used: float) -> None:
        self.owed += self._spacing(used)[1] - self._spacing(estimated)[1]

    async def _work(self) -> None:
        now = asyncio.get_running_loop().time
        while self._waiting:
            self._waiting = deque(one for one in self._waiting if not one[0].done())
            costs = self._next_costs()
            if not costs:
                await asyncio.sleep(max(0.002, self._last_start - now()))
                continue
            owed, self.owed = self.owed, 0.0
            try:
                waits = await self._reserve([self._spacing(cost) for cost in costs], owed, NO_LIMIT)
            except Exception as error:
                # If the database is down, keep trying: the run worker reports it.
                log.warning("No starts could be reserved within the rate limit; retrying: %r", error)
                self.owed += owed
                await asyncio.sleep(RETRY_SECONDS)
                continue
            reserved_at = now()
            for wait, cost in zip(waits, costs, strict=True):
                due = self._last_start = reserved_at + wait
                self._reserved += 1
                asyncio.get_running_loop().call_at(due, self._start, due, cost)
            await asyncio.sleep(max(0.0, waits[-1] - HORIZON_SECONDS / 2))

    def _next_costs(self) -> list[float]:
        """The costs of waiting calls without a reserved start that fit into the next half second; at least one."""
        costs: list[float] = []
        ahead = 0.0
        for _, tokens in islice(self._waiting, self._reserved, None):
            ahead += max(self._spacing(tokens))
            if costs and ahead > HORIZON_SECONDS:
                break
            costs.append(tokens)
        return costs

    def _start(self, due: float, tokens: float) -> None:
        self._reserved -= 1
        if asyncio.get_running_loop().time() - due > TOO_LATE_SECONDS:
            return
        while self._waiting:
            turn, wanted = self._waiting.popleft()
            if not turn.done():
                self._correct(tokens, wanted)
                turn.set_result(None)
                return
