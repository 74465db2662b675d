"""How much of a file is read at all, and how many values a row may hold.

A row of very many values would take many times its bytes of memory.
"""

import re
from dataclasses import dataclass
from itertools import islice

MEBIBYTE = 1024 * 1024

_BESIDE = rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"|[\[{]\s*+[\]}])*+'
_MARK = re.compile(_BESIDE + rb"[,\[{]", re.DOTALL)  # one for each value but the outermost


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
    marks = iter(_MARK.scanner(text).match, None)  # type: ignore[attr-defined]  # each where the one before ended
    return any(True for _ in islice(marks, most - 1, None))
