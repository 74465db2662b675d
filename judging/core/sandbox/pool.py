"""The sandbox as the rest of the program uses it: jobs and items in, outcomes out, from any thread."""

import os
import threading
import weakref
from types import TracebackType
from typing import Any, Self

from judging.core.sandbox.job import (
    LAYERS,
    Job,
    JobOutcome,
    Layer,
    SandboxBroken,
    SandboxFailure,
    SandboxLimits,
    SandboxRefused,
    Shape,
    TooManyFiles,
)
from judging.core.sandbox.session import GRACE_SECONDS, Answered, NeverBegan, WorkerSession, frame
from judging.core.sandbox.supervisor import ZygoteSupervisor

_MOST_BATCH_BYTES = 32 << 20
_MOST_BATCH_ITEMS = 1000
_MOST_WORKERS = 8  # that run at a time
_MOST_STARTS = 4  # of workers for one batch, when something outside ends them or their zygote


class Sandbox:
    """Runs jobs in disposable workers; started at its first use. All methods may be called from any thread.

    ``level``: 3 all walls, 2 and 1 some, 0 none (see README.md). ``without`` leaves walls out, to see what a machine
    that lacks them does.
    """

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        *,
        minimum_level: int = 1,
        without: frozenset[Layer] = frozenset(),
    ) -> None:
        self.limits = limits or SandboxLimits()
        self._minimum_level = minimum_level
        self._without = without
        self._held: frozenset[str] = frozenset()
        self._closed = 0  # how often
        self._supervisor: ZygoteSupervisor | None = None
        self._make_locks()
        _ALL.add(self)

    def _make_locks(self) -> None:
        self._places = threading.BoundedSemaphore(_MOST_WORKERS)
        self._starting = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def level(self) -> int:
        """How much of the isolation holds on this machine, as found by trying."""
        self._running()
        if "seccomp" not in self._held:
            return 0
        return 1 + ("landlock" in self._held) + ("namespaces" in self._held)

    @property
    def missing(self) -> tuple[Layer, ...]:
        """The isolation layers that this machine lacks."""
        self._running()
        return tuple(layer for layer in LAYERS if layer not in self._held)

    def run(self, job: Job[Shape], items: list[dict[str, Any]]) -> list[JobOutcome[Shape]]:
        """One outcome per item, in order.

        SandboxRefused below the minimum level; SandboxBroken if the sandbox can't run, or is closed meanwhile.
        """
        closed_before = self._closed
        self._require_level()
        outcomes: list[JobOutcome[Shape]] = []
        careful = False
        while len(outcomes) < len(items):
            rest = items[len(outcomes) :]
            batch = [frame(rest[0])] if job.each_alone else _batch(rest)
            answered = self._run_worker(job, batch, careful, closed_before)
            if answered.job_failure:
                return outcomes + [JobOutcome(None, answered.job_failure)] * len(rest)
            outcomes += answered.outcomes
            if answered.ended and (careful or len(batch) == 1):
                outcomes.append(JobOutcome(None, answered.ended))
            careful = careful or answered.ended is not None
        return outcomes

    def load_failure(self, job: Job[Any]) -> SandboxFailure | None:
        """Why the job's source cannot be prepared; None if it can. No item is run.

        Raises SandboxRefused and SandboxBroken as `run` does.
        """
        closed_before = self._closed
        self._require_level()
        return self._run_worker(job, [], False, closed_before).job_failure

    def close(self) -> None:
        """Ends the sandbox's processes and what runs in them; a later use starts it again."""
        with self._starting:
            self._closed += 1
            if self._supervisor:
                self._supervisor.close()
            self._supervisor = None

    def reset_after_fork(self) -> None:
        """After a fork: the processes are the parent's; its threads, who may have held the locks, are not here."""
        if self._supervisor:
            self._supervisor.let_go()
        self._supervisor = None
        self._make_locks()

    def _require_level(self) -> None:
        if self.level < self._minimum_level:
            raise SandboxRefused(f"isolation level {self.level}, at least {self._minimum_level} required")

    def _running(self, closed_before: int | None = None) -> ZygoteSupervisor:
        with self._starting:
            if closed_before is not None and closed_before != self._closed:
                raise SandboxBroken("the sandbox was closed while it was in use")
            if self._supervisor is None:
                self._supervisor = self._started()
            return self._supervisor

    def _started(self) -> ZygoteSupervisor:
        cpu_seconds = int((_MOST_BATCH_ITEMS + 1) * (self.limits.seconds + GRACE_SECONDS)) + 1
        supervisor = ZygoteSupervisor(self.limits, self._without, cpu_seconds)
        try:
            self._held = self._found_to_hold(supervisor)
        except BaseException:
            supervisor.close()
            raise
        return supervisor

    def _found_to_hold(self, supervisor: ZygoteSupervisor) -> frozenset[str]:
        """The layers are set up; a worker now attempts everything that they should block."""
        if "seccomp" in supervisor.held:
            probe = Job("probe", "", list[str], {})
            answered = WorkerSession(supervisor, probe, [frame({})], self.limits).listen()
            if [outcome.value for outcome in answered.outcomes] != [[]]:
                return supervisor.held - {"seccomp"}
        return supervisor.held

    def _run_worker(self, job: Job[Shape], batch: list[bytes], careful: bool, closed_before: int) -> Answered:
        """Retries if something else ended the worker, or its zygote, before it started: that is no script's fault."""
        with self._places:
            for _ in range(_MOST_STARTS):
                supervisor = self._running(closed_before)
                try:
                    return WorkerSession(supervisor, job, batch, self.limits, careful).listen()
                except TooManyFiles:
                    raise
                except NeverBegan as error:
                    met: SandboxBroken = error
                except SandboxBroken as error:
                    met = error
                    self._forget(supervisor)
            if isinstance(met, NeverBegan):
                ended = SandboxFailure("killed", str(met))
                return Answered(ended=ended) if batch else Answered(job_failure=ended)
            raise met

    def _forget(self, supervisor: ZygoteSupervisor) -> None:
        with self._starting:
            supervisor.close()
            if self._supervisor is supervisor:
                self._supervisor = None


def _batch(items: list[dict[str, Any]]) -> list[bytes]:
    """Frames of the first items, as many as one worker takes: it reads them all before it runs the first."""
    size = 0
    frames: list[bytes] = []
    for item in items[:_MOST_BATCH_ITEMS]:
        body = frame(item)
        size += len(body)
        if frames and size > _MOST_BATCH_BYTES:
            break
        frames.append(body)
    return frames


_ALL: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for sandbox in list(_ALL):
        sandbox.reset_after_fork()


os.register_at_fork(after_in_child=_reset_after_fork)
