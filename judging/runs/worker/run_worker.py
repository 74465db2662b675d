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
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connections
from django_tasks import task

from evalsite.tasks import workers
from evalsite.tasks.workers import Backoff
from judging.core.judges.client import RetryPolicy
from judging.core.judges.http_clients import HttpClients
from judging.core.sandbox.job import SandboxBroken
from judging.endpoints.client import ClientPool
from judging.endpoints.requests import EndpointError
from judging.endpoints.settings import remember_refusals
from judging.runs import planning
from judging.runs.budget import Spent, budget_of, spent_by
from judging.runs.early_stopping import EarlyStopping
from judging.runs.models import Run, RunState
from judging.runs.stopping import run_refuse, run_stop_at_budget, run_stop_at_endpoint
from judging.runs.worker import chunks
from judging.runs.worker.active_run import ActiveRun, WorkerResources, neediest_of_each_project
from judging.runs.worker.journal import Journal
from judging.runs.worker.threads import in_thread
from judging.runs.worker.write_buffer import WriteBuffer
from judging.sandboxes import minimum_level, shared_sandbox

log = logging.getLogger("judging.run_worker")

LIFE_SECONDS = 240.0  # then the next worker is woken, so that no task occupies a process indefinitely
TICK_SECONDS = 0.25
FLUSH_SECONDS = 0.5
WATCH_SECONDS = 0.2
TURN_SECONDS = 1.0
LOOKS_FOR_EARLY_STOP = 5  # every n-th check of the runs also checks for early stopping
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
            ClientPool(owner, reads=self.in_watching, writes=agreeing),
            shared_sandbox(),
            in_thread(self.sandbox_threads),
            self.in_watching,
            journal,
            self.buffer,
        )

    async def run(self) -> None:
        """Run the main loop. On return nothing is leased or unwritten, unless the database is unavailable."""
        self.sandbox_threads.submit(self._start_sandbox)
        coroutines = (self.shared.pool.keep_in_sync(), self._watch_runs(), self._report_turns())
        background = [asyncio.create_task(one) for one in coroutines]
        try:
            while not self._over():
                await self._tick_with_retries()
                if not self.runs and not self.buffer.held:
                    break
        finally:
            await self._finish()
            for one in background:
                one.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await self._close()

    async def _tick_with_retries(self) -> None:
        """Run a tick, retrying while the database is unavailable; replies stay in memory meanwhile."""
        until, backoff = time.monotonic() + DATABASE_RETRY_SECONDS, Backoff()
        while True:
            try:
                return await self._tick()
            except DatabaseError as error:
                if self._over() or time.monotonic() > until:
                    raise
                log.warning("The database is unavailable, retrying: %s", error)
                await asyncio.sleep(backoff.failed())

    def _start_sandbox(self) -> None:
        """Start the sandbox early, while runs are planned. A failure is reported when a run is picked up."""
        with contextlib.suppress(SandboxBroken):
            _ = self.shared.sandbox.level

    def _over(self) -> bool:
        return self.stop.is_set() or time.monotonic() > self.ends

    async def _tick(self) -> None:
        await self._look_at_runs()
        until = time.monotonic() + FLUSH_SECONDS
        while time.monotonic() < until and not self.stop.is_set():
            await self._feed_all()
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
        """Let go of paused and cancelled runs within a fraction of a second, until cancelled. Separate from the main
        loop, whose database work may take longer."""
        looks, early_stopping, backoff = 0, EarlyStopping(), Backoff()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            looks += 1
            watched = list(self.runs)  # runs picked up meanwhile are not part of the query
            look_closer = early_stopping if looks % LOOKS_FOR_EARLY_STOP == 0 else None
            try:
                running = await self.in_watching(running_of, watched, look_closer)
            except DatabaseError as error:
                log.warning("Could not check whether runs were paused: %s", error)
                await asyncio.sleep(backoff.failed())
                continue
            backoff.succeeded()
            for run in [self.runs[pk] for pk in watched if pk in self.runs]:
                if run.pk in running:
                    run.ledger.synchronize(running[run.pk])
                else:
                    run.let_go()

    async def _look_at_runs(self) -> None:
        """Plan waiting runs and pick up running ones."""
        running = await self.in_database(runs_to_work_on, self.only)
        for pk in running - self.runs.keys():
            run = await self.in_database(self._take_up, pk)
            if run is not None:
                # A new run starts level with the others instead of catching up.
                run.fed = max((one.fed for one in self.runs.values()), default=0.0)
                self.runs[pk] = run
                self.buffer.ledgers.append((pk, run.ledger))

    def _take_up(self, pk: int) -> ActiveRun | None:
        run = Run.objects.select_related("version").get(pk=pk)
        if not run.chunks.filter(done=False, owner="").exists():
            return None
        try:
            level = self.shared.sandbox.level
        except SandboxBroken as error:
            run_refuse(run, "sandbox_broken", str(error))
            return None
        if level < minimum_level():
            run_refuse(run, "sandbox_refused", f"{level} < {minimum_level()}")
            return None
        if run.sandbox_level is None or level < run.sandbox_level:  # the lowest of all workers
            Run.objects.filter(pk=pk).update(sandbox_level=level)
        return ActiveRun.of(run, self.shared)

    async def _feed_all(self) -> None:
        """Lease chunks from each project in turn, so that many or large runs of one project don't delay the others."""
        for run in list(self.runs.values()):
            if run.gate.error and run.gate.open:
                await self.in_database(stop_at_endpoint, run.pk, run.gate.error)
                run.let_go()
            if run.is_over:
                del self.runs[run.pk]
        hungry = list(self.runs.values())
        while hungry and not self.buffer.full and not self._over():
            for run in neediest_of_each_project(hungry):
                if not await self._feed(run):
                    hungry.remove(run)

    async def _feed(self, run: ActiveRun) -> bool:
        """Lease a chunk if the run needs one. Returns whether one was leased."""
        if not run.wants_work:
            return False
        taken = await self.in_database(run.take_chunk)
        if taken is None:
            run.exhausted = True
            return False
        run.start(taken)
        return True

    async def _flush(self) -> None:
        runs = list(self.runs.values())
        flushed = await self.buffer.flush([run.ledger for run in runs])
        for run in runs:
            for endpoint, refuses in run.caller.take_learnt():
                with contextlib.suppress(DatabaseError):  # the next run will detect it again
                    await self.in_database(remember_refusals, endpoint, refuses)
            if run.generator:
                run.generator.stored(one for one in flushed.answers if one.run == run.pk)
        if flushed.reopened:
            for run in runs:
                run.exhausted = False
            await self._look_at_runs()

    async def _finish(self) -> None:
        """Stop sending requests, wait briefly for replies in progress, and store them."""
        for run in self.runs.values():
            run.let_go()
        waiting = {one for run in self.runs.values() for one in run.in_flight.tasks}
        if waiting:
            seconds = LAST_REPLIES_SECONDS if self.stop.is_set() else DATABASE_RETRY_SECONDS
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for one in late:
                one.cancel()
            if late:
                await asyncio.wait(late)
        until = time.monotonic() + DATABASE_RETRY_SECONDS
        while self.buffer.waiting and time.monotonic() < until:
            await self._flush()

    async def _close(self) -> None:
        """Release the endpoints' slots and shut down the threads."""
        with contextlib.suppress(DatabaseError):
            await self.shared.pool.release_shares()
            await self.in_database(self.shared.journal.close)
        await self.shared.clients.aclose()
        for threads in self.threads:
            await in_thread(threads)(connections.close_all)
            threads.shutdown()
        self.sandbox_threads.shutdown()


def runs_to_work_on(only: int | None) -> set[int]:
    """Plan waiting runs and return the ids of running ones."""
    chosen = Run.objects.by_workers()
    chosen = chosen.filter(pk=only) if only else chosen.filter(only_worker="")
    for pk in chosen.to_plan().order_by("pk").values_list("pk", flat=True):
        planning.plan(pk)
    return set(chosen.filter(state=RunState.RUNNING).values_list("pk", flat=True))


def running_of(runs: list[int], early_stopping: EarlyStopping | None) -> dict[int, Spent]:
    """Return the spending of each run that may still send requests, by run id. Pauses runs that have reached their
    budget and, with `early_stopping`, ends runs whose result is already clear."""
    found = {}
    for run in Run.objects.filter(pk__in=runs, state=RunState.RUNNING).select_related("project"):
        spent = spent_by(run)
        problem = spent.reached(budget_of(run)) if run.not_run else ""
        if problem and chunks.asks_further(run):
            run_stop_at_budget(run, problem)
        elif early_stopping is None or not early_stopping.look(run):
            found[run.pk] = spent
    return found


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
    if not chunks.work_waits():
        return
    workers.wake(judge_runs)  # an idle worker, if there is one
    work(workers.owner(), stop=workers.stopping)
    if chunks.work_waits():
        workers.wake(judge_runs)
