"""A run's judgements as a Parquet file: the columns of the table with numbers as numbers, and texts whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from evalsite.cells import clean_text
from judging.runs.export import table_columns, table_values
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import Run

_WHOLE = ("line", "response", "attempt", "other_response", "shown_first")
_NUMBERS = ("seconds", "score", "drawn_with")
_VALUES = ("value", "own_value", "adjudicated")

GROUP_ROWS = 10_000
GROUP_CHARACTERS = 16 * 2**20

Cell = str | int | float | None


def write_parquet(run: Run, path: Path, filters: Filters = ANYTHING) -> None:
    """Values are JSON, since one may be a number, a bool or a category; `score` is the value as a number, where it is
    one."""
    names = table_columns(run)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            write_rows(file, [*names, "score"], _rows(run, filters, names))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_rows(file: IO[bytes], names: list[str], rows: Iterable[list[Cell]]) -> None:
    """Write a row group at a time, so that memory holds one group; any cell may be None."""
    import pyarrow as pa  # here: it takes 100 ms and 40 MB, which only an export needs
    from pyarrow.parquet import ParquetWriter

    types = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(name, types[_kind(name)]) for name in names])
    with ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = zip(schema.types, zip(*group, strict=True), strict=True)
            writer.write_batch(
                pa.record_batch([pa.array(cells, type) for type, cells in columns], schema=schema)
            )


def _groups(rows: Iterable[list[Cell]]) -> Iterator[list[list[Cell]]]:
    group: list[list[Cell]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str))
        if len(group) == GROUP_ROWS or size > GROUP_CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _kind(name: str) -> type[str] | type[int] | type[float]:
    if name in _WHOLE:
        return int
    return float if name in _NUMBERS else str


def _rows(run: Run, filters: Filters, names: list[str]) -> Iterator[list[Cell]]:
    for values in table_values(run, filters):
        cells = [_cell(name, value) for name, value in zip(names, values, strict=True)]
        yield [*cells, _score(values[names.index("value")])]


def _cell(name: str, value: Any) -> Cell:
    if value is None or _kind(name) is not str:
        return value if value is None or name not in _NUMBERS else float(value)
    if isinstance(value, str) and name not in _VALUES:
        return clean_text(value)
    return clean_text(json.dumps(value, ensure_ascii=False))


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
