"""One worker's life as the parent sees it: what it is sent, what it answers, what ended it."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from judging.core.jail.job import Failure, Job, Limits, Outcome
from judging.core.jail.keeper import JailBroken, Keeper
from judging.core.jail.protocol import MOST_REPLY_BYTES, BrokenProtocol, Frames, frame, read_reply

GRACE_SECONDS = 0.5  # a worker ends its items' time itself; from here on it is ended
_WALL_FACTOR = 5
_SLACK_BYTES = 1 << 20
_BYTES_A_CHARACTER = 6  # the longest that JSON makes of one
_TIMES_IN_PREVIEW = 2  # a preview shows its item as text and in pieces; all else repeats it once at most


class NeverBegan(JailBroken):
    """The worker was ended before it had read its job: by somebody else, for nothing of the job had run."""


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
        output = limits.output_characters + limits.printed_characters
        self._longest = output * _BYTES_A_CHARACTER + _SLACK_BYTES
        self._times_item = _TIMES_IN_PREVIEW if job.kind == "preview" else 1
        self._frames = Frames()
        self._received = 0  # bytes of replies
        self._spent = 0.0

    def listen(self) -> Answered:
        with self._worker():
            try:
                self._send()
                _, _, failure = self._next_reply(0)
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
                with contextlib.suppress(JailBroken):  # then it is dead already
                    self._keeper.dismiss_worker(self._number)

    def _send(self) -> None:
        job = self._job
        head = {"kind": job.kind, "source": job.source, "options": job.options, "items": len(self._batch)}
        head |= {
            "careful": self._careful,
            "longest": [self._longest_reply(size) for size in (0, *map(len, self._batch))],
        }
        self._channel.settimeout(self._limits.seconds * _WALL_FACTOR)
        try:
            self._channel.sendall(b"".join((frame(head), *self._batch)))
        except OSError:
            self._never_began()

    def _replies(self) -> Answered:
        """As many as fit into memory; the items that are left are another worker's."""
        outcomes: list[Outcome[Any]] = []
        for item in self._batch:
            try:
                seconds, value, failure = self._next_reply(len(item))
            except _Ended as ended:
                return Answered(outcomes, ended.failure)
            outcomes.append(Outcome(value, failure, seconds))
            if self._received > MOST_REPLY_BYTES:
                break
        return Answered(outcomes)

    def _next_reply(self, item_bytes: int) -> tuple[float, Any, Failure | None]:
        try:
            body = self._next_frame(self._longest_reply(item_bytes))
            self._received += len(body)
            spent, value, failure = read_reply(body, self._job)
        except BrokenProtocol as error:
            raise _Ended("protocol", f"the worker did not answer as agreed: {error}") from None
        seconds = max(0.0, spent - self._spent)
        self._spent = spent
        return seconds, value, failure

    def _longest_reply(self, item_bytes: int) -> int:
        """Bytes of a reply to the job (no item) or to an item. Workers keep to it; one that does not is ended.

        The output limit, and the item itself: an answer of a megabyte may be shown whole or shortened by a word.
        """
        return min(MOST_REPLY_BYTES, self._longest + self._times_item * item_bytes)

    def _next_frame(self, longest: int) -> bytearray:
        body = self._frames.take(longest)
        return self._awaited(longest) if body is None else body

    def _awaited(self, longest: int) -> bytearray:
        started = time.monotonic()
        patience = self._limits.seconds + GRACE_SECONDS
        while (body := self._frames.take(longest)) is None:
            left = started + self._limits.seconds * _WALL_FACTOR + GRACE_SECONDS - time.monotonic()
            self._channel.settimeout(max(0.01, min(patience, left)))
            try:
                chunk = self._channel.recv(1 << 18)
            except TimeoutError:
                patience = self._processor_time_left() if left > 0 else 0.0
            except ConnectionResetError:  # and no mere end: so there was something that it had not read
                self._never_began()
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
        return self._limits.seconds + GRACE_SECONDS - used

    def _never_began(self) -> NoReturn:
        self._death()
        raise NeverBegan("its process was ended before it began") from None

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
