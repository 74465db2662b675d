"""The parent's side of the talk with a worker. Nothing that a worker says is trusted.

Both ways: frames of a four-byte big-endian length and that many bytes of JSON. To the worker: the job, then every
item. From it: one reply to the job, then one to each item, in order: ``[processor seconds, value, failure]`` with
``failure`` null or ``[code, message, line]``. A worker may forge all of it: codes are among those that workers have,
and integers have 64 bits, for nothing behind here expects others.
"""

import json
import re
import struct
from collections.abc import Hashable
from functools import lru_cache
from typing import Annotated, Any, Literal, cast

import msgspec

from judging.core.jail.job import Failure, Job
from judging.core.json_size import TooLarge, check_json_size

MOST_DEPTH = 200
MOST_REPLY_BYTES = 64 << 20  # also of all replies of one worker together, but for the last
MOST_MARKS = 500_000  # texts, commas and brackets of a reply
MOST_MESSAGE = 2000
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # made once: it is not cheap
_HEAD = struct.Struct(">I")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
FailureCode = Literal["syntax", "load", "exception", "undefined", "timeout", "memory", "output", "result"]
ToldFailure = tuple[FailureCode, str, Int64 | None]


class BrokenProtocol(Exception):
    """The worker said something that is no reply to what it was asked."""


def frame(message: Any) -> bytes:
    """One frame. Lone surrogates pass (a row may hold them until its finding is read); JSON's escapes do not."""
    try:
        body = msgspec.json.encode(message)
    except (UnicodeEncodeError, OverflowError, TypeError):  # half characters, integers beyond 64 bits
        body = _encode(message).encode("utf-8", "surrogatepass")
    return _HEAD.pack(len(body)) + body


class Frames:
    """Cuts a worker's bytes into frames."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._taken = 0  # of its bytes

    def add(self, chunk: bytes) -> None:
        del self._held[: self._taken]
        self._taken = 0
        self._held += chunk

    def take(self, longest: int) -> bytearray | None:
        """The next whole frame, or None if more bytes are needed. BrokenProtocol as soon as one is longer."""
        held = self._held
        begin = self._taken + _HEAD.size
        if len(held) < begin:
            return None
        length = int.from_bytes(held[self._taken : begin], "big")
        if length > longest:
            raise BrokenProtocol(f"a frame of {length} bytes, at most {longest} are allowed")
        end = begin + length
        if len(held) < end:
            return None
        self._taken = end
        return held[begin:end]

    @property
    def is_empty(self) -> bool:
        return self._taken == len(self._held)


@lru_cache(maxsize=32)
def _decoder(shape: Hashable) -> msgspec.json.Decoder[Any]:
    parts = (float, cast(Any, shape) | None, ToldFailure | None)
    return msgspec.json.Decoder(tuple.__class_getitem__(parts), strict=True)


def read_reply(body: bytes | bytearray, job: Job[Any]) -> tuple[float, Any, Failure | None]:
    """A reply to the job or to one item: seconds, value, failure; BrokenProtocol for anything else."""
    try:
        check_json_size(body, depth=MOST_DEPTH, marks=MOST_MARKS)
    except TooLarge as error:
        raise BrokenProtocol(str(error)) from None
    if b"\\u0000" in body and _NUL.search(body):
        raise BrokenProtocol("a NUL in a text")
    try:
        seconds, value, failure = _decoder(job.shape).decode(body)  # type: ignore[arg-type]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenProtocol(str(error)) from None
    if not 0 <= seconds < 1e9:
        raise BrokenProtocol("an impossible time")
    return (seconds, value, None) if failure is None else (seconds, None, failure_of(failure))


def failure_of(told: ToldFailure | None) -> Failure | None:
    """A failure as a worker told it, its message cut."""
    if told is None:
        return None
    code, message, line = told
    return Failure(code, message[:MOST_MESSAGE], line)
