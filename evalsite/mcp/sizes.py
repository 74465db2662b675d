"""Results of tools that fit into an agent's context: pages with fewer items, and shortened texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MOST_BYTES = 20_000
LENGTHS = (4000, 1000, 300, 100)  # characters of a text, the first that lets the result fit
ENTRIES = (200, 50, 10)
CUT = "…"
Page = dict[str, Any]


def size_of(result: Any) -> int:
    """Bytes of a result as JSON."""
    return len(json.dumps(result, ensure_ascii=False).encode())


def fitting_page(fetch: Callable[[int], Page], limit: int) -> Page:
    """A page of a list with as many items as fit. `fetch`: the page with so many items; its `next` follows them."""
    while True:
        page = fetch(limit)
        if size_of(page) <= MOST_BYTES:
            return page
        if limit == 1:
            return fitting(page)
        limit = max(1, limit // 2)


def fitting(result: dict[str, Any]) -> dict[str, Any]:
    """The result, with its texts and then its lists shortened until it fits; `cut` says that something is missing."""
    if size_of(result) <= MOST_BYTES:
        return result
    for entries in ENTRIES:
        for length in LENGTHS:
            shorter = {**_shortened(result, length, entries), "cut": True}
            if size_of(shorter) <= MOST_BYTES:
                return shorter
    return {"cut": True, "keys": list(result)[: ENTRIES[-1]]}


def _shortened(value: Any, length: int, entries: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= length else value[:length] + CUT
    if isinstance(value, list):
        return [_shortened(entry, length, entries) for entry in value[:entries]]
    if isinstance(value, dict):
        return {key: _shortened(entry, length, entries) for key, entry in list(value.items())[:entries]}
    return value
