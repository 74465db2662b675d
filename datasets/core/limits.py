"""Limits on the size of files and rows, and on the number of values in a row.

A row with very many values would take many times its size in memory.
"""

import re
from dataclasses import dataclass
from itertools import islice

MEBIBYTE = 1024 * 1024

_BESIDE = rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"|[\[{]\s*+[\]}])*+'
_MARK = re.compile(_BESIDE + rb"[,\[{]", re.DOTALL)  # one match for each value except the outermost


@dataclass(frozen=True, slots=True)
class Limits:
    """Files and rows beyond these limits are rejected; for gzipped files, `unpacked_bytes` replaces `file_bytes`.

    `small_gzip_bytes`: what a gzipped file may unpack to, however small it is.
    """

    file_bytes: int = 4096 * MEBIBYTE
    unpacked_bytes: int = 4096 * MEBIBYTE
    small_gzip_bytes: int = 256 * MEBIBYTE
    row_bytes: int = 16 * MEBIBYTE
    row_values: int = 1_000_000
    rows: int = 5_000_000


def holds_more_values(text: bytes, most: int) -> bool:
    """Whether a JSON text contains more than `most` values, counting lists, objects and everything in them.

    In invalid JSON, only the part before the error counts. Nothing is stored, and most texts are too short to need a
    scan.
    """
    if len(text) < 2 * most - 1 or text.count(b",") + text.count(b"[") + text.count(b"{") < most:
        return False
    marks = iter(_MARK.scanner(text).match, None)  # type: ignore[attr-defined]  # each where the one before ended
    return any(True for _ in islice(marks, most - 1, None))
