"""How much of a file is read at all, and how many values a row may hold.

A row of very many values would take many times its bytes of memory.
"""

import re
from dataclasses import dataclass

MEBIBYTE = 1024 * 1024

_BESIDE = rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"|[\[{]\s*+[\]}])*+'
_MARK = rb"(?:" + _BESIDE + rb"[,\[{])"  # one for each value but the outermost
_AT_ONCE = 1_000
_MARKS = re.compile(_MARK + b"{%d}+" % _AT_ONCE, re.DOTALL)
_NEXT = re.compile(_MARK, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these a file or a row is refused with a finding; bytes are those of a packed file twice."""

    file_bytes: int = 4096 * MEBIBYTE
    unpacked_bytes: int = 4096 * MEBIBYTE
    row_bytes: int = 16 * MEBIBYTE
    row_values: int = 1_000_000
    rows: int = 5_000_000


def holds_more_values(text: bytes, most: int) -> bool:
    """Whether a JSON text holds more than `most` values; lists, objects and what is in them all count.

    Of a text that is no JSON the part before that shows is counted. Nothing is kept, and nearly all texts are too short
    to be looked at.
    """
    if len(text) < 2 * most - 1 or text.count(b",") + text.count(b"[") + text.count(b"{") < most:
        return False
    marks, at = 0, 0
    while marks <= most - _AT_ONCE and (found := _MARKS.match(text, at)):
        marks, at = marks + _AT_ONCE, found.end()
    while marks < most and (found := _NEXT.match(text, at)):
        marks, at = marks + 1, found.end()
    return marks >= most
