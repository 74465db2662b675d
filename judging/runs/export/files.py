"""Judgements as files: JSON Lines, CSV, Excel and Parquet. Memory holds a batch of them, however long the run.

openpyxl writes an Excel file row by row; pandas would need the whole table in memory (docs/decisions/dependencies.md).
"""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import IO, Any

from evalsite.cells import MARK, cell, clean_text
from judging.runs.export import json_export
from judging.runs.export.other_tools import every_eval_ever_lines, inspect_blocks
from judging.runs.export.records import records
from judging.runs.export.results import results_lines
from judging.runs.export.tables import table_columns, table_values
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import Run

RECORD_BYTES = 2 * 2**20  # spec: commands
SHEET_ROWS = 1_048_576  # that fit on a sheet
GROUP_ROWS = 10_000  # of a Parquet file
GROUP_CHARACTERS = 16 * 2**20
_BLOCK = 2**16

_WHOLE = ("line", "response", "attempt", "other_response", "shown_first", "repeat")
_NUMBERS = ("seconds", "score", "drawn_with")
_VALUES = ("value", "own_value", "adjudicated")
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # control characters that no Excel file can hold

Cell = str | int | float | None


def write_lines(lines: Iterable[bytes], path: Path) -> None:
    """Write to a draft beside `path` that then takes its place: the file is there whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines(lines)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def jsonl_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The records as lines of strict JSON in UTF-8, none over RECORD_BYTES."""
    return (json_export.dumps(one, RECORD_BYTES - 1) + b"\n" for one in records(run, filters))


def csv_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as CSV that a spreadsheet opens without computing anything, Chinese too."""
    return csv_blocks(table_columns(run), table_values(run, filters))


def csv_blocks(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    """CSV of these rows, some at a time."""
    buffer = StringIO()
    writer = csv.writer(buffer)
    yield MARK.encode()
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(value) for value in row])
        if buffer.tell() > _BLOCK:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def xlsx_blocks(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as an Excel file. It is made on disk, since its end must be known before its beginning."""
    with tempfile.TemporaryFile() as file:
        _write_xlsx(file, table_columns(run), table_values(run, filters))
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block


def _write_xlsx(file: IO[bytes], columns: list[str], rows: Iterable[list[Any]]) -> None:
    """Row by row; what does not fit on a sheet goes on the next."""
    from openpyxl import Workbook  # here: it takes 60 ms, which only an export needs

    book = Workbook(write_only=True)
    sheet, written = book.create_sheet(), 1
    sheet.append(columns)
    for row in rows:
        if written == SHEET_ROWS:
            sheet, written = book.create_sheet(), 1
            sheet.append(columns)
        sheet.append([_excel_cell(value) for value in row])
        written += 1
    book.save(file)


def _excel_cell(value: Any) -> Cell:
    shown = cell(value)
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", shown) if isinstance(shown, str) else shown


def parquet_blocks(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as a Parquet file: numbers as numbers, texts whole. Values are JSON, since one may be a number, a bool
    or a category; `score` is the value as a number, where it is one."""
    names = table_columns(run)
    return parquet_of([*names, "score"], _parquet_rows(run, filters, names))


def _parquet_rows(run: Run, filters: Filters, names: list[str]) -> Iterator[list[Cell]]:
    for values in table_values(run, filters):
        cells = [_parquet_cell(name, value) for name, value in zip(names, values, strict=True)]
        yield [*cells, _score(values[names.index("value")])]


def parquet_of(names: list[str], rows: Iterable[list[Cell]]) -> Iterator[bytes]:
    """A row group at a time, so that memory holds one group; any cell may be None."""
    import pyarrow as pa  # here: it takes 100 ms and 40 MB, which only an export needs
    from pyarrow.parquet import ParquetWriter

    types = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(name, types[_kind(name)]) for name in names])
    written = _Written()
    with ParquetWriter(pa.PythonFile(written, mode="w"), schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = zip(schema.types, zip(*group, strict=True), strict=True)
            writer.write_batch(
                pa.record_batch([pa.array(cells, type) for type, cells in columns], schema=schema)
            )
            yield written.taken()
    yield written.taken()


class _Written:
    """A file that is sent while it is written."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """What is written is there."""

    def close(self) -> None:
        """What was written is still to be taken."""

    def taken(self) -> bytes:
        found = b"".join(self._parts)
        self._parts.clear()
        return found


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


def _parquet_cell(name: str, value: Any) -> Cell:
    if value is None or _kind(name) is not str:
        return value if value is None or name not in _NUMBERS else float(value)
    if isinstance(value, str) and name not in _VALUES:
        return clean_text(value)
    return clean_text(json.dumps(value, ensure_ascii=False))


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


FORMS: dict[str, tuple[Callable[[Run, Filters], Iterator[bytes]], str]] = {
    "jsonl": (jsonl_lines, "application/x-ndjson"),
    "csv": (csv_lines, "text/csv; charset=utf-8"),
    "xlsx": (xlsx_blocks, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "parquet": (parquet_blocks, "application/vnd.apache.parquet"),
    "results": (results_lines, "application/x-ndjson"),
    "every_eval_ever": (every_eval_ever_lines, "application/x-ndjson"),
    "inspect": (inspect_blocks, "application/json"),
}
"""Each form of a file by its name: what makes it, and its media type."""

ENDINGS = {"results": "results.jsonl", "every_eval_ever": "samples.jsonl", "inspect": "inspect.json"}
"""The ends of the files' names; of other forms it is the form."""
