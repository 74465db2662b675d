"""Budgets and spending of runs: requests, tokens, and money if the endpoints have prices.

Every HTTP attempt counts when it ends, including retries and abandoned judgements. A worker starts no call while the
amount spent plus the estimate for its calls in flight reaches the budget, so a single worker never sends too many
requests. It doesn't know the other workers' calls in flight or those not stored yet (about half a second's worth).
Token and money budgets may be exceeded by as much as the calls in flight differ from the mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from judging.core.judges.reply import Reply, Usage
from judging.endpoints.requests import Abandoned
from judging.records.models import Run, RunState

MILLION = 1_000_000
CHEAPER = 0.5
"""What a token costs in a batch, as a share of its usual price, at OpenAI, Azure and Anthropic."""
LETTERS_A_TOKEN = 3.0  # between English (4) and Chinese (under 2)
WRITTEN = 300  # tokens of a reply where none is known


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for a whole run; None: unlimited. `money` is in millionths of the run's currency."""

    calls: int | None = None
    tokens: int | None = None
    money: int | None = None

    def __bool__(self) -> bool:
        return (self.calls, self.tokens, self.money) != (None, None, None)


@dataclass(slots=True)
class Spent:
    """Calls, input (`read`) and output (`written`) tokens, and money in millionths."""

    calls: int = 0
    failed: int = 0
    read: int = 0
    written: int = 0
    money: float = 0.0

    def add(self, other: Spent) -> None:
        self.calls += other.calls
        self.failed += other.failed
        self.read += other.read
        self.written += other.written
        self.money += other.money

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def reached(self, budget: Budget) -> str:
        """The code of the first limit of `budget` that is used up; '' if none."""
        for name in ("calls", "tokens", "money"):
            most = getattr(budget, name)
            if most is not None and getattr(self, name) >= most:
                return f"budget_{name}"
        return ""


Prices = Mapping[str, tuple[float, float]]  # (input, output) per million tokens, by endpoint id


@dataclass(slots=True, eq=False)
class Ledger:
    """One worker's view of a run's spending: stored, not stored yet, and in flight."""

    budget: Budget = Budget()
    waits: bool = True  # for calls in flight to cost less than estimated; else Abandoned is raised
    prices: Prices = field(default_factory=dict)
    stored: Spent = field(default_factory=Spent)
    unstored: Spent = field(default_factory=Spent)
    storing: Spent = field(default_factory=Spent)  # being written to the database
    in_flight: int = 0
    writes: int = 0  # begun and ended ones
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def open(self) -> bool:
        """Whether any spending is not stored yet."""
        return bool(self.in_flight or self.unstored.calls)

    async def wait_for_budget(self) -> None:
        """Return when one more call fits the budget. Until then, either the run is paused, or calls in flight turn out
        to cost less than estimated. Raises Abandoned if it `waits` for neither."""
        while self.budget and self._estimate_with_next_call().reached(self.budget):
            if not self.waits:
                raise Abandoned
            self.news.clear()
            await self.news.wait()

    def _estimate_with_next_call(self) -> Spent:
        """The estimated spending once all calls in flight have ended, at the mean cost of finished calls."""
        estimate = Spent()
        for part in (self.stored, self.unstored, self.storing):
            estimate.add(part)
        answered = max(1, estimate.calls - estimate.failed)
        estimate.money += self.in_flight * estimate.money / answered
        estimate.read += round(self.in_flight * estimate.tokens / answered)
        estimate.calls += self.in_flight
        return estimate

    def begin(self) -> None:
        self.in_flight += 1

    def end_call(self, reply: Reply | None, failed: bool, endpoint: int | None) -> None:
        usage = reply.usage if reply else Usage()
        cost = usage.cost(*self.prices.get(str(endpoint), (0.0, 0.0)))
        spent = Spent(1, int(failed), usage.prompt_tokens or 0, usage.completion_tokens or 0, cost)
        self.in_flight -= 1
        self.unstored.add(spent)
        self.news.set()

    def take(self) -> Spent:
        """Take the unstored spending to store it. Call `settle` with the outcome."""
        self.storing, self.unstored = self.unstored, Spent()
        self.writes += 1
        return self.storing

    def settle(self, stored: bool) -> None:
        (self.stored if stored else self.unstored).add(self.storing)
        self.storing = Spent()
        self.writes += 1
        self.news.set()

    def synchronize(self, stored: Spent, writes: int) -> None:
        """Update the stored spending from the database, which includes other workers'. `writes`: of this ledger when
        the read began. A read during which none began or ended is exact; another may lack what was written, and is
        ignored if it is lower, or hold what is still being stored, which then counts twice until the next read."""
        if writes == self.writes or stored.calls >= self.stored.calls:
            self.stored = stored
            self.news.set()


Waiting = tuple[int | None, int]
"""A request that was not answered yet: its endpoint, and its characters."""


def fitting(run: Run, share: float, sent: Iterable[Waiting], waiting: Iterable[Waiting]) -> int:
    """How many of the waiting requests can be sent within the run's budget while the `sent` ones are out. `share`: what
    tokens cost, of their usual price. A request is taken to cost what the answered ones did on average, or before the
    first of them by its length."""
    budget, estimate = budget_of(run), spent_by(run)
    answered = estimate.calls - estimate.failed
    mean = Spent(
        1,
        0,
        estimate.read // max(1, answered),
        estimate.written // max(1, answered),
        estimate.money / max(1, answered),
    )

    def cost(endpoint: int | None, characters: int) -> Spent:
        if answered:
            return mean
        read = round(characters / LETTERS_A_TOKEN)
        money = Usage(read, WRITTEN).cost(*run.prices.get(str(endpoint), (0.0, 0.0))) * share
        return Spent(1, 0, read, WRITTEN, money)

    for request in sent:
        estimate.add(cost(*request))
    count = 0
    for request in waiting:
        if estimate.reached(budget):
            break
        estimate.add(cost(*request))
        count += 1
    return count


def budget_of(run: Run) -> Budget:
    return Budget(run.budget_calls, run.budget_tokens, run.budget_money)


def spent_by(run: Run) -> Spent:
    """The run's stored spending."""
    return Spent(run.calls, run.calls_failed, run.prompt_tokens, run.completion_tokens, run.spent)


def spent_out(run: Run) -> str:
    """The code of the used-up budget that prevents resuming a cancelled run; '' if none."""
    stopped = run.state == RunState.CANCELLED and run.not_run
    return spent_by(run).reached(budget_of(run)) if stopped else ""
