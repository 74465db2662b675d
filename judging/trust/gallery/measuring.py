"""Judges labelled answers with a metric, under the limits of its endpoints and a budget of calls."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from django.db import connections

from datasets.core.kinds import TIE
from judging.core.checklists import checklist_from, met_of
from judging.core.gallery.measured import Said
from judging.core.judges.client import RetryPolicy
from judging.core.judges.http_clients import HttpClients
from judging.core.judges.reply import Reply
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import judge_item
from judging.core.results import JudgedItem, JudgementResult
from judging.core.sandbox.pool import Sandbox
from judging.core.values import SCORED, UNSETTLED
from judging.endpoints import limiter
from judging.endpoints.gate import Lot
from judging.endpoints.gate_pool import GatePool, ModelConnection
from judging.endpoints.requests import Abandoned, Caller, EndpointError, RunGate
from judging.engine.effects import MetricEffects
from judging.engine.threads import in_thread

POLICY = RetryPolicy(max_outage_seconds=20, max_consecutive_failures=3)
STORE_SECONDS = 0.5
AT_ONCE = 16
"""Judgements in progress; how many calls are sent at a time is the endpoint's limit."""
OUT_OF_BUDGET = "budget_calls"


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer, or two that are compared, with people's verdict. `unit`: the row that it belongs to."""

    item: JudgedItem
    verdict: Said
    unit: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The judge's verdict on an answer, or the reason why it gave none."""

    verdict: Said | None
    reason: str = ""


@dataclass(slots=True)
class Spending:
    """Counts the calls, and refuses those beyond the budget. Implements endpoints.requests.SpendingLimit."""

    most_calls: int
    calls: int = 0
    in_flight: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def used_up(self) -> bool:
        return self.calls + self.in_flight >= self.most_calls

    async def wait_for_budget(self) -> None:
        if self.used_up:
            raise Abandoned

    def begin(self) -> None:
        self.in_flight += 1

    def end_call(self, reply: Reply | None, failed: bool, endpoint: int | None) -> None:
        self.in_flight -= 1
        self.calls += 1
        if reply is not None:
            self.prompt_tokens += reply.usage.prompt_tokens or 0
            self.completion_tokens += reply.usage.completion_tokens or 0


class _Nobody:
    """Implements endpoints.requests.Waiting for judgements of which only the result counts."""

    def request_sent(self) -> None:
        return None

    def request_ended(self, *, failed: bool) -> None:
        return None


Store = Callable[[Mapping[str, Judged], Spending], None]


@dataclass(slots=True)
class Measuring:
    """One measurement: `answers` by key, of which the judged ones are in `results`. `store` is called twice a second
    and at the end, in a thread of its own; what it raises ends the work, and so does `stop`."""

    definition: MetricDefinition
    answers: Mapping[str, Labelled]
    spending: Spending
    store: Store
    sandbox: Sandbox
    lot: Lot = field(default_factory=Lot)
    stop: threading.Event = field(default_factory=threading.Event)
    results: dict[str, Judged] = field(default_factory=dict)

    def run(self) -> str:
        """Judge the answers that have no result yet. Returns the code of what ended it early, with its detail after a
        colon; '' if all have one."""
        return asyncio.run(self._run())

    async def _run(self) -> str:
        with ThreadPoolExecutor(1, "measuring") as database, ThreadPoolExecutor(2, "sandbox") as scripts:
            in_database, in_sandbox = in_thread(database), in_thread(scripts)
            pool, clients = GatePool(f"{limiter.MANUAL}{uuid.uuid4().hex}", in_database), HttpClients()
            caller = Caller(clients, RunGate(self.lot, self.spending), POLICY)
            working: list[asyncio.Task[None]] = []
            try:
                models = [await in_database(pool.connection, judge) for judge in self.definition.judges]
                await pool.exchange()
                effects = MetricEffects(self.definition, models, caller, self.sandbox, in_sandbox)
                judging = asyncio.create_task(self._judge_all(effects))
                working = [asyncio.create_task(pool.keep_in_sync()), judging]
                while not judging.done():
                    await asyncio.wait({judging}, timeout=STORE_SECONDS)
                    self._end_early(caller, models, judging)
                    await in_database(self.store, self.results, self.spending)
                if not judging.cancelled():
                    judging.result()  # raises what went wrong
            finally:
                for task in working:
                    task.cancel()
                await asyncio.gather(*working, return_exceptions=True)
                await pool.release()
                await clients.aclose()
                await in_database(connections.close_all)
        return self._problem(caller.gate.error)

    def _end_early(self, caller: Caller, models: list[ModelConnection], judging: asyncio.Task[None]) -> None:
        """Cancel the work if a server has been down for too long, or if it is to stop."""
        for model in models:
            caller.check_outage(model)
        if caller.gate.error or self.stop.is_set():
            caller.gate.open = False
            judging.cancel()

    def _problem(self, error: EndpointError | None) -> str:
        if error:
            return f"{error.code}: {error.detail}".rstrip(": ")
        return OUT_OF_BUDGET if self.spending.used_up and len(self.results) < len(self.answers) else ""

    async def _judge_all(self, effects: MetricEffects) -> None:
        free = asyncio.Semaphore(AT_ONCE)
        left = [key for key in self.answers if key not in self.results]
        async with asyncio.TaskGroup() as group:
            for key in left:
                group.create_task(self._judge(key, effects, free))

    async def _judge(self, key: str, effects: MetricEffects, free: asyncio.Semaphore) -> None:
        async with free:
            ask = partial(effects.ask, _Nobody())
            try:
                result = await judge_item(self.answers[key].item, effects.metric, effects, ask)
            except Abandoned:  # it has no result
                return
        self.results[key] = Judged(_said(result), result.outcome.reason)


def _said(result: JudgementResult) -> Said | None:
    """The verdict; of a checklist, on the criteria that are not open."""
    checklist = checklist_from(result.checklist)
    if checklist is not None:
        return met_of(checklist)
    if result.outcome.state == UNSETTLED:
        return TIE
    return result.outcome.value if result.outcome.state == SCORED else None
