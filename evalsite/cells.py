"""Cells for spreadsheets: they contain no formulas and fit the size limits."""

from __future__ import annotations

import json
from typing import Any

CELL_CHARACTERS = 32_000  # a spreadsheet cell can contain 32,767
FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def cell(value: Any) -> str | int | float | None:
    """Convert a value to a cell: numbers unchanged, strings truncated and never a formula, anything else as JSON."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return no_formula(cut_text(clean_text(text), CELL_CHARACTERS))


def no_formula(text: str) -> str:
    """Prefix text that a spreadsheet would treat as a formula with an apostrophe."""
    return "'" + text if text.startswith(FORMULA_BEGINS) else text


def clean_text(text: str) -> str:
    """Replace NUL by U+FFFD and lone surrogates by a question mark."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def cut_text(text: str, most: int) -> str:
    """Truncate a text and append how many characters are missing."""
    return text if len(text) <= most else text[:most] + left_out(len(text) - most)


def left_out(count: int) -> str:
    """The end of a truncated text, with the number of missing characters."""
    return f"… [+{count}]"
