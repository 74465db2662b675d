"""How deep a JSON text is nested, and how much it holds, counted before anything is made of it.

A short text can make large objects: each value takes some 100 bytes, and a deep nest the stack of whoever walks it.
"""

from __future__ import annotations

import re

_MARKS = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL
)  # texts whole, an unfinished one too
_OPENS, _CLOSES = frozenset(b"[{"), frozenset(b"]}")


class TooLarge(ValueError):
    """The sentence says in which way."""


def check_json_size(text: bytes | bytearray, *, depth: int, marks: int) -> None:
    """Raises TooLarge for a deeper nest, or for more texts, commas and brackets.

    Counting bytes is quick, and enough for nearly every text.
    """
    opened = text.count(b"[") + text.count(b"{")
    if opened <= depth and 5 * (opened + text.count(b",") + 1) <= marks:
        return
    deep = 0
    for number, mark in enumerate(_MARKS.finditer(text)):
        kind = text[mark.start()]
        deep += (kind in _OPENS) - (kind in _CLOSES)
        if deep > depth:
            raise TooLarge(f"nested too deeply, at most {depth} levels are allowed")
        if number > marks:
            raise TooLarge(f"more than {marks} values and marks between them")
