"""Writes tables as CSV, Excel and Parquet files, holding only a batch of rows in memory.

openpyxl writes an Excel file row by row; pandas would need the whole table in memory (docs/decisions/dependencies.md).
"""

from __future__ import annotations

import codecs
import csv
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from typing import IO, Any

from evalsite.cells import cell

SHEET_ROWS = 1_048_576  # maximum per sheet
GROUP_ROWS = 10_000  # maximum per row group of a Parquet file
GROUP_CHARACTERS = 16 * 2**20
_BLOCK = 2**16
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # control characters not allowed in Excel files

Cell = str | int | float | None


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield a CSV file that is safe to open in a spreadsheet."""
    return csv_blocks([cell(value) for value in row] for row in chain([columns], rows))


def csv_blocks(rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield the rows, cells unchanged, as CSV in UTF-8."""
    yield codecs.BOM_UTF8  # Excel needs it to recognise UTF-8; on its own, so that a download starts at once
    buffer = StringIO()
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow(row)
        if buffer.tell() >= _BLOCK:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def xlsx_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield an Excel file. It is written to disk first, since the beginning depends on the end."""
    with tempfile.TemporaryFile() as file:
        _write_xlsx(file, columns, rows)
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block


def _write_xlsx(file: IO[bytes], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write row by row, continuing on further sheets if necessary."""
    from openpyxl import Workbook  # imported here: takes 60 ms and only exports need it

    book = Workbook(write_only=True)
    sheet, written = book.create_sheet(), 1
    header = [_excel_cell(name) for name in columns]
    sheet.append(header)
    for row in rows:
        if written == SHEET_ROWS:
            sheet, written = book.create_sheet(), 1
            sheet.append(header)
        sheet.append([_excel_cell(value) for value in row])
        written += 1
    book.save(file)


def _excel_cell(value: Any) -> Cell:
    shown = cell(value)
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", shown) if isinstance(shown, str) else shown


def parquet_of(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], types: Mapping[str, type]
) -> Iterator[bytes]:
    """Yield a Parquet file by row groups, holding one in memory; any cell may be None. Columns default to text."""
    import pyarrow as pa  # imported here: takes 100 ms and 40 MB, and only exports need it
    from pyarrow.parquet import ParquetWriter

    arrow = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(name, arrow[types.get(name, str)]) for name in columns])
    written = _Written()
    with ParquetWriter(pa.PythonFile(written, mode="w"), schema, compression="zstd") as writer:
        for group in _groups(rows):
            given = zip(schema.types, zip(*group, strict=True), strict=True)
            writer.write_batch(
                pa.record_batch([pa.array(cells, type) for type, cells in given], schema=schema)
            )
            yield written.taken()
    yield written.taken()


class _Written:
    """A write-only file whose content is sent while it is written."""

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
        """Nothing to flush."""

    def close(self) -> None:
        """Nothing to close: the content is still to be sent."""

    def taken(self) -> bytes:
        found = b"".join(self._parts)
        self._parts.clear()
        return found


def _groups(rows: Iterable[Sequence[Cell]]) -> Iterator[list[Sequence[Cell]]]:
    group: list[Sequence[Cell]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str))
        if len(group) == GROUP_ROWS or size > GROUP_CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group
