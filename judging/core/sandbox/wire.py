"""The data that a worker exchanges with its parent: frames, failures, dotted names. Imports only the standard library.

A frame is a four-byte big-endian length and that many bytes of JSON.
"""

import json
import struct
import sys
import sysconfig
from collections.abc import Callable
from json import encoder
from types import TracebackType
from typing import Any

WireFailure = tuple[str, str, int | None]
Path = tuple[str | int, ...]
Raw = bytes | bytearray | memoryview  # a frame's JSON

HEAD = struct.Struct(">I")
_MOST_MESSAGE = 1000
_PLACES = sorted(
    {
        path
        for path in (*sys.path, *sysconfig.get_paths().values(), sys.prefix, sys.base_prefix)
        if len(path) > 1
    },
    key=len,
    reverse=True,
)


class ProtocolError(Exception):
    """A worker sent something that is not a valid reply."""


class OutOfTime(BaseException):
    """The item used up its processor time. Not an Exception, so that a script's handlers do not catch it."""


class Failed(Exception):
    """A failure that was detected rather than raised by Python, with a code and, if known, a line."""

    def __init__(self, code: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.code, self.line = code, line


class Frames:
    """Splits bytes into frames as they arrive."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._taken = 0  # bytes of `_held` already returned

    def add(self, chunk: bytes) -> None:
        del self._held[: self._taken]
        self._taken = 0
        self._held += chunk

    def take(self, longest: int) -> bytearray | None:
        """The next complete frame, or None if more bytes are needed. Raises ProtocolError if it is too long."""
        held = self._held
        begin = self._taken + HEAD.size
        if len(held) < begin:
            return None
        length = int.from_bytes(held[self._taken : begin], "big")
        if length > longest:
            raise ProtocolError(f"a frame of {length} bytes, at most {longest} are allowed")
        end = begin + length
        if len(held) < end:
            return None
        self._taken = end
        return held[begin:end]


def without_places(text: str) -> str:
    """The text without the server's paths, and without characters that JSON in UTF-8 cannot carry."""
    for place in _PLACES:
        text = text.replace(f"{place}/", "")
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def describe(error: BaseException, line_of: Callable[[TracebackType | None], int | None]) -> WireFailure:
    """Code, message and line of a failure. An exception's text is up to the script: it may raise, or be endless."""
    line = line_of(error.__traceback__)
    if isinstance(error, Failed):
        return error.code, str(error)[:_MOST_MESSAGE], error.line or line
    if isinstance(error, OutOfTime):
        return "timeout", str(error), line
    if isinstance(error, MemoryError):
        return "memory", "more memory than the limit per item", line
    return "exception", _quoted(error), line


def _quoted(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # the script's own __str__
        text = "(its text can't be shown)"
    return without_places(f"{name}: {text}" if text else name)[:_MOST_MESSAGE]


def dotted(path: Path) -> str:
    """`data.a[0]` for `("data", "a", 0)`."""
    first, *rest = path
    return str(first) + "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in rest)


def make_encoder(*, allow_nan: bool) -> Callable[[Any], str]:
    """A faster ``json.JSONEncoder(ensure_ascii=False).encode``; recursion limits replace the check for cycles."""
    refuse = json.JSONEncoder().default
    make = getattr(encoder, "c_make_encoder", None)  # not every interpreter has it
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, separators=(",", ":")).encode
    parts = make(None, refuse, encoder.encode_basestring, None, ":", ",", False, False, allow_nan)
    return lambda value: "".join(parts(value, 0))


def make_decoder(hook: Callable[[dict[str, Any]], Any] | None = None) -> Callable[[Raw], Any]:
    """A reader for one JSON text written by the parent; lone surrogates are allowed."""
    scan = json.JSONDecoder(object_hook=hook).scan_once  # type: ignore[attr-defined]
    return lambda raw: scan(str(raw, "utf-8", "surrogatepass"), 0)[0]
