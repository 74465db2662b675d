"""Checks the nesting depth and size of a JSON text before it is parsed.

A short text can produce large objects: each value takes some 100 bytes, and deep nesting uses up the stack of any code
that walks it.
"""

from __future__ import annotations

import re

# Strings are matched as a whole, including an unfinished one.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
_OPENS, _CLOSES = frozenset(b"[{"), frozenset(b"]}")


class TooLarge(ValueError):
    """The JSON text exceeds a limit, which the message names."""


def check_json_size(text: bytes | bytearray, *, depth: int, marks: int) -> None:
    """Raises TooLarge if the text is nested more deeply, or has more strings, commas and brackets.

    Counting bytes is quick, and sufficient for nearly every text.
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
