"""The run worker: keeps the judges' slots busy across chunk boundaries and stores results twice a second.

    chunks ──lease──▶ items ──task per item──▶ results (core.pipeline.judge_item) ──▶ write buffer ──flush──▶ tables

One event loop calls the judges; database work and the sandbox run in separate threads. Requests never wait for
them, so a slow disk delays the flush but not the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import DatabaseError, connections
from django_tasks import task

from evalsite.tasks import workers
from evalsite.tasks.workers import Backoff
from judging.core.judges.client import RetryPolicy
from judging.core.judges.http_clients import HttpClients
from judging.core.sandbox.job import SandboxBroken
from judging.endpoints.gate_pool import GatePool
from judging.endpoints.requests import EndpointError
from judging.endpoints.settings import remember_refusals
from judging.engine import chunks, deaths, planning
from judging.engine.active_run import ActiveRun, WorkerResources, neediest_of_each_project
from judging.engine.budget import Spent, budget_of, spent_by
from judging.engine.early_stopping import EarlyStopping
from judging.engine.journal import Journal
from judging.engine.stopping import run_refuse, run_set_aside, run_stop_at_budget, run_stop_at_endpoint
from judging.engine.threads import in_thread
from judging.engine.write_buffer import WriteBuffer
from judging.records.models import WORK_FAILED, Run, RunState
from judging.sandboxes import minimum_level, shared_sandbox, start_early

log = logging.getLogger("judging.run_worker")
T = TypeVar("T")

LIFE_SECONDS = 240.0  # then the next worker is woken, so that no task occupies a process indefinitely
TICK_SECONDS = 0.25
FLUSH_SECONDS = 0.5
WATCH_SECONDS = 0.2
TURN_SECONDS = 1.0
CHECKS_PER_EARLY_STOP = 5  # every n-th check of the runs also checks for early stopping
LAST_REPLIES_SECONDS = 6.0  # how long a stopping worker waits for replies in progress
DATABASE_RETRY_SECONDS = 60.0


class RunWorker:
    """Processes all running runs until no work is left, its lifetime is over, or `stop` is set."""

    def __init__(
        self,
        owner: str,
        stop: threading.Event,
        *,
        life: float = LIFE_SECONDS,
        only: int | None = None,
        policy: RetryPolicy = RetryPolicy(),
    ) -> None:
        self.stop = stop
        self.ends = time.monotonic() + life
        self.only = only
        self.runs: dict[int, ActiveRun] = {}
        self.trial: tuple[int, float] | None = None  # a suspected run that is worked on alone, and since when
        # Separate threads, so that reads don't wait for writes, nor limit synchronization for the flush.
        self.threads = [ThreadPoolExecutor(1, f"run-{name}") for name in ("database", "watch", "agree")]
        self.in_database, self.in_watching, agreeing = map(in_thread, self.threads)
        self.sandbox_threads = ThreadPoolExecutor(2, "run-sandbox")
        journal = Journal(owner)
        self.buffer = WriteBuffer(owner, self.in_database, journal)
        self.shared = WorkerResources(
            owner,
            policy,
            HttpClients(),
            GatePool(owner, agreeing),
            shared_sandbox(),
            in_thread(self.sandbox_threads),
            self.in_watching,
            journal,
            self.buffer,
        )

    async def run(self) -> None:
        """Run the main loop. On return nothing is leased or unwritten, unless the database is unavailable."""
        start_early()
        coroutines = (self.shared.pool.keep_in_sync(), self._watch_runs(), self._report_turns())
        background = [asyncio.create_task(coroutine) for coroutine in coroutines]
        try:
            while not self._must_end():
                await self._tick_with_retries()
                if not self.runs and not self.buffer.held:
                    break
        finally:
            await self._finish()
            for background_task in background:
                background_task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await self._close()

    async def _tick_with_retries(self) -> None:
        """Run a tick, retrying while the database is unavailable; replies stay in memory meanwhile."""
        until, backoff = time.monotonic() + DATABASE_RETRY_SECONDS, Backoff()
        while True:
            try:
                return await self._tick()
            except DatabaseError as error:
                if self._must_end() or time.monotonic() > until:
                    raise
                log.warning("The database is unavailable, retrying: %s", error)
                await asyncio.sleep(backoff.failed())

    def _must_end(self) -> bool:
        return self.stop.is_set() or time.monotonic() > self.ends

    async def _tick(self) -> None:
        await self._pick_up_runs()
        until = time.monotonic() + FLUSH_SECONDS
        while time.monotonic() < until and not self.stop.is_set():
            await self._lease_chunks()
            if self.buffer.full or not any(run.in_flight for run in self.runs.values()):
                break
            await asyncio.sleep(min(TICK_SECONDS / 5, max(0.0, until - time.monotonic())))
        await self._flush()

    async def _report_turns(self) -> None:
        """Send heartbeats while this loop is running, until cancelled."""
        with workers.turning() as turned:
            while True:
                turned()
                await asyncio.sleep(TURN_SECONDS)

    async def _watch_runs(self) -> None:
        """Abandon the unsent work of paused and cancelled runs within a fraction of a second, until cancelled. Separate
        from the main loop, whose database work may take longer."""
        checks, early_stopping, backoff = 0, EarlyStopping(), Backoff()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            checks += 1
            # runs picked up meanwhile are not part of the query
            watched = {pk: run.ledger.writes for pk, run in self.runs.items()}
            stopping = early_stopping if checks % CHECKS_PER_EARLY_STOP == 0 else None
            try:
                running = await self.in_watching(running_of, list(watched), stopping)
            except DatabaseError as error:
                log.warning("Could not check whether runs were paused: %s", error)
                await asyncio.sleep(backoff.failed())
                continue
            backoff.succeeded()
            for run in [self.runs[pk] for pk in watched if pk in self.runs]:
                if run.collects == (run.pk in running):  # it was stopped, or resumed
                    run.abandon_unsent()
                elif run.pk in running:
                    run.ledger.synchronize(running[run.pk], watched[run.pk])

    async def _pick_up_runs(self) -> None:
        """Plan waiting runs and pick up running ones."""
        running, suspects = await self.in_database(runs_and_suspects, self.shared.owner, self.only)
        for pk in self._next(running, suspects):
            run = await self.in_database(set_aside_on_error, pk, self._activate, pk)
            if run is not None:
                # A new run starts level with the others instead of catching up.
                run.weighted_chunks = max(
                    (other.weighted_chunks for other in self.runs.values()), default=0.0
                )
                self.runs[pk] = run
                self.buffer.ledgers.append((pk, run.ledger))

    def _next(self, running: set[int], suspects: deaths.Suspects) -> Collection[int]:
        """The runs to pick up: a suspected one alone, or all others."""
        if self.trial:
            run, since = self.trial
            if run in suspects.all and run in self.runs and time.monotonic() - since < deaths.TRIAL_SECONDS:
                return ()
            self.trial = None
        if suspects.free and not self.runs:
            self.trial = suspects.free[0], time.monotonic()
            return suspects.free[:1]
        return running - suspects.all - self.runs.keys()

    def _activate(self, pk: int) -> ActiveRun | None:
        run = Run.objects.select_related("version").get(pk=pk)
        if not run.chunks.filter(done=False, owner="").exists():
            return None
        try:
            level = self.shared.sandbox.level
        except SandboxBroken as error:
            refuse(run, "sandbox_broken", str(error))
            return None
        if level < minimum_level():
            refuse(run, "sandbox_refused", f"{level} < {minimum_level()}")
            return None
        if run.sandbox_level is None or level < run.sandbox_level:  # the lowest of all workers
            Run.objects.filter(pk=pk).update(sandbox_level=level)
        return ActiveRun.of(run, self.shared)

    async def _lease_chunks(self) -> None:
        """Lease chunks from each project in turn, so that many or large runs of one project don't delay the others."""
        for run in list(self.runs.values()):
            run.check_outages()
            if run.gate.error and run.gate.open:
                await self.in_database(stop_at_endpoint, run.pk, run.gate.error)
                run.abandon_unsent()
            if run.is_over:
                await self._remember_refusals(run)
                del self.runs[run.pk]
        waiting_for_chunks = list(self.runs.values())
        while waiting_for_chunks and not self.buffer.full and not self._must_end():
            for run in neediest_of_each_project(waiting_for_chunks):
                if not await self._lease_chunk(run):
                    waiting_for_chunks.remove(run)

    async def _lease_chunk(self, run: ActiveRun) -> bool:
        """Lease a chunk if the run needs one. Returns whether one was leased."""
        if not run.needs_chunk:
            return False
        loaded = await self.in_database(set_aside_on_error, run.pk, run.load_chunk)
        if loaded is None:
            run.exhausted = True
            return False
        run.start(loaded)
        return True

    async def _flush(self) -> None:
        runs = list(self.runs.values())
        flushed = await self.buffer.flush([run.ledger for run in runs])
        for run in runs:
            await self._remember_refusals(run)
            if run.generator:
                run.generator.stored(attempt for attempt in flushed.answers if attempt.run == run.pk)
        if flushed.reopened:
            for run in runs:
                run.exhausted = False
            await self._pick_up_runs()

    async def _remember_refusals(self, run: ActiveRun) -> None:
        for endpoint, refuses in run.caller.take_learnt():
            with contextlib.suppress(DatabaseError):  # the next run will detect it again
                await self.in_database(remember_refusals, endpoint, refuses)

    async def _finish(self) -> None:
        """Stop sending requests, wait briefly for replies in progress, and store them."""
        for run in self.runs.values():
            run.abandon_unsent()
        waiting = {unfinished for run in self.runs.values() for unfinished in run.in_flight.tasks}
        if waiting:
            seconds = LAST_REPLIES_SECONDS if self.stop.is_set() else DATABASE_RETRY_SECONDS
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for unfinished in late:
                unfinished.cancel()
            if late:
                await asyncio.wait(late)
        until = time.monotonic() + DATABASE_RETRY_SECONDS
        while self.buffer.waiting and time.monotonic() < until:
            await self._flush()

    async def _close(self) -> None:
        """Release the endpoints' calls and shut down the threads."""
        with contextlib.suppress(DatabaseError):
            await self.shared.pool.release()
            await self.in_database(self.shared.journal.close)
        await self.shared.clients.aclose()
        for threads in self.threads:
            await in_thread(threads)(connections.close_all)
            threads.shutdown()
        self.sandbox_threads.shutdown()


def runs_and_suspects(owner: str, only: int | None) -> tuple[set[int], deaths.Suspects]:
    """The runs to work on, and which of them are suspected of killing workers."""
    running = runs_to_work_on(owner, only)
    return running, deaths.suspects(running) if running else deaths.Suspects()


def runs_to_work_on(owner: str, only: int | None) -> set[int]:
    """Plan waiting runs; return the ids of those that are running or collecting."""
    chosen = Run.objects.by_workers()
    chosen = chosen.filter(pk=only) if only else chosen.filter(only_worker="")
    for pk in chosen.to_plan().order_by("pk").values_list("pk", flat=True):
        set_aside_on_error(pk, plan_claimed, pk, owner)
    running = chosen.filter(state=RunState.RUNNING).values_list("pk", flat=True)
    return {*running, *chunks.collecting(chosen).values_list("pk", flat=True)}


def plan_claimed(pk: int, owner: str) -> None:
    """Plan a run unless another process does, so that the death of its planner is noticed."""
    if not Run.objects.to_plan().filter(pk=pk, planner__in=("", owner)).update(planner=owner):
        return
    try:
        planning.plan(pk)
    finally:
        Run.objects.filter(pk=pk, planner=owner).update(planner="")
    workers.wake(judge_runs)  # those that found it claimed


def refuse(run: Run, code: str, detail: str) -> None:
    """Fail a run because of this machine; one that is collecting is left until it is resumed."""
    run_refuse(run, code, detail)
    if run.state != RunState.RUNNING:
        chunks.park_free(run.pk)


def set_aside_on_error(pk: int, work: Callable[..., T], *arguments: Any) -> T | None:
    """Do work for one run. An error other than the database's sets the run aside, so that others continue."""
    try:
        return work(*arguments)
    except DatabaseError:
        raise
    except Exception as error:
        log.error("Working on run %s failed.", pk, exc_info=error)
        run = Run.objects.select_related("project").get(pk=pk)
        if not run_set_aside(run, WORK_FAILED, f"{type(error).__name__}: {error}"):
            chunks.park_free(pk)
        return None


def running_of(runs: list[int], early_stopping: EarlyStopping | None) -> dict[int, Spent]:
    """Return the spending of each run that may still send requests, by run id. Pauses runs that have reached their
    budget (those that send batches stop when these were read: batches.py) and, with `early_stopping`, ends runs whose
    result is already clear."""
    spending = {}
    for run in Run.objects.filter(pk__in=runs, state=RunState.RUNNING).select_related("project"):
        spent = spent_by(run)
        problem = spent.reached(budget_of(run)) if run.not_run else ""
        if problem and not run.batched and chunks.sends_requests(run):
            run_stop_at_budget(run, problem)
        elif early_stopping is None or not early_stopping.end_if_precise(run):
            spending[run.pk] = spent
    return spending


def stop_at_endpoint(run: int, error: EndpointError) -> None:
    log.warning("Run %s is paused: %s at %s", run, error.code, error.endpoint)
    run_stop_at_endpoint(Run.objects.select_related("project").get(pk=run), error)


def work(
    owner: str,
    *,
    stop: threading.Event,
    only: int | None = None,
    life: float = LIFE_SECONDS,
    policy: RetryPolicy = RetryPolicy(),
) -> None:
    """Run one worker to completion in this thread. `only`: limit it to this run."""
    sys.setswitchinterval(0.0005)
    gc.freeze()  # scanning loaded modules at every collection took a tenth of the time
    try:
        asyncio.run(RunWorker(owner, stop, life=life, only=only, policy=policy).run())
    finally:
        gc.unfreeze()


@task(queue_name=workers.RUNS)
def judge_runs() -> None:
    """Process waiting runs for a few minutes; wake the next worker if work is left."""
    if not chunks.has_waiting_work():
        return
    workers.wake(judge_runs)  # an idle worker, if there is one
    work(workers.owner(), stop=workers.stopping)
    if chunks.has_waiting_work():
        workers.wake(judge_runs)
