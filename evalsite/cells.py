"""Cells for spreadsheets: they contain no formulas and fit the size limits."""

from __future__ import annotations

import json
from typing import Any

MARK = "\ufeff"
"""At the beginning of a CSV: without it Excel takes Chinese for Latin."""

CELL_CHARACTERS = 32_000  # a spreadsheet's cell holds 32,767
FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def cell(value: Any) -> str | int | float | None:
    """A number as it is; a text cut to a cell, and never a formula; anything else as JSON."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return no_formula(cut_text(clean_text(text), CELL_CHARACTERS))


def no_formula(text: str) -> str:
    """With an apostrophe before text that a spreadsheet would take for a formula."""
    return "'" + text if text.startswith(FORMULA_BEGINS) else text


def clean_text(text: str) -> str:
    """With U+FFFD in place of NUL and a question mark in place of half a character."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def cut_text(text: str, most: int) -> str:
    """The text, or its beginning and how much is left out."""
    return text if len(text) <= most else text[:most] + left_out(len(text) - most)


def left_out(count: int) -> str:
    """The end of a cut text: how many characters are missing."""
    return f"… [+{count}]"
