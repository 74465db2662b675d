"""A worker process: isolates itself, prepares one source text, answers its items one by one and exits."""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn, Protocol, TypeVar

from judging.core.sandbox import isolation, scripts, templates
from judging.core.sandbox.seccomp import CHANNEL
from judging.core.sandbox.wire import (
    HEAD,
    Frames,
    OutOfTime,
    Raw,
    WireFailure,
    describe,
    make_decoder,
    make_encoder,
)

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_encode = make_encoder(allow_nan=False)
_decode = make_decoder()
_MOST_HELD, _LONGEST_HELD = 1 << 14, 0.002  # bytes and seconds of replies to buffer
_LOOKS, _MOST_BETWEEN = 20, 0.1  # clock checks within the time limit; most seconds between two


class JobHandler(Protocol):
    """Handles one kind of job: created from the job, which prepares the source, then called once per item."""

    def answer(self, raw: Raw) -> Any:
        """The value for one item, which is given as JSON."""

    def line_of(self, trace: TracebackType | None) -> int | None:
        """The line of the source in a traceback."""


HANDLERS: dict[str, Callable[[dict[str, Any]], JobHandler]] = {
    "render": templates.Renderer,
    "preview": templates.Renderer,
    "names": templates.NameFinder,
    "preprocess": scripts.LoadedScript,
    "postprocess": scripts.LoadedScript,
    "probe": isolation.IsolationProbe,
}


def run(channel: int, zygote: int, confinement: isolation.Confinement, seconds: float) -> NoReturn:
    """Run the worker. Never returns into the zygote's code, whatever happens."""
    try:
        isolation.die_with_parent(zygote)
        isolation.keep_only(channel)
        watch = Watch(seconds)
        isolation.raise_around_worker(confinement)
        gc.enable()
        serve(watch)
    finally:
        os._exit(0)


class Watch:
    """Raises OutOfTime in the running code when an item has used up its processor time.

    A periodic timer checks the clock several times within the time limit, so that a batch of quick items does not set a
    timer for each. Code that catches OutOfTime is interrupted again at every further check.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.began = 0.0  # processor time when the item started
        self.is_running = False
        signal.signal(signal.SIGPROF, self._look)
        between = min(seconds / _LOOKS, _MOST_BETWEEN)
        signal.setitimer(signal.ITIMER_PROF, between, between)

    def _look(self, number: int, running: FrameType | None) -> None:
        if self.is_running and time.process_time() - self.began >= self._seconds:
            raise OutOfTime(f"more than {self._seconds:g} seconds of processor time")


def serve(watch: Watch) -> None:
    frames = Frames()
    job = _decode(next_frame(frames))
    items = [next_frame(frames) for _ in range(job["items"])]  # first, so that neither side blocks
    replies = Replies(watch, job["careful"])
    handler, failure = attempt(HANDLERS[job["kind"]], job, watch, scripts.line_of)
    longest = iter(job["longest"])
    replies.add(None, failure, next(longest))
    replies.send()
    if handler is None:
        return
    answer, line_of = handler.answer, handler.line_of
    for raw, most in zip(items, longest, strict=True):
        replies.add(*attempt(answer, raw, watch, line_of), most)
    replies.send()


def attempt(
    act: Callable[[Argument], Result],
    argument: Argument,
    watch: Watch,
    line_of: Callable[[TracebackType | None], int | None],
) -> tuple[Result | None, WireFailure | None]:
    try:
        watch.is_running = True
        try:
            return act(argument), None
        finally:
            watch.is_running = False
    except BaseException as error:  # a script may raise anything, and that is a valid answer
        return None, describe(error, line_of)


def next_frame(frames: Frames) -> bytearray:
    while (body := frames.take(sys.maxsize)) is None:
        part = os.read(CHANNEL, 1 << 16)
        if not part:
            sys.exit()
        frames.add(part)
    return body


class Replies:
    """Buffers replies while items are quick; with ``careful``, sends each before the next item starts."""

    def __init__(self, watch: Watch, careful: bool) -> None:
        self._watch = watch
        self._longest = -1.0 if careful else _LONGEST_HELD
        self._held = bytearray()
        self._sent_at = time.monotonic()

    def add(self, value: Any, failure: WireFailure | None, most: int) -> None:
        """Add the reply to an item, and start timing the next item. `most`: the maximum size of the reply in bytes."""
        self._watch.began = now = time.process_time()
        try:
            body = _encode([now, value, failure]).encode()
        except (UnicodeEncodeError, ValueError, MemoryError, RecursionError) as error:
            body = _encode([now, None, describe(error, lambda trace: None)]).encode()
        if len(body) > most:
            body = _encode([now, None, ("output", f"more than {most} bytes in all", None)]).encode()
        self._held += HEAD.pack(len(body))
        self._held += body
        if len(self._held) > _MOST_HELD or time.monotonic() - self._sent_at > self._longest:
            self.send()

    def send(self) -> None:
        message = bytes(self._held)
        while message:
            message = message[os.write(CHANNEL, message) :]
        self._held.clear()
        self._sent_at = time.monotonic()
