"""A worker: puts up its walls, prepares one source text, answers its items one by one, ends."""

import gc
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn, Protocol

from judging.core.jail import layers, probe, scripts, templates, walls
from judging.core.jail.failed import OutOfTime, WireFailure, describe
from judging.core.jail.jsontext import make_decoder, make_encoder
from judging.core.jail.seccomp import CHANNEL

_encode = make_encoder(allow_nan=False)
_decode = make_decoder()
_HEAD = struct.Struct(">I")
_MOST_HELD, _LONGEST_HELD = 1 << 14, 0.002  # bytes and seconds that replies may wait for others
_AGAIN = 0.2  # seconds until code that swallowed the end of its time is told again


class Handler(Protocol):
    """One kind of job: made from the job (preparing the source), then asked once per item."""

    def answer(self, raw: memoryview) -> Any:
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


def run(channel: int, zygote: int, confinement: walls.Confinement, seconds: float) -> NoReturn:
    """Never returns into the zygote's code, whatever happens."""
    try:
        layers.die_with_parent(zygote)
        layers.keep_only(channel)
        timer = Timer(seconds)
        walls.raise_around_worker(confinement)
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
    requests = Requests()
    job = _decode(requests.next())
    items = [requests.next() for _ in range(job["items"])]  # all of them, so that nobody waits for the other
    replies = Replies()
    handler, failure = attempt(lambda: HANDLERS[job["kind"]](job), timer, scripts.line_of)
    replies.add(None, failure)
    replies.send(careful=True)
    if handler is None:
        return
    for raw in items:
        value, failure = attempt(lambda raw=raw: handler.answer(raw), timer, handler.line_of)  # type: ignore[misc]
        replies.add(value, failure)
        replies.send(job["careful"])
    replies.send(careful=True)


def attempt(
    act: Callable[[], Any], timer: Timer, line_of: Callable[[TracebackType | None], int | None]
) -> tuple[Any, WireFailure | None]:
    try:
        with timer:
            return act(), None
    except BaseException as error:  # a script may raise anything, and it is all an answer
        return None, describe(error, line_of)


class Requests:
    """The parent's frames, as views on what was read: memory that is not copied need not be touched twice."""

    def __init__(self) -> None:
        self._held = memoryview(b"")

    def next(self) -> memoryview:
        (length,) = _HEAD.unpack(self._take(_HEAD.size))
        return self._take(length)

    def _take(self, size: int) -> memoryview:
        if len(self._held) < size:
            whole = bytearray(self._held)
            while len(whole) < size:
                whole += read_some()
            self._held = memoryview(whole)
        taken, self._held = self._held[:size], self._held[size:]
        return taken


def read_some() -> bytes:
    part = os.read(CHANNEL, 1 << 16)
    if not part:
        sys.exit()
    return part


class Replies:
    """Replies on their way out: together while they come fast, or (``careful``) each before the next item starts."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._sent_at = time.monotonic()

    def add(self, value: Any, failure: WireFailure | None) -> None:
        try:
            body = _encode([time.process_time(), value, failure]).encode()
        except (UnicodeEncodeError, ValueError, MemoryError, RecursionError) as error:
            body = _encode([time.process_time(), None, describe(error, lambda trace: None)]).encode()
        self._held += _HEAD.pack(len(body)) + body

    def send(self, careful: bool) -> None:
        if careful or len(self._held) > _MOST_HELD or time.monotonic() - self._sent_at > _LONGEST_HELD:
            message = bytes(self._held)
            while message:
                message = message[os.write(CHANNEL, message) :]
            self._held.clear()
            self._sent_at = time.monotonic()
