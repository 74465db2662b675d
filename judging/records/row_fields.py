"""Fields computed from a row's conversation, which every row has in addition to its custom fields."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from judging.core.writings import language_of

TURNS, LENGTH, LANGUAGE, FORMAT = "turns", "length", "language", "format"
"""The number of user messages, and of the last one the length, the language (as far as the script tells) and the
format. The format of answers is not a field: it is an outcome, and grouping by outcomes would be unfair."""
EVERY_ROW = (TURNS, LENGTH, LANGUAGE, FORMAT)
_LENGTHS = (100, 500, 2000, 10_000)  # bucket boundaries in characters


def computed_value(data: Mapping[str, Any], field: str) -> str | None:
    """A computed field of a row as templates see it; None for other fields."""
    if field == TURNS:
        return str(sum(message["role"] == "user" for message in data["messages"]))
    read = {LENGTH: length_of, LANGUAGE: language_of, FORMAT: format_of}.get(field)
    return read(data["question"] or "") if read else None


_FORMATS = {
    "code": re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE),
    "table": re.compile(r"^ *\|? *:?-+:? *\|[-:| ]*$", re.MULTILINE),
    "JSON": re.compile(r'[{\[]\s*"(?:[^"\\\n]|\\.)*"\s*[:,\]]'),
    "list": re.compile(r"(?:^[ \t]*(?:(?:[-*+•]|\d{1,3}[.)]) |\d{1,3}[、．）]).*\s*){2}", re.MULTILINE),
}
"""Patterns of formats; the first match counts. A list needs two consecutive entries."""
PLAIN = "plain text"


def format_of(text: str) -> str:
    """The format of a text: code, table, JSON, list or plain text."""
    return next((name for name, pattern in _FORMATS.items() if pattern.search(text)), PLAIN)


def length_of(text: str) -> str:
    """The length bucket of a text, in characters."""
    bucket = bisect_right(_LENGTHS, len(text))
    low = _LENGTHS[bucket - 1] if bucket else 0
    return f"{low}–{_LENGTHS[bucket] - 1}" if bucket < len(_LENGTHS) else f"{low}+"
