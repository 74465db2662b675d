"""The parent's side of one worker: sends requests, reads replies, and finds out how the worker ended.

The worker gets the job, then each item, as frames (wire.py). It sends one reply to the job, then one to each item, in
order: ``[processor seconds, value, failure]`` with ``failure`` null or ``[code, message, line]``. A worker can forge
all of it, so replies are not trusted: codes must be known ones and integers are limited to 64 bits, because the rest of
the program relies on both.
"""

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NoReturn, cast

import msgspec

from judging.core.json_size import TooLarge, check_json_size
from judging.core.sandbox.job import Job, JobOutcome, SandboxBroken, SandboxFailure, SandboxLimits
from judging.core.sandbox.supervisor import ZygoteSupervisor
from judging.core.sandbox.wire import HEAD, Frames, ProtocolError

MOST_DEPTH = 200
MOST_REPLY_BYTES = 64 << 20  # also the limit for all replies of a worker together, except the last
MOST_MARKS = 500_000  # strings, commas and brackets in a reply
MOST_MESSAGE = 2000
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # slow to create
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")

GRACE_SECONDS = 0.5  # a worker enforces the time limit itself; after this long it is killed
_WALL_FACTOR = 5
_SLACK_BYTES = 1 << 20
_BYTES_A_CHARACTER = 6  # the longest JSON escape
_TIMES_IN_PREVIEW = 2  # a preview returns its item as text and in pieces; other jobs return it at most once

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
FailureCode = Literal["syntax", "load", "exception", "undefined", "timeout", "memory", "output", "result"]
ReportedFailure = tuple[FailureCode, str, Int64 | None]


def frame(message: Any) -> bytes:
    """Encode a frame. Lone surrogates are encoded as they are, because an invalid row can contain them."""
    try:
        body = msgspec.json.encode(message)
    except (UnicodeEncodeError, OverflowError, TypeError):  # lone surrogates, integers beyond 64 bits
        body = _encode(message).encode("utf-8", "surrogatepass")
    return HEAD.pack(len(body)) + body


_decoders: dict[Hashable, msgspec.json.Decoder[Any]] = {}
_building = threading.Lock()


def _decoder(shape: Hashable) -> msgspec.json.Decoder[Any]:
    if shape not in _decoders:
        parts = (float, cast(Any, shape) | None, ReportedFailure | None)
        with _building:  # msgspec crashes if two threads build the first decoder of a Struct at the same time
            _decoders[shape] = msgspec.json.Decoder(tuple.__class_getitem__(parts), strict=True)
    return _decoders[shape]


def read_reply(body: bytes | bytearray, job: Job[Any]) -> tuple[float, Any, SandboxFailure | None]:
    """Parse a reply to the job or to one item: seconds, value, failure. Raises ProtocolError if it is invalid."""
    try:
        check_json_size(body, depth=MOST_DEPTH, marks=MOST_MARKS)
    except TooLarge as error:
        raise ProtocolError(str(error)) from None
    if b"\\u0000" in body and _NUL.search(body):
        raise ProtocolError("a NUL in a text")
    try:
        seconds, value, failure = _decoder(job.shape).decode(body)  # type: ignore[arg-type]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(str(error)) from None
    if not 0 <= seconds < 1e9:
        raise ProtocolError("an impossible time")
    return (seconds, value, None) if failure is None else (seconds, None, failure_of(failure))


def failure_of(reported: ReportedFailure | None) -> SandboxFailure | None:
    """A failure as reported by a worker, with its message truncated."""
    if reported is None:
        return None
    code, message, line = reported
    return SandboxFailure(code, message[:MOST_MESSAGE], line)


class NeverBegan(SandboxBroken):
    """The worker was killed before it had read its job, so the job is not the cause."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of one worker: the outcomes so far, and the failure that ended it early, if any.

    A careful worker was ended by the first item without an outcome. Any other worker may have been ended by a later
    item, with replies to earlier ones still unsent; those items are run again by a careful worker.
    """

    outcomes: list[JobOutcome[Any]] = field(default_factory=list)
    ended: SandboxFailure | None = None
    job_failure: SandboxFailure | None = None


class WorkerSession:
    """Sends a worker its job and a batch, and reads the replies one by one within the time limit."""

    def __init__(
        self,
        supervisor: ZygoteSupervisor,
        job: Job[Any],
        batch: list[bytes],
        limits: SandboxLimits,
        careful: bool = False,
    ) -> None:
        self._supervisor, self._job, self._batch, self._limits = supervisor, job, batch, limits
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
        self._number, self._channel = self._supervisor.start_worker()
        self._status: int | None = None
        try:
            yield
        finally:
            self._channel.close()
            if self._status is None:
                with contextlib.suppress(SandboxBroken):  # it is dead already then
                    self._supervisor.dismiss_worker(self._number)

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
        """As many replies as fit into memory; the remaining items go to another worker."""
        outcomes: list[JobOutcome[Any]] = []
        for item in self._batch:
            try:
                seconds, value, failure = self._next_reply(len(item))
            except _Ended as ended:
                return Answered(outcomes, ended.failure)
            outcomes.append(JobOutcome(value, failure, seconds))
            if self._received > MOST_REPLY_BYTES:
                break
        return Answered(outcomes)

    def _next_reply(self, item_bytes: int) -> tuple[float, Any, SandboxFailure | None]:
        try:
            body = self._next_frame(self._longest_reply(item_bytes))
            self._received += len(body)
            spent, value, failure = read_reply(body, self._job)
        except ProtocolError as error:
            raise _Ended("protocol", f"unexpected reply from the sandbox process: {error}") from None
        seconds = max(0.0, spent - self._spent)
        self._spent = spent
        return seconds, value, failure

    def _longest_reply(self, item_bytes: int) -> int:
        """Maximum size in bytes of a reply to the job (no item) or to an item. A worker that exceeds it is killed.

        The output limit plus the size of the item, because a template may output a long answer in full.
        """
        return min(MOST_REPLY_BYTES, self._longest + self._times_item * item_bytes)

    def _next_frame(self, longest: int) -> bytearray:
        body = self._frames.take(longest)
        return self._awaited(longest) if body is None else body

    def _awaited(self, longest: int) -> bytearray:
        started = time.monotonic()
        wait = self._limits.seconds + GRACE_SECONDS
        while (body := self._frames.take(longest)) is None:
            left = started + self._limits.seconds * _WALL_FACTOR + GRACE_SECONDS - time.monotonic()
            self._channel.settimeout(max(0.01, min(wait, left)))
            try:
                chunk = self._channel.recv(1 << 18)
            except TimeoutError:
                wait = self._processor_time_left() if left > 0 else 0.0
            except ConnectionResetError:  # reset rather than closed: the worker had not read everything
                self._never_began()
            except OSError:
                raise self._death() from None
            else:
                if not chunk:
                    raise self._death()
                self._frames.add(chunk)
                wait = wait if left > 0 else 0.0
            if wait <= 0:
                raise _Ended("timeout", f"more than {self._limits.seconds:g} seconds")
        return body

    def _processor_time_left(self) -> float:
        """Computed from the times that the worker reported; false ones extend it to the elapsed-time limit at most."""
        used = self._supervisor.processor_seconds(self._number) - self._spent
        return self._limits.seconds + GRACE_SECONDS - used

    def _never_began(self) -> NoReturn:
        self._death()
        raise NeverBegan("its process was killed before it started") from None

    def _death(self) -> "_Ended":
        self._status = self._supervisor.end_worker(self._number)
        return _Ended("killed", _how_it_ended(self._status))


class _Ended(Exception):
    """The worker is gone or out of sync; the first item without a reply is the cause."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = SandboxFailure(code, message)


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"its process was killed by {signal.Signals(number).name}"
    return "its process exited"
