"""Writes tables as CSV, Excel and Parquet files, holding only a batch of rows in memory.

openpyxl writes an Excel file row by row; pandas would need the whole table in memory (docs/decisions/dependencies.md).
"""

from __future__ import annotations

import codecs
import csv
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any
from unicodedata import east_asian_width

from evalsite.cells import cell, csv_cell, looks_like_formula

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

SHEET_ROWS = 1_048_576  # maximum per sheet
WIDTH_ROWS = 100  # at the beginning of a sheet, which decide the widths of its columns
NARROWEST, WIDEST = 9, 60  # characters of a column; the button of the filter takes three
CELL_LOOKED_AT = 200  # characters of a cell for its width
GROUP_ROWS = 10_000  # maximum per row group of a Parquet file
GROUP_CHARACTERS = 16 * 2**20
_BLOCK = 2**16
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # control characters not allowed in Excel files

Cell = str | int | float | date | None


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield a CSV file that is safe to open in a spreadsheet."""
    return csv_blocks([csv_cell(value) for value in row] for row in chain([columns], rows))


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


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table in an Excel file. `rows` is read once; beyond `most_rows`, with the header, it continues on further
    sheets."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    most_rows: int = SHEET_ROWS


def xlsx_of(*sheets: Sheet) -> Iterator[bytes]:
    """Yield an Excel file. It is written to disk first, since the beginning depends on the end."""
    with tempfile.TemporaryFile() as file:
        _write_xlsx(file, sheets)
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block


def _write_xlsx(file: IO[bytes], sheets: Sequence[Sheet]) -> None:
    from openpyxl import Workbook  # imported here: takes 60 ms and only exports need it

    book = Workbook(write_only=True)
    for sheet in sheets:
        _write_sheet(book, sheet)
    book.save(file)


def _write_sheet(book: Workbook, sheet: Sheet) -> None:
    """Write row by row; only the first rows, which decide the widths, are held in memory."""
    header = [_excel_cell(name) for name in sheet.columns]
    rows = ([_excel_cell(value) for value in row] for row in sheet.rows)
    first = list(islice(rows, WIDTH_ROWS))
    widths = [_width(cells) for cells in zip(header, *first, strict=True)]
    page, written, pages = _page(book, sheet.name, header, widths), 1, 1
    for row in chain(first, rows):
        if written == sheet.most_rows:
            _add_filter(page, len(header), written)
            pages += 1
            page, written = _page(book, f"{sheet.name} {pages}", header, widths), 1
        page.append([_typed(page, value) for value in row])
        written += 1
    _add_filter(page, len(header), written)


def _page(book: Workbook, name: str, header: Sequence[Cell], widths: Sequence[int]) -> WriteOnlyWorksheet:
    """A sheet with a header that stays in view; this and the widths are written before the first row."""
    page = book.create_sheet(name)
    page.freeze_panes = "A2"
    for number, width in enumerate(widths, 1):
        page.column_dimensions[_letters(number)].width = width
    page.append([_typed(page, name) for name in header])
    return page


def _add_filter(page: WriteOnlyWorksheet, columns: int, rows: int) -> None:
    page.auto_filter.ref = f"A1:{_letters(columns)}{rows}"


def _letters(number: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(number))


def _width(cells: Iterable[Cell]) -> int:
    """A column's width in characters that fits the longest line, within limits."""
    lines = (line for value in cells if value is not None for line in str(value)[:CELL_LOOKED_AT].split("\n"))
    return min(WIDEST, max(NARROWEST, max(map(_shown_width, lines), default=0) + 3))


def _shown_width(line: str) -> int:
    """The number of columns that a line takes; Chinese characters are twice as wide as Latin ones."""
    return len(line) + sum(
        east_asian_width(character) in "WF" for character in line if not character.isascii()
    )


def _excel_cell(value: Any) -> Cell:
    if isinstance(value, date):
        return value
    shown = cell(value)
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", shown) if isinstance(shown, str) else shown


def _typed(page: WriteOnlyWorksheet, value: Cell) -> Any:
    """The cell for a value. Text that would be a formula or an error is typed as text, also if it is edited there."""
    from openpyxl.cell import WriteOnlyCell

    if not isinstance(value, str) or not (looks_like_formula(value) or value.startswith("#")):
        return value
    typed = WriteOnlyCell(page, value)
    typed.data_type, typed.number_format = "s", "@"
    return typed


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
            columns_of_group = zip(schema.types, zip(*group, strict=True), strict=True)
            writer.write_batch(
                pa.record_batch([pa.array(cells, type) for type, cells in columns_of_group], schema=schema)
            )
            yield written.drain()
    yield written.drain()


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

    def drain(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        return content


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
