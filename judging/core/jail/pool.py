"""The jail as the rest of the program uses it: jobs and items in, outcomes out, from any thread."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from judging.core.jail.job import LAYERS, Failure, Job, Layer, Limits, Outcome, Shape
from judging.core.jail.keeper import JailBroken, Keeper
from judging.core.jail.protocol import BrokenProtocol, Frames, frame, read_reply

_WALL_FACTOR = 5
_GRACE_SECONDS = 0.5  # a worker ends its items' time itself; from here on it is ended
_SLACK_BYTES = 1 << 20
_BYTES_A_CHARACTER = 6  # the longest that JSON makes of one
_MOST_BATCH_BYTES = 32 << 20
_MOST_BATCH_ITEMS = 500


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
        self._places = threading.BoundedSemaphore(workers)
        self._starting = threading.Lock()
        self._keeper: Keeper | None = None
        self._held: frozenset[str] = frozenset()

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
        """One outcome per item, in order. JailRefused below the minimum level, JailBroken if the jail can't run."""
        if self.level < self._minimum_level:
            raise JailRefused(f"level {self.level} of isolation, at least {self._minimum_level} is asked for")
        outcomes: list[Outcome[Shape]] = []
        frames = [frame(item) for item in items]
        careful = False
        while len(outcomes) < len(frames):
            rest = frames[len(outcomes) :]
            batch = [rest[0]] if job.each_alone else _batch(rest)
            answered = self._run_worker(job, batch, careful)
            if answered.job_failure:
                return outcomes + [Outcome(None, answered.job_failure)] * len(rest)
            outcomes += answered.outcomes
            if answered.ended and (careful or len(batch) == 1):
                outcomes.append(Outcome(None, answered.ended))
            careful = careful or answered.ended is not None
        return outcomes

    def close(self) -> None:
        """Ends the jail's processes; a later use starts it anew."""
        with self._starting:
            if self._keeper:
                self._keeper.close()
            self._keeper = None

    def _running(self) -> Keeper:
        with self._starting:
            if self._keeper is None or self._keeper.owner != os.getpid():
                cpu_seconds = int((_MOST_BATCH_ITEMS + 1) * (self.limits.seconds + _GRACE_SECONDS)) + 1
                self._keeper = Keeper(self.limits, self._without, cpu_seconds)
                self._held = self._keeper.held
                self._distrust_what_does_not_hold(self._keeper)
            return self._keeper

    def _distrust_what_does_not_hold(self, keeper: Keeper) -> None:
        """The walls were raised; a worker now tries what they should refuse."""
        probe = Job("probe", "", list[str], {})
        if "seccomp" in self._held:
            answered = Talk(keeper, probe, [frame({})], self.limits).listen()
            if [outcome.value for outcome in answered.outcomes] != [[]]:
                self._held -= {"seccomp"}

    def _run_worker(self, job: Job[Shape], batch: list[bytes], careful: bool) -> "Answered":
        with self._places:
            keeper = self._running()
            try:
                return Talk(keeper, job, batch, self.limits, careful).listen()
            except JailBroken:
                self._forget(keeper)
                return Talk(self._running(), job, batch, self.limits, careful).listen()

    def _forget(self, keeper: Keeper) -> None:
        with self._starting:
            keeper.close()
            if self._keeper is keeper:
                self._keeper = None


def _batch(frames: list[bytes]) -> list[bytes]:
    """The first frames that one worker shall take: it reads them all before it runs the first."""
    size = 0
    for count, body in enumerate(frames[:_MOST_BATCH_ITEMS]):
        size += len(body)
        if count and size > _MOST_BATCH_BYTES:
            return frames[:count]
    return frames[:_MOST_BATCH_ITEMS]


@dataclass(frozen=True, slots=True)
class Answered:
    """What one worker brought: outcomes as far as it came, and what ended it before the last, if anything did.

    A careful worker was ended by the first item without an outcome. Another one may have been ended by a later
    item, with its replies to the ones before still unsent; those are asked again, carefully.
    """

    outcomes: list[Outcome[Any]] = field(default_factory=list)
    ended: Failure | None = None
    job_failure: Failure | None = None


class Talk:
    """One worker's life: the job and a batch sent, its replies read one by one under a watch."""

    def __init__(
        self, keeper: Keeper, job: Job[Any], batch: list[bytes], limits: Limits, careful: bool = False
    ) -> None:
        self._keeper, self._job, self._batch, self._limits = keeper, job, batch, limits
        self._careful = careful
        longest = limits.output_characters + limits.printed_characters + max(map(len, batch))
        self._frames = Frames(longest * _BYTES_A_CHARACTER + _SLACK_BYTES)
        self._spent = 0.0

    def listen(self) -> Answered:
        with self._worker():
            try:
                self._send()
                _, _, failure = self._next_reply()
            except _Ended as ended:
                return Answered(job_failure=ended.failure)
            return Answered(job_failure=failure) if failure else self._replies()

    @contextlib.contextmanager
    def _worker(self) -> Iterator[None]:
        self._number, self._channel = self._keeper.start_worker()
        self._status: int | None = None
        try:
            yield
        finally:
            self._channel.close()
            if self._status is None:
                self._keeper.dismiss_worker(self._number)

    def _send(self) -> None:
        job = self._job
        head = {"kind": job.kind, "source": job.source, "options": job.options, "items": len(self._batch)}
        head["careful"] = self._careful
        self._channel.settimeout(self._limits.seconds * _WALL_FACTOR)
        try:
            self._channel.sendall(b"".join((frame(head), *self._batch)))
        except OSError:
            raise self._death() from None

    def _replies(self) -> Answered:
        outcomes: list[Outcome[Any]] = []
        while len(outcomes) < len(self._batch):
            try:
                seconds, value, failure = self._next_reply()
            except _Ended as ended:
                return Answered(outcomes, ended.failure)
            outcomes.append(Outcome(value, failure, seconds))
        return Answered(outcomes)

    def _next_reply(self) -> tuple[float, Any, Failure | None]:
        try:
            spent, value, failure = read_reply(self._next_frame(), self._job)
        except BrokenProtocol as error:
            raise _Ended("protocol", f"the worker did not answer as agreed: {error}") from None
        seconds = max(0.0, spent - self._spent)
        self._spent = spent
        return seconds, value, failure

    def _next_frame(self) -> bytes:
        started = time.monotonic()
        patience = self._limits.seconds + _GRACE_SECONDS
        while (body := self._frames.take()) is None:
            left = started + self._limits.seconds * _WALL_FACTOR + _GRACE_SECONDS - time.monotonic()
            self._channel.settimeout(max(0.01, min(patience, left)))
            try:
                chunk = self._channel.recv(1 << 18)
            except TimeoutError:
                patience = self._processor_time_left() if left > 0 else 0.0
            except OSError:
                raise self._death() from None
            else:
                if not chunk:
                    raise self._death()
                self._frames.add(chunk)
                patience = patience if left > 0 else 0.0
            if patience <= 0:
                raise _Ended("timeout", f"more than {self._limits.seconds:g} seconds")
        return body

    def _processor_time_left(self) -> float:
        """By the worker's own account of its earlier items; lying makes this longer, never past the clock's limit."""
        used = self._keeper.processor_seconds(self._number) - self._spent
        return self._limits.seconds + _GRACE_SECONDS - used

    def _death(self) -> "_Ended":
        self._status = self._keeper.end_worker(self._number)
        return _Ended("killed", _how_it_ended(self._status))


class _Ended(Exception):
    """The worker is gone or not to be heard any more; the first item without a reply is to blame."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(code, message)


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"its process was ended by {signal.Signals(number).name}"
    return "its process ended itself"
