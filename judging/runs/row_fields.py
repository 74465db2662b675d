"""Fields that every row has, beside those of its own: computed from its conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TURNS, LENGTH = "turns", "length"
"""How many messages of the user there are, and how long the last of them is."""
EVERY_ROW = (TURNS, LENGTH)
_LENGTHS = (100, 500, 2000, 10_000)  # characters; the ends of buckets


def computed_value(data: Mapping[str, Any], field: str) -> str | None:
    """Of a row as templates see it; None for another field."""
    if field == TURNS:
        return str(sum(message["role"] == "user" for message in data["messages"]))
    return _bucket(len(data["question"] or "")) if field == LENGTH else None


def _bucket(length: int) -> str:
    below = [end for end in _LENGTHS if end <= length]
    above = [end for end in _LENGTHS if end > length]
    low = below[-1] if below else 0
    return f"{low}–{above[0] - 1}" if above else f"{low}+"
