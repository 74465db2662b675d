"""The pump: keeps the judges' slots full across chunk ends, and stores what comes back twice a second.

    chunks ──lease──▶ items ──a task each──▶ stories (core.pipeline.tell) ──▶ done ──flush──▶ the tables

One event loop talks to the judges; one thread does all database work, so it owns one connection; another runs
the jail. The loop never waits for either: a slow disk slows the flush, not the asking.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from django.db import DatabaseError, connections
from django.utils import timezone

from datasets.core.formats.names import Format
from judging.core.jail.keeper import JailBroken
from judging.core.judges.client import Clients
from judging.core.judges.patience import RetryPolicy
from judging.core.pipeline import Story, tell
from judging.core.values import Outcome
from judging.jails import make_jail, minimum_level
from judging.runs import planning, store
from judging.runs.lanes import Lanes, remember_refusals
from judging.runs.models import Run, RunMetric, RunState
from judging.runs.rule_tools import RuleTools
from judging.runs.tools import Abandoned, Gate, MetricTools

log = logging.getLogger("judging.pump")

LIFE_SECONDS = 240.0  # then the next pump is woken: a task must not hold a worker for ever
TICK_SECONDS = 0.25
FLUSH_SECONDS = 0.5
FLUSH_ROWS = 500
LAST_REPLIES_SECONDS = 6.0  # how long a stopping pump waits for replies that are under way
DATABASE_PATIENCE = 60.0

Result = TypeVar("Result")


@dataclass(slots=True)
class ActiveRun:
    """A run that this pump works on."""

    pk: int
    form: Format
    tools: dict[store.MetricKey, MetricTools]
    gate: Gate
    ahead: int  # how many stories may be started: enough to fill all slots while the next chunk is loaded
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    exhausted: bool = False


@dataclass(slots=True)
class HeldChunk:
    """A leased chunk and how many of its stories are still open or were abandoned."""

    leased: store.Leased
    open: int
    abandoned: int = 0


class Pump:
    """Works on every running run until nothing is left, its time is over, or `stop` is set."""

    def __init__(
        self,
        owner: str,
        stop: threading.Event,
        *,
        life: float = LIFE_SECONDS,
        only: int | None = None,
        policy: RetryPolicy = RetryPolicy(),
    ) -> None:
        self.owner = owner
        self.stop = stop
        self.ends = time.monotonic() + life
        self.only = only
        self.policy = policy
        self.runs: dict[int, ActiveRun] = {}
        self.held: dict[int, HeldChunk] = {}
        self.done: deque[store.Judged] = deque()
        self.finished: set[int] = set()
        self.given_back: set[int] = set()
        self.database = ThreadPoolExecutor(1, "pump-database")
        self.scripts = ThreadPoolExecutor(2, "pump-jail")
        self.clients = Clients()
        self.lanes = Lanes(self.clients)
        self.jail = make_jail()

    async def run(self) -> None:
        """The main loop; leaves nothing leased and nothing unwritten, unless the database is gone."""
        self.scripts.submit(self._warm_up)
        try:
            while not self._over():
                await self._tick()
                if not self.runs and not self.held:
                    break
        finally:
            await self._wind_up()

    def _warm_up(self) -> None:
        """Start the jail while the run is planned; if it cannot start, taking up a run says so."""
        with contextlib.suppress(JailBroken):
            _ = self.jail.level

    def _over(self) -> bool:
        return self.stop.is_set() or time.monotonic() > self.ends

    async def _tick(self) -> None:
        await self._look_at_runs()
        until = time.monotonic() + FLUSH_SECONDS
        while time.monotonic() < until and not self.stop.is_set():
            for run in list(self.runs.values()):
                await self._feed(run)
            if len(self.done) >= FLUSH_ROWS or not any(run.tasks for run in self.runs.values()):
                break
            await asyncio.sleep(min(TICK_SECONDS / 5, max(0.0, until - time.monotonic())))
        await self._flush()

    async def _look_at_runs(self) -> None:
        """Plan what waits, take up what runs, let go of what was paused or cancelled."""
        states = await self._in_database(runs_to_work_on, self.only)
        for pk in [pk for pk in self.runs if pk not in states]:
            await self._let_go(pk)
        for pk in [pk for pk in states if pk not in self.runs]:
            run = await self._in_database(self._take_up, pk)
            if run is not None:
                self.runs[pk] = run

    def _take_up(self, pk: int) -> ActiveRun | None:
        run = Run.objects.select_related("version").get(pk=pk)
        if not run.chunks.filter(done=False, owner="").exists():
            return None
        try:
            level = self.jail.level
        except JailBroken as error:
            refuse(run, "sandbox_broken", str(error))
            return None
        if level < minimum_level():
            refuse(run, "sandbox_refused", f"{level} < {minimum_level()}")
            return None
        if run.sandbox_level is None:
            Run.objects.filter(pk=pk).update(sandbox_level=level)
        active = ActiveRun(pk, cast(Format, run.version.format), {}, Gate(), planning.CHUNK)
        for run_metric in RunMetric.objects.filter(run=run).values_list("pk", flat=True):
            tools = self._tools(active, (run_metric, None))
            active.ahead += sum(lane.slots.ceiling for lane in tools.lanes)
        return active

    def _tools(self, run: ActiveRun, key: store.MetricKey) -> MetricTools:
        """Reads the database at a metric's first judgement: a finished run may be read again another way."""
        if key not in run.tools:
            metric = store.definition(key)
            lanes = [self.lanes.of(judge) for judge in metric.judges]
            run.tools[key] = MetricTools(
                metric, lanes, self.clients, self.jail, self.scripts, run.gate, self.policy
            )
        return run.tools[key]

    async def _feed(self, run: ActiveRun) -> None:
        """Lease chunks as long as fewer stories are open than slots could take soon."""
        if run.exhausted and not run.tasks:
            del self.runs[run.pk]  # if chunks of it become free again, the next look takes it up anew
            return
        while run.gate.open and not run.exhausted and len(run.tasks) < run.ahead and not self._over():
            leased = await self._in_database(store.lease, run.pk, self.owner)
            if leased is None:
                run.exhausted = True
                return
            items, judged = await self._in_database(self._load, run, leased)
            self.held[leased.chunk] = HeldChunk(leased, len(items))
            self.done.extend(judged)
            for item in items:
                task = asyncio.create_task(self._judge(run, item))
                run.tasks.add(task)
                task.add_done_callback(run.tasks.discard)
            if not items:
                self._close_chunk(leased.chunk)
            if len(self.done) >= FLUSH_ROWS:
                return

    def _load(self, run: ActiveRun, leased: store.Leased) -> tuple[list[store.ToJudge], list[store.Judged]]:
        """What others must judge, and what rule programs have judged at once: a task each would cost more."""
        items = store.load(leased, run.form)
        alone = {key: self._tools(run, key).alone for key in {item.metric for item in items}}
        judged = [at_once(item, rules) for item in items if (rules := alone[item.metric])]
        return [item for item in items if not alone[item.metric]], judged

    async def _judge(self, run: ActiveRun, item: store.ToJudge) -> None:
        try:
            tools = run.tools[item.metric]
            story = await tell(item.item, tools.metric, tools, item.heard)
        except (Abandoned, asyncio.CancelledError):
            self.held[item.chunk].abandoned += 1
        except Exception as error:
            self.done.append(fault(item, error))
        else:
            self.done.append(store.Judged(item, story))
        finally:
            self._close_story(item.chunk)

    def _close_story(self, chunk: int) -> None:
        held = self.held[chunk]
        held.open -= 1
        if held.open == 0:
            self._close_chunk(chunk)

    def _close_chunk(self, chunk: int) -> None:
        (self.given_back if self.held[chunk].abandoned else self.finished).add(chunk)

    async def _let_go(self, pk: int) -> None:
        """A paused or cancelled run: what waits is abandoned, what is under way is stored when it comes."""
        run = self.runs[pk]
        if run.gate.open:
            run.gate.open = False
            for task in run.tasks - run.gate.in_flight:
                task.cancel()
        if not run.tasks:
            del self.runs[pk]

    async def _flush(self) -> None:
        """Write what is done. If the database is away it is kept and tried again; leases are renewed first."""
        judged, self.done = list(self.done), deque()
        finished, given_back = set(self.finished), set(self.given_back)
        learnt = [
            news for run in self.runs.values() for tools in run.tools.values() for news in tools.take_learnt()
        ]
        try:
            await self._in_database(self._store, judged, finished, given_back, list(self.held), learnt)
        except DatabaseError as error:
            log.warning("The database does not take %d judgements, trying again: %s", len(judged), error)
            self.done.extendleft(reversed(judged))
            await asyncio.sleep(1)
            return
        self.finished -= finished
        self.given_back -= given_back
        for chunk in finished | given_back:
            del self.held[chunk]

    def _store(
        self,
        judged: list[store.Judged],
        finished: set[int],
        given_back: set[int],
        held: list[int],
        learnt: list[tuple[int, frozenset[str]]],
    ) -> None:
        store.renew(held, self.owner)
        if judged or finished:
            store.write(judged, finished, self.owner)
        if given_back:
            store.release(given_back, self.owner)
        for endpoint, refuses in learnt:
            remember_refusals(endpoint, refuses)

    async def _wind_up(self) -> None:
        """Stop asking, give replies under way a moment, store, and give every lease back."""
        for pk in list(self.runs):
            await self._let_go(pk)
        waiting = {task for run in self.runs.values() for task in run.tasks}
        if waiting:
            patience = LAST_REPLIES_SECONDS if self.stop.is_set() else DATABASE_PATIENCE
            _, late = await asyncio.wait(waiting, timeout=patience)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        until = time.monotonic() + DATABASE_PATIENCE
        while (self.done or self.finished or self.given_back) and time.monotonic() < until:
            await self._flush()
        await self.clients.aclose()
        await self._in_database(connections.close_all)
        self.database.shutdown()
        self.scripts.shutdown()
        self.jail.close()

    async def _in_database(self, work: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.database, lambda: work(*arguments))


def at_once(item: store.ToJudge, rules: RuleTools) -> store.Judged:
    """An item judged by a rule program that needs nobody."""
    try:
        return store.Judged(item, rules.story(item.item))
    except Exception as error:
        return fault(item, error)


def fault(item: store.ToJudge, error: Exception) -> store.Judged:
    """A fault of ours must not leave the item unjudged for ever, nor stop the others."""
    log.error("A judgement failed inside evalsite (judgement %s)", item.judgement, exc_info=error)
    return store.Judged(item, Story(Outcome.error("internal", type(error).__name__)))


def refuse(run: Run, code: str, detail: str) -> None:
    """What users wrote is not run where this machine cannot lock it up well enough. The run says why it failed."""
    log.error("Run %s cannot start: %s %s", run.pk, code, detail)
    going = Run.objects.filter(pk=run.pk, state=RunState.RUNNING)
    going.update(state=RunState.FAILED, problem=code, problem_detail=detail, finished_at=timezone.now())


def runs_to_work_on(only: int | None) -> set[int]:
    """Plan the runs that wait for it; ids of those that run."""
    chosen = Run.objects.filter(pk=only) if only else Run.objects.filter(only_worker="")
    for pk in chosen.filter(state=RunState.PLANNING).order_by("pk").values_list("pk", flat=True):
        planning.plan(pk)
    return set(chosen.filter(state=RunState.RUNNING).values_list("pk", flat=True))


def work(
    owner: str,
    *,
    stop: threading.Event,
    only: int | None = None,
    life: float = LIFE_SECONDS,
    policy: RetryPolicy = RetryPolicy(),
) -> None:
    """Run one pump to its end, in this thread. `only`: for one run."""
    sys.setswitchinterval(0.0005)
    asyncio.run(Pump(owner, stop, life=life, only=only, policy=policy).run())
