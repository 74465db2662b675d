"""The jail as the rest of the program uses it: jobs and items in, outcomes out, from any thread."""

import os
import threading
import weakref
from types import TracebackType
from typing import Any, Self

from judging.core.jail.job import LAYERS, Failure, Job, Layer, Limits, Outcome, Shape
from judging.core.jail.keeper import JailBroken, Keeper, TooManyFiles
from judging.core.jail.protocol import frame
from judging.core.jail.talk import GRACE_SECONDS, Answered, NeverBegan, Talk

_MOST_BATCH_BYTES = 32 << 20
_MOST_BATCH_ITEMS = 1000
_MOST_STARTS = 4  # of workers for one batch, when somebody else ends them or their zygote


class JailRefused(Exception):
    """This machine's walls are fewer than the jail was asked to have at least."""


class Jail:
    """Runs jobs in disposable workers; started at its first use. All methods may be called from any thread.

    ``level``: 3 all walls, 2 and 1 some, 0 none (see README.md). ``without`` leaves walls out, to see what a machine
    that lacks them does. ``workers`` bounds how many run at a time.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        minimum_level: int = 1,
        workers: int = 8,
        without: frozenset[Layer] = frozenset(),
    ) -> None:
        self.limits = limits or Limits()
        self._minimum_level = minimum_level
        self._without = without
        self._workers = workers
        self._held: frozenset[str] = frozenset()
        self._closed = 0  # how often
        self._keeper: Keeper | None = None
        self._make_locks()
        _ALL.add(self)

    def _make_locks(self) -> None:
        self._places = threading.BoundedSemaphore(self._workers)
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
        """The walls that this machine lacks."""
        self._running()
        return tuple(layer for layer in LAYERS if layer not in self._held)

    def run(self, job: Job[Shape], items: list[dict[str, Any]]) -> list[Outcome[Shape]]:
        """One outcome per item, in order.

        JailRefused below the minimum level; JailBroken if the jail can't run, or is closed meanwhile.
        """
        closed_before = self._closed
        self._require_level()
        outcomes: list[Outcome[Shape]] = []
        careful = False
        while len(outcomes) < len(items):
            rest = items[len(outcomes) :]
            batch = [frame(rest[0])] if job.each_alone else _batch(rest)
            answered = self._run_worker(job, batch, careful, closed_before)
            if answered.job_failure:
                return outcomes + [Outcome(None, answered.job_failure)] * len(rest)
            outcomes += answered.outcomes
            if answered.ended and (careful or len(batch) == 1):
                outcomes.append(Outcome(None, answered.ended))
            careful = careful or answered.ended is not None
        return outcomes

    def load_failure(self, job: Job[Any]) -> Failure | None:
        """Why the job's source cannot be prepared; None if it can. No item is run.

        Raises JailRefused and JailBroken as `run` does.
        """
        closed_before = self._closed
        self._require_level()
        return self._run_worker(job, [], False, closed_before).job_failure

    def close(self) -> None:
        """Ends the jail's processes and what runs in them; a later use starts it anew."""
        with self._starting:
            self._closed += 1
            if self._keeper:
                self._keeper.close()
            self._keeper = None

    def start_over_in_child(self) -> None:
        """After a fork: the processes are the parent's; its threads, who may have held the locks, are not here."""
        if self._keeper:
            self._keeper.let_go()
        self._keeper = None
        self._make_locks()

    def _require_level(self) -> None:
        if self.level < self._minimum_level:
            raise JailRefused(f"level {self.level} of isolation, at least {self._minimum_level} is asked for")

    def _running(self, closed_before: int | None = None) -> Keeper:
        with self._starting:
            if closed_before is not None and closed_before != self._closed:
                raise JailBroken("the jail was closed while it was in use")
            if self._keeper is None:
                self._keeper = self._started()
            return self._keeper

    def _started(self) -> Keeper:
        cpu_seconds = int((_MOST_BATCH_ITEMS + 1) * (self.limits.seconds + GRACE_SECONDS)) + 1
        keeper = Keeper(self.limits, self._without, cpu_seconds)
        try:
            self._held = self._found_to_hold(keeper)
        except BaseException:
            keeper.close()
            raise
        return keeper

    def _found_to_hold(self, keeper: Keeper) -> frozenset[str]:
        """The walls were raised; a worker now tries what they should refuse."""
        if "seccomp" in keeper.held:
            probe = Job("probe", "", list[str], {})
            answered = Talk(keeper, probe, [frame({})], self.limits).listen()
            if [outcome.value for outcome in answered.outcomes] != [[]]:
                return keeper.held - {"seccomp"}
        return keeper.held

    def _run_worker(self, job: Job[Shape], batch: list[bytes], careful: bool, closed_before: int) -> Answered:
        """Again where somebody else ended the worker before it began, or its zygote: no script is to blame for that."""
        with self._places:
            for _ in range(_MOST_STARTS):
                keeper = self._running(closed_before)
                try:
                    return Talk(keeper, job, batch, self.limits, careful).listen()
                except TooManyFiles:
                    raise
                except NeverBegan as error:
                    met: JailBroken = error
                except JailBroken as error:
                    met = error
                    self._forget(keeper)
            if isinstance(met, NeverBegan):
                ended = Failure("killed", str(met))
                return Answered(ended=ended) if batch else Answered(job_failure=ended)
            raise met

    def _forget(self, keeper: Keeper) -> None:
        with self._starting:
            keeper.close()
            if self._keeper is keeper:
                self._keeper = None


def _batch(items: list[dict[str, Any]]) -> list[bytes]:
    """Frames of the first items, as many as one worker shall take: it reads them all before it runs the first."""
    size = 0
    frames: list[bytes] = []
    for item in items[:_MOST_BATCH_ITEMS]:
        body = frame(item)
        size += len(body)
        if frames and size > _MOST_BATCH_BYTES:
            break
        frames.append(body)
    return frames


_ALL: weakref.WeakSet[Jail] = weakref.WeakSet()


def _start_over_in_child() -> None:
    for jail in list(_ALL):
        jail.start_over_in_child()


os.register_at_fork(after_in_child=_start_over_in_child)
