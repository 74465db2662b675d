"""How an exception inside a worker becomes a failure that can be sent and read."""

import sys
import sysconfig
from collections.abc import Callable
from types import TracebackType

WireFailure = tuple[str, str, int | None]

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


class OutOfTime(BaseException):
    """The item used its processor time up. No Exception, so that a script's own handlers let it pass."""


class Failed(Exception):
    """A failure that was found, not met: it has its code, and its line where there is one."""

    def __init__(self, code: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.code, self.line = code, line


def without_places(text: str) -> str:
    """The text without the server's paths and without what JSON in UTF-8 can't carry."""
    for place in _PLACES:
        text = text.replace(f"{place}/", "")
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def describe(error: BaseException, line_of: Callable[[TracebackType | None], int | None]) -> WireFailure:
    """Code, message and line. Texts of exceptions are the script's too: they may raise, or be endless."""
    line = line_of(error.__traceback__)
    if isinstance(error, Failed):
        return error.code, str(error)[:_MOST_MESSAGE], error.line or line
    if isinstance(error, OutOfTime):
        return "timeout", str(error), line
    if isinstance(error, MemoryError):
        return "memory", "more memory than an item may use", line
    return "exception", _quoted(error), line


def _quoted(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # the script's own __str__
        text = "(its text can't be shown)"
    return without_places(f"{name}: {text}" if text else name)[:_MOST_MESSAGE]
