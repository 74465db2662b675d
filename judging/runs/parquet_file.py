"""A run's judgements as a Parquet file: the columns of the table with numbers as numbers, and texts whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalsite.cells import clean_text
from judging.core import parquet
from judging.runs.export import table_columns, table_values
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import Run

_WHOLE = ("line", "response", "attempt", "other_response", "shown_first")
_NUMBERS = ("seconds", "score", "drawn_with")
_VALUES = ("value", "own_value", "adjudicated")


def write_parquet(run: Run, path: Path, filters: Filters = ANYTHING) -> None:
    """Values are JSON, since one may be a number, a bool or a category; `score` is the value as a number, where it is
    one."""
    names = table_columns(run)
    columns = [(name, _kind(name)) for name in names] + [("score", _kind("score"))]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            parquet.write(file, columns, _rows(run, filters, names))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _kind(name: str) -> parquet.Kind:
    if name in _WHOLE:
        return "whole"
    return "number" if name in _NUMBERS else "text"


def _rows(run: Run, filters: Filters, names: list[str]) -> Iterator[list[parquet.Cell]]:
    for values in table_values(run, filters):
        cells = [_cell(name, value) for name, value in zip(names, values, strict=True)]
        yield [*cells, _score(values[names.index("value")])]


def _cell(name: str, value: Any) -> parquet.Cell:
    if value is None or _kind(name) != "text":
        return value if value is None or name not in _NUMBERS else float(value)
    if isinstance(value, str) and name not in _VALUES:
        return clean_text(value)
    return clean_text(json.dumps(value, ensure_ascii=False))


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
