"""Cells for spreadsheets: they contain no formulas and fit the size limits."""

from __future__ import annotations

import json
import re
from typing import Any

CELL_CHARACTERS = 32_000  # a spreadsheet cell can contain 32,767
_FORMULA = re.compile(r"'*(?:[\t\r]|\s*[=+\-@＝＋－＠])")


def cell(value: Any) -> str | int | float | None:
    """Convert a value to a cell: numbers unchanged, texts cut to fit, anything else as JSON."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut_text(clean_text(text), CELL_CHARACTERS)


def csv_cell(value: Any) -> str | int | float | None:
    """The same for a file in which any text may be taken for a formula."""
    shown = cell(value)
    return no_formula(shown) if isinstance(shown, str) else shown


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet could treat the text as a formula, also one behind blanks or apostrophes."""
    return _FORMULA.match(text) is not None


def no_formula(text: str) -> str:
    """Prefix text that a spreadsheet could treat as a formula with an apostrophe.

    Text that begins with an apostrophe before such a sign gets a second, so that reading back one restores both.
    datasets/core/own_exports.py does that.
    """
    return "'" + text if looks_like_formula(text) else text


def clean_text(text: str) -> str:
    """Replace NUL by U+FFFD and lone surrogates by a question mark."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def cut_text(text: str, most: int) -> str:
    """Truncate a text and append how many characters are missing."""
    return text if len(text) <= most else text[:most] + left_out(len(text) - most)


def left_out(count: int) -> str:
    """The end of a truncated text, with the number of missing characters."""
    return f"… [+{count}]"
