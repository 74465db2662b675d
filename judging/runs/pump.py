"""The pump: keeps the judges' slots full across chunk ends, and stores what comes back twice a second.

    chunks ──lease──▶ items ──a task each──▶ stories (core.pipeline.tell) ──▶ done ──flush──▶ the tables

One event loop talks to the judges; one thread does all database work, so it owns one connection; another runs
the sandbox. The loop never waits for either: a slow disk slows the flush, not the asking.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from django.db import DatabaseError, connections

from datasets.core.formats import Format
from evalsite.tasks import workers
from evalsite.tasks.backoff import Backoff
from judging.core.judges.client import HttpClients
from judging.core.judges.retry import RetryPolicy
from judging.core.pipeline import Story, tell
from judging.core.sandbox.job import SandboxBroken
from judging.core.values import Outcome
from judging.endpoints.client_pool import ClientPool
from judging.endpoints.requests import Abandoned, Caller, RunGate
from judging.runs import planning, store
from judging.runs.active import (
    WEIGHTS,
    ActiveRun,
    poorest_of_each_project,
    refuse,
    running_of,
    runs_to_work_on,
    stop_at_trouble,
)
from judging.runs.answers import Answers, candidates_asked, unanswered, with_answer, with_flags
from judging.runs.budget import Ledger
from judging.runs.journal import Journal
from judging.runs.models import Priority, Run, RunMetric
from judging.runs.outbox import Outbox
from judging.runs.reply_cache import ReplyCache
from judging.runs.rule_tools import RuleTools
from judging.runs.services import budget_of, spent_by
from judging.runs.settling import Settling
from judging.runs.threads import inside
from judging.runs.tools import MetricTools
from judging.sandboxes import make_sandbox, minimum_level

log = logging.getLogger("judging.pump")

LIFE_SECONDS = 240.0  # then the next pump is woken: a task must not hold a worker for ever
TICK_SECONDS = 0.25
FLUSH_SECONDS = 0.5
WATCH_SECONDS = 0.2
TURN_SECONDS = 1.0
SETTLING_LOOKS = 5  # one in so many also finds out whether the answer is known
LAST_REPLIES_SECONDS = 6.0  # how long a stopping pump waits for replies that are under way
DATABASE_PATIENCE = 60.0


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
        self.database = ThreadPoolExecutor(1, "pump-database")
        self.scripts = ThreadPoolExecutor(2, "pump-sandbox")
        # Looking must not wait for those who write, and agreeing on limits not for the flush.
        self.watching = ThreadPoolExecutor(1, "pump-watch")
        self.agreeing = ThreadPoolExecutor(1, "pump-agree")
        self._in_database = inside(self.database)
        self._in_watching = inside(self.watching)
        self.clients = HttpClients()
        self.lanes = ClientPool(owner, reads=self._in_watching, writes=inside(self.agreeing))
        self.sandbox = make_sandbox()
        self.journal = Journal(owner)
        self.outbox = Outbox(owner, self._in_database, self.journal)

    async def run(self) -> None:
        """The main loop; leaves nothing leased and nothing unwritten, unless the database is gone."""
        self.scripts.submit(self._warm_up)
        beside = (self.lanes.keep_up(), self._watch_runs(), self._tell_turns())
        self.beside = [asyncio.create_task(one) for one in beside]
        try:
            while not self._over():
                await self._patient_tick()
                if not self.runs and not self.outbox.held:
                    break
        finally:
            await self._wind_up()

    async def _patient_tick(self) -> None:
        """A database that is away for a while ends nothing: replies are kept, and it is asked again."""
        until, backoff = time.monotonic() + DATABASE_PATIENCE, Backoff()
        while True:
            try:
                return await self._tick()
            except DatabaseError as error:
                if self._over() or time.monotonic() > until:
                    raise
                log.warning("The database does not answer, trying again: %s", error)
                await asyncio.sleep(backoff.failed())

    def _warm_up(self) -> None:
        """Start the sandbox while the run is planned; if it cannot start, taking up a run says so."""
        with contextlib.suppress(SandboxBroken):
            _ = self.sandbox.level

    def _over(self) -> bool:
        return self.stop.is_set() or time.monotonic() > self.ends

    async def _tick(self) -> None:
        await self._look_at_runs()
        until = time.monotonic() + FLUSH_SECONDS
        while time.monotonic() < until and not self.stop.is_set():
            await self._feed_all()
            if self.outbox.full or not any(run.tasks for run in self.runs.values()):
                break
            await asyncio.sleep(min(TICK_SECONDS / 5, max(0.0, until - time.monotonic())))
        await self._flush()

    async def _tell_turns(self) -> None:
        """Heartbeats tell that this loop turns. Until cancelled."""
        with workers.turning() as turned:
            while True:
                turned()
                await asyncio.sleep(TURN_SECONDS)

    async def _watch_runs(self) -> None:
        """Let go of what was paused or cancelled, within a fraction of a second: beside the main loop, whose
        database work may take longer. Until cancelled."""
        looks, settling, backoff = 0, Settling(), Backoff()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            looks += 1
            watched = list(self.runs)  # what is taken up during the look was not asked about
            try:
                running = await self._in_watching(
                    running_of,
                    watched,
                    settling if looks % SETTLING_LOOKS == 0 else None,
                )
            except DatabaseError as error:
                log.warning("Whether runs were paused is not known: %s", error)
                await asyncio.sleep(backoff.failed())
                continue
            backoff.succeeded()
            for pk in watched:
                if pk in self.runs and pk in running:
                    self.runs[pk].ledger.heard(running[pk])
                elif pk in self.runs:
                    self._let_go(self.runs[pk])

    async def _look_at_runs(self) -> None:
        """Plan what waits, take up what runs."""
        states = await self._in_database(runs_to_work_on, self.only)
        for pk in [pk for pk in states if pk not in self.runs]:
            run = await self._in_database(self._take_up, pk)
            if run is not None:
                run.fed = max(
                    (one.fed for one in self.runs.values()), default=0.0
                )  # what was missed is not made up
                self.runs[pk] = run
                self.outbox.ledgers.append((pk, run.ledger))

    def _take_up(self, pk: int) -> ActiveRun | None:
        run = Run.objects.select_related("version").get(pk=pk)
        if not run.chunks.filter(done=False, owner="").exists():
            return None
        try:
            level = self.sandbox.level
        except SandboxBroken as error:
            refuse(run, "sandbox_broken", str(error))
            return None
        if level < minimum_level():
            refuse(run, "sandbox_refused", f"{level} < {minimum_level()}")
            return None
        if run.sandbox_level is None or level < run.sandbox_level:  # the least of all that worked on it
            Run.objects.filter(pk=pk).update(sandbox_level=level)
        ledger = Ledger(budget_of(run), run.prices, spent_by(run))
        warm = run.reuse_any
        cache = ReplyCache(run.project_id, self._in_watching, warm=warm) if run.reuse_replies else None
        weight = WEIGHTS[Priority(run.priority)]
        gate = RunGate(
            pk, run.project_id, weight, ledger=ledger, note=self._note_call, note_failed=self._note_failed
        )
        caller = Caller(self.clients, gate, self.policy)
        active = ActiveRun(
            pk, cast(Format, run.version.format), {}, gate, ledger, cache, caller, planning.CHUNK
        )
        metrics = list(RunMetric.objects.filter(run=run).values_list("pk", flat=True))
        for run_metric in metrics:
            tools = self._tools(active, (run_metric, None))
            active.ahead += sum(lane.client.ceiling for lane in tools.lanes)
        asked = candidates_asked(pk, self.lanes)
        if asked:
            active.answers = Answers(
                asked, caller, active.tasks, hold=self.outbox.hold_on, over=self.outbox.answer_over
            )
            # Beside each answer that is asked for wait the judgements of it.
            active.ahead += (len(metrics) + 1) * sum(one.lane.client.ceiling for one in asked.values())
        return active

    def _tools(self, run: ActiveRun, key: store.MetricKey) -> MetricTools:
        """Reads the database at a metric's first judgement: a finished run may be read again another way."""
        if key not in run.tools:
            metric = store.definition(key)
            lanes = [self.lanes.of(judge) for judge in metric.judges]
            run.tools[key] = MetricTools(metric, lanes, run.caller, self.sandbox, self.scripts, run.cache)
        return run.tools[key]

    async def _feed_all(self) -> None:
        """Lease chunks, one for each project in turn: neither many runs nor large ones keep another project waiting."""
        for run in list(self.runs.values()):
            if run.gate.error and run.gate.open:
                await self._in_database(stop_at_trouble, run.pk, run.gate.error)
                self._let_go(run)
            if not run.tasks and (run.exhausted or not run.gate.open):
                del self.runs[run.pk]  # if it has chunks again, or runs again, the next look takes it up anew
        hungry = list(self.runs.values())
        while hungry and not self.outbox.full and not self._over():
            for run in poorest_of_each_project(hungry):
                if not await self._feed(run):
                    hungry.remove(run)

    async def _feed(self, run: ActiveRun) -> bool:
        """Lease a chunk if fewer stories are open than slots could take soon. Whether there was one to lease."""
        if not run.gate.open or run.gate.error or run.exhausted or len(run.tasks) >= run.ahead:
            return False
        taken = await self._in_database(self._take_chunk, run)
        if taken is None:
            run.exhausted = True
            return False
        leased, items, judged = taken
        run.fed += 1 / run.gate.weight
        self.outbox.hold(leased, len(items), judged)
        for item in items:
            task = asyncio.create_task(self._judge(run, item), name=str(item.judgement))
            run.tasks.add(task)
            task.add_done_callback(run.tasks.discard)
        return True

    def _take_chunk(
        self, run: ActiveRun
    ) -> tuple[store.Leased, list[store.ToJudge], list[store.Judged]] | None:
        """A chunk if there is one, what others must judge of it, and what rule programs have judged at once: a task
        each would cost more."""
        leased = store.lease(run.pk, self.owner)
        while leased and leased.chunk in self.outbox.held:  # it was taken for dead: see store.renew
            leased = store.lease(run.pk, self.owner)
        return (leased, *self._load(run, leased)) if leased else None

    def _load(self, run: ActiveRun, leased: store.Leased) -> tuple[list[store.ToJudge], list[store.Judged]]:
        items = store.load(leased, run.form, lambda key: self._tools(run, key).seen)
        alone = {key: self._tools(run, key).alone for key in {item.metric for item in items}}
        judged, others = [], []
        for item in items:
            rules = alone[item.metric]
            if item.asks and item.heard:
                judged.append(unanswered(item, None))
            elif rules and not item.asks:
                judged.append(at_once(item, rules))
            else:
                others.append(item)
        return others, judged

    async def _judge(self, run: ActiveRun, item: store.ToJudge) -> None:
        try:
            judged: store.Judged | None = await self._story(run, item)
        except (Abandoned, asyncio.CancelledError):
            judged = None
        except Exception as error:
            judged = fault(item, error)
        self.outbox.story_over(item.chunk, judged)

    async def _story(self, run: ActiveRun, item: store.ToJudge) -> store.Judged:
        """The story of an item, told when there is an answer to judge."""
        if item.asks and run.answers:
            generated = await run.answers.of(item)
            if generated.failure:
                return unanswered(item, generated)
            item = with_answer(item, generated)
        tools = run.tools[item.metric]
        story = await tell(item.item, tools.metric, tools, item.heard)
        return store.Judged(item, with_flags(item, story))

    def _note_call(self, story: asyncio.Task[Any]) -> None:
        self.journal.asking(int(story.get_name()))

    def _note_failed(self, story: asyncio.Task[Any]) -> None:
        self.journal.failed(int(story.get_name()))

    def _let_go(self, run: ActiveRun) -> None:
        """A paused or cancelled run: what waits is abandoned, what is under way is stored when it comes."""
        if run.gate.open:
            run.gate.open = False
            for task in run.tasks - run.gate.in_flight:
                task.cancel()

    async def _flush(self) -> None:
        if await self.outbox.flush(self.runs.values()):
            for run in self.runs.values():
                run.exhausted = False  # though it seemed to be at its end
            await self._look_at_runs()

    async def _wind_up(self) -> None:
        """Stop asking, give replies under way a moment, store, and give every lease back."""
        for run in self.runs.values():
            self._let_go(run)
        waiting = {task for run in self.runs.values() for task in run.tasks}
        if waiting:
            patience = LAST_REPLIES_SECONDS if self.stop.is_set() else DATABASE_PATIENCE
            _, late = await asyncio.wait(waiting, timeout=patience)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        until = time.monotonic() + DATABASE_PATIENCE
        while self.outbox.waiting and time.monotonic() < until:
            await self._flush()
        for task in self.beside:
            task.cancel()
        await asyncio.gather(*self.beside, return_exceptions=True)
        with contextlib.suppress(DatabaseError):
            await self._in_database(self.lanes.release_shares)
            await self._in_database(self.journal.close)
        await self.clients.aclose()
        for threads in (self.database, self.watching, self.agreeing):
            await inside(threads)(connections.close_all)
            threads.shutdown()
        self.scripts.shutdown()
        self.sandbox.close()


def at_once(item: store.ToJudge, rules: RuleTools) -> store.Judged:
    """An item judged by a rule program that needs nobody."""
    try:
        return store.Judged(item, with_flags(item, rules.story(item.item)))
    except Exception as error:
        return fault(item, error)


def fault(item: store.ToJudge, error: Exception) -> store.Judged:
    """A fault of ours must not leave the item unjudged for ever, nor stop the others."""
    log.error("A judgement failed inside evalsite (judgement %s)", item.judgement, exc_info=error)
    return store.Judged(item, Story(Outcome.error("internal", type(error).__name__)))


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
    gc.freeze()  # what is loaded by now stays: looking through it again and again took a tenth of the time
    try:
        asyncio.run(Pump(owner, stop, life=life, only=only, policy=policy).run())
    finally:
        gc.unfreeze()
