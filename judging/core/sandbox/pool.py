"""The sandbox's public interface: jobs and items in, outcomes out, from any thread."""

import os
import threading
import weakref
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
_MOST_WORKERS = 8  # running at the same time
_MOST_STARTS = 4  # of workers for one batch, if something outside kills them or their zygote


class Sandbox:
    """Runs jobs in disposable workers; started on first use. All methods can be called from any thread.

    ``without`` disables isolation layers, to simulate machines that lack them. ``level``: see README.md.
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
        self._closed = 0  # number of `close` calls
        self._supervisor: ZygoteSupervisor | None = None
        self._make_locks()
        _ALL.add(self)

    def _make_locks(self) -> None:
        self._places = threading.BoundedSemaphore(_MOST_WORKERS)
        self._starting = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def level(self) -> int:
        """The isolation level of this machine, from trials: 3 with all layers, 2 and 1 with some, 0 without seccomp."""
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
        """Run the job on items and return one outcome per item, in order.

        Raises SandboxRefused below the minimum level; SandboxBroken if the sandbox cannot run, or is closed meanwhile.
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
        """Why the job's source cannot be prepared, or None. No item is run.

        Raises SandboxRefused and SandboxBroken like `run`.
        """
        closed_before = self._closed
        self._require_level()
        return self._run_worker(job, [], False, closed_before).job_failure

    def close(self) -> None:
        """End the sandbox's processes and the workers in them; the next use starts them again."""
        with self._starting:
            self._closed += 1
            if self._supervisor:
                self._supervisor.close()
            self._supervisor = None

    def reset_after_fork(self) -> None:
        """Reset in a forked child: the processes are the parent's, and threads that may hold the locks are gone."""
        if self._supervisor:
            self._supervisor.detach()
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
        except BaseException:  # also on interrupts: no process may be left behind
            supervisor.close()
            raise
        return supervisor

    def _found_to_hold(self, supervisor: ZygoteSupervisor) -> frozenset[str]:
        """The layers that hold, after a worker has attempted everything that they should block."""
        if "seccomp" in supervisor.held:
            probe = Job("probe", "", list[str], {})
            answered = WorkerSession(supervisor, probe, [frame({})], self.limits).listen()
            if [outcome.value for outcome in answered.outcomes] != [[]]:
                return supervisor.held - {"seccomp"}
        return supervisor.held

    def _run_worker(self, job: Job[Shape], batch: list[bytes], careful: bool, closed_before: int) -> Answered:
        """Run a worker, retrying if something other than the script killed it, or its zygote, before it started."""
        with self._places:
            for _ in range(_MOST_STARTS):
                supervisor = self._running(closed_before)
                try:
                    return WorkerSession(supervisor, job, batch, self.limits, careful).listen()
                except TooManyFiles:
                    raise
                except NeverBegan as error:
                    broken: SandboxBroken = error
                except SandboxBroken as error:
                    broken = error
                    self._forget(supervisor)
            if isinstance(broken, NeverBegan):
                ended = SandboxFailure("killed", str(broken))
                return Answered(ended=ended) if batch else Answered(job_failure=ended)
            raise broken

    def _forget(self, supervisor: ZygoteSupervisor) -> None:
        with self._starting:
            supervisor.close()
            if self._supervisor is supervisor:
                self._supervisor = None


def _batch(items: list[dict[str, Any]]) -> list[bytes]:
    """Frames of as many of the first items as fit into one worker, which reads all of them before it runs the first."""
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
