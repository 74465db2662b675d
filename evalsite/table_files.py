"""Tables as Excel and Parquet files. Memory holds a batch of rows, however many there are.

openpyxl writes an Excel file row by row; pandas would need the whole table in memory (docs/decisions/dependencies.md).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from evalsite.cells import cell

SHEET_ROWS = 1_048_576  # that fit on a sheet
GROUP_ROWS = 10_000  # of a Parquet file
GROUP_CHARACTERS = 16 * 2**20
_BLOCK = 2**16
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # control characters that no Excel file can hold

Cell = str | int | float | None


def xlsx_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """An Excel file. It is made on disk, since its end must be known before its beginning."""
    with tempfile.TemporaryFile() as file:
        _write_xlsx(file, columns, rows)
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block


def _write_xlsx(file: IO[bytes], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Row by row; what does not fit on a sheet continues on the next."""
    from openpyxl import Workbook  # here: it takes 60 ms, which only an export needs

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
    """A row group at a time, so that memory holds one group; any cell may be None. A column without a type is text."""
    import pyarrow as pa  # here: it takes 100 ms and 40 MB, which only an export needs
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
