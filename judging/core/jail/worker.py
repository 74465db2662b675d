"""A worker: puts up its walls, prepares one source text, answers its items one by one, ends."""

import gc
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, NoReturn, Protocol

from judging.core.jail import layers, probe, scripts, templates, walls
from judging.core.jail.failed import OutOfTime, WireFailure, describe
from judging.core.jail.seccomp import CHANNEL

_HEAD = struct.Struct(">I")
_AGAIN = 0.2  # seconds until code that swallowed the end of its time is told again


class Handler(Protocol):
    """One kind of job: made from the job (preparing the source), then asked once per item."""

    def answer(self, raw: bytes) -> Any:
        """The value for one item, given as JSON."""

    def line_of(self, trace: TracebackType | None) -> int | None:
        """The source's own line in a traceback."""


HANDLERS: dict[str, Callable[[dict[str, Any]], Handler]] = {
    "render": templates.Renderer,
    "preview": templates.Renderer,
    "names": templates.NameFinder,
    "preprocess": scripts.Script,
    "postprocess": scripts.Script,
    "probe": probe.Probe,
}


def run(
    channel: int, zygote: int, cpu_seconds: int, confinement: walls.Confinement, seconds: float
) -> NoReturn:
    """Never returns into the zygote's code, whatever happens."""
    try:
        layers.die_with_parent(zygote)
        layers.keep_only(channel)
        timer = Timer(seconds)
        walls.raise_around_worker(confinement, cpu_seconds)
        gc.enable()
        serve(timer)
    finally:
        os._exit(0)


class Timer:
    """Raises OutOfTime in the code that runs when an item has used its processor time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        signal.signal(signal.SIGPROF, self._ring)

    def _ring(self, number: int, running: FrameType | None) -> NoReturn:
        raise OutOfTime(f"more than {self._seconds:g} seconds of processor time")

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, self._seconds, _AGAIN)

    def __exit__(self, *exception: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def serve(timer: Timer) -> None:
    frames = read_frames()
    job = json.loads(next(frames))
    items = [next(frames) for _ in range(job["items"])]
    handler, failure = attempt(lambda: HANDLERS[job["kind"]](job), timer, script_line)
    write_reply(None, failure)
    if handler is None:
        return
    for raw in items:
        value, failure = attempt(lambda raw=raw: handler.answer(raw), timer, handler.line_of)  # type: ignore[misc]
        write_reply(value, failure)


def script_line(trace: TracebackType | None) -> int | None:
    return scripts.line_of(trace)


def attempt(
    act: Callable[[], Any], timer: Timer, line_of: Callable[[TracebackType | None], int | None]
) -> tuple[Any, WireFailure | None]:
    try:
        with timer:
            return act(), None
    except BaseException as error:  # a script may raise anything, and it is all an answer
        return None, describe(error, line_of)


def read_frames() -> Iterator[bytes]:
    while True:
        (length,) = _HEAD.unpack(read_exactly(_HEAD.size))
        yield read_exactly(length)


def read_exactly(length: int) -> bytes:
    parts = []
    while length:
        part = os.read(CHANNEL, min(length, 1 << 20))
        if not part:
            sys.exit()
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def write_reply(value: Any, failure: WireFailure | None) -> None:
    try:
        body = encode([time.process_time(), value, failure])
    except (UnicodeEncodeError, ValueError, MemoryError, RecursionError) as error:
        body = encode([time.process_time(), None, describe(error, lambda trace: None)])
    message = memoryview(_HEAD.pack(len(body)) + body)
    while message:
        message = message[os.write(CHANNEL, message) :]


def encode(reply: Any) -> bytes:
    return json.dumps(reply, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
