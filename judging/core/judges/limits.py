"""What an endpoint bears: how many calls at a time, how many requests and tokens a minute, and whether it answers.

Pure functions over values that all workers share; judging/endpoints/limiter.py stores them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from judging.core.judges.settings import Request

# --- calls at a time ---------------------------------------------------------------------------------------------

# All calls in flight report the same overload, and some servers refuse calls at random.
COOLDOWN_SECONDS = 5.0


def adapted_limit(limit: float, maximum: int, *, replies: int = 0, overloaded: bool = False) -> float:
    """The new number of calls at a time: one more per round of replies, half after an overload.

    Additive increase, multiplicative decrease, as in TCP congestion control (Chiu & Jain 1989).
    """
    if overloaded:
        return max(1.0, min(limit, maximum) / 2)
    return min(float(maximum), limit + replies / max(1.0, limit))


def even_share(limit: int, claims: Mapping[str, int | None], owner: str, turn: int = 0) -> int:
    """The part of `limit` calls that `owner` may use; 0 until its turn, where workers outnumber the calls.

    `claims`: by worker, how many calls it has if it needs no more, None if it has requests waiting. The latter divide
    what is left evenly; the calls that can't be divided go round with each `turn`.
    """
    left = max(0, limit - sum(claim or 0 for claim in claims.values()))
    waiting = sorted(name for name, claim in claims.items() if claim is None)
    claim = claims[owner]
    if claim is not None:
        return claim if waiting else claim + left // len(claims)
    each, rest = divmod(left, len(waiting))
    return each + ((waiting.index(owner) + turn) % len(waiting) < rest)


# --- requests and tokens a minute --------------------------------------------------------------------------------

MINUTE = 60.0
# The share of a limit that is used. With the burst, a minute stays within its limit even if a call arrives 0.8 s late:
# (60 + 1 + 0.8) × 0.97 < 60.
USED = 0.97
BURST_SECONDS = 1.0  # an unused bucket holds the calls of this time

Spacing = tuple[float, float]
"""Seconds by which a call empties each bucket: as a request, and for its tokens."""


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


def take(free_at: Spacing, spacings: Sequence[Spacing], now: float) -> tuple[int, Spacing, float]:
    """Let calls start, in order, while no bucket is empty.

    `free_at`: when a call may start again by each bucket, in seconds. Returns how many of the calls may start, the new
    times, and the seconds until the next call may start.
    """
    requests_at, tokens_at = (max(at, now - BURST_SECONDS) for at in free_at)
    count = 0
    for request, token in spacings:
        if max(requests_at, tokens_at) > now:
            break
        requests_at, tokens_at, count = requests_at + request, tokens_at + token, count + 1
    return count, (requests_at, tokens_at), max(0.0, requests_at - now, tokens_at - now)


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


# --- whether it answers ------------------------------------------------------------------------------------------

MOST_RECENT = 40
FEWEST_TRIED = 20
FIRST_PROBE_SECONDS, LONGEST_PROBE_SECONDS = 1.0, 30.0
ANSWERED_ENOUGH = 2 / 3  # of the recent requests; with fewer answered, fewer are sent at a time

Recent = Mapping[int, bool]
"""Whether the latest try of each recent request was answered, the request that was first tried earliest first."""


@dataclass(frozen=True, slots=True)
class Try:
    """A try of a request. `first`: its first one."""

    request: int
    answered: bool
    first: bool


def with_tries(recent: Recent, tries: Iterable[Try]) -> Recent:
    """The recent requests after further tries. A retry doesn't make a request newer, or the last requests of a run,
    which fail for ever, would look like a server that is down; a late answer counts in any case."""
    latest = dict(recent)
    for attempt in tries:
        if attempt.first or attempt.answered or attempt.request in latest:
            latest[attempt.request] = attempt.answered
    return dict(list(latest.items())[-MOST_RECENT:])


def is_down(recent: Recent) -> bool:
    """Whether none of enough different requests was answered."""
    return len(recent) >= FEWEST_TRIED and not any(recent.values())


def lowered(limit: float, recent: Recent) -> int:
    """The calls at a time of an endpoint that answers only a part of its requests; 1 if it is down."""
    part = 1.0
    if len(recent) >= FEWEST_TRIED:
        part = min(1.0, sum(recent.values()) / len(recent) / ANSWERED_ENOUGH)
    return max(1, math.floor(limit * part))


def probe_delay(probes: int) -> float:
    """Seconds until the next probe of an endpoint that is down, after `probes` failed ones."""
    return float(min(LONGEST_PROBE_SECONDS, FIRST_PROBE_SECONDS * 2.0**probes))
