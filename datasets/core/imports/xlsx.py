"""Opens an XLSX sheet as a streamed table; memory holds one row of the sheet.

Formulas yield their stored result, and of merged cells only the first has the value; the cells without a value hold an
EmptyCell that says why.
"""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from xml.parsers.expat import ExpatError

from datasets.core.imports.archives import BROKEN, DIRECTORY_BYTES, directory_bytes, is_archive_with
from datasets.core.imports.columns import Record
from datasets.core.imports.merged_cells import MergedCells
from datasets.core.imports.model import BrokenRecord, NotUsable, SourceFile
from datasets.core.imports.sheet import SheetRow, sheet_rows, sheet_size
from datasets.core.imports.tables import MOST_COLUMNS, NO_RESULT, SourceTable, by_column, unique_names
from datasets.core.imports.workbook import SharedStrings, TooMuch, Workbook, read_workbook
from datasets.core.limits import MEBIBYTE, Limits

MOST_MEMBERS = 10_000
HEADER_WITHIN = 20
"""The header is the first row with two cells among this many rows, else the first row that is not empty."""
_FOLDS = 100
"""Sheets usually compress by a factor of ten to thirty; a higher factor than this indicates a zip bomb."""
_UNREADABLE = (*BROKEN, LookupError, ArithmeticError, ExpatError)
"""Exceptions raised for damaged files."""

SHEETS_SHOWN = 50
_COUNTED = 1_000
"""How many rows to count in a sheet that does not state its size."""
_FIRST = 3


@dataclass(frozen=True, slots=True)
class OpenWorkbook:
    """A workbook and its parts by the title of a sheet: rows; (rows, columns) as stated; merged cells of columns."""

    book: Workbook
    rows: Callable[[str], Iterator[SheetRow]]
    size: Callable[[str], tuple[int, int]]
    merged: Callable[[str, int], MergedCells]


def is_xlsx(file: SourceFile) -> bool:
    """Recognise XLSX by the members of the zip archive."""
    return is_archive_with(file, "xl/workbook.xml", "xl/styles.xml", "xl/sharedStrings.xml")


class _Opener:
    """Reopens the workbook for each read; its shared strings are read once, when first needed."""

    def __init__(self, file: SourceFile, limits: Limits) -> None:
        self._file, self._limits = file, limits
        self._strings: SharedStrings | None = None

    @contextmanager
    def __call__(self) -> Iterator[OpenWorkbook]:
        """Open the workbook. Raises NotUsable for any problem with the file, also while it is read."""
        try:
            with self._file.open_file() as source:
                _check_sizes(self._file, source, self._limits)
                with closing(zipfile.ZipFile(source)) as archive:
                    book = read_workbook(archive)

                    def text(number: int) -> str:
                        if self._strings is None:
                            self._strings = SharedStrings(archive, book.strings, self._limits.row_bytes)
                        return self._strings[number]

                    longest = self._limits.row_bytes
                    yield OpenWorkbook(
                        book,
                        lambda title: sheet_rows(archive, book.sheets[title], book, text, longest),
                        lambda title: sheet_size(archive, book.sheets[title]),
                        lambda title, columns: MergedCells(archive, book.sheets[title], columns),
                    )
        except TooMuch:
            raise NotUsable("too_large_unpacked", file=self._file.name) from None
        except _UNREADABLE as error:
            raise NotUsable("unreadable", finding="xlsx", file=self._file.name) from error


def _check_sizes(file: SourceFile, source: Any, limits: Limits) -> None:
    """Check the declared sizes of the members; zipfile never reads more than declared."""
    if directory_bytes(source) > DIRECTORY_BYTES:
        raise NotUsable("too_large_unpacked", file=file.name)
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
    most = min(limits.unpacked_bytes, max(64 * MEBIBYTE, _FOLDS * file.size))
    if sum(member.file_size for member in members) > most or len(members) > MOST_MEMBERS:
        raise NotUsable("too_large_unpacked", file=file.name)
    if any(member.flag_bits & 1 for member in members):
        raise NotUsable("encrypted", file=file.name)


def xlsx_table(file: SourceFile, limits: Limits, sheet: str = "") -> SourceTable:
    """Open the sheet with this name, else the first that looks like a table with two columns."""
    opened = _Opener(file, limits)
    with opened() as workbook:
        names, rows = list(workbook.book.sheets), workbook.rows
        if sheet and sheet not in names:
            raise NotUsable("no_such_sheet", sheet=sheet, sheets=", ".join(names[:50]))
        first = next((name for name in names if not sheet and _is_table(rows(name))), "")
        chosen = sheet or first or next(iter(names), "")
        header_row, header = _header(rows(chosen)) if chosen else (0, [])
        above = list(_above(rows(chosen), header_row)) if header else []
        others = [name for name in names if name != chosen and _holds_cells(rows(name))]
    if not header:
        raise NotUsable("no_rows", file=f"{file.name} · {sheet}" if sheet else file.name)
    columns = unique_names(header)

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        with opened() as workbook:
            merged: MergedCells | None = None
            for number, cells in workbook.rows(chosen):
                if isinstance(cells, BrokenRecord):
                    yield number, cells
                elif number > header_row and not _is_empty(cells):
                    if merged is None and _width(cells) < len(columns):
                        merged = workbook.merged(chosen, len(columns))
                    if merged is not None:
                        merged.mark(number, cells)
                    yield number, by_column(columns, cells)

    return SourceTable(columns, records, sheet=chosen, sheets=names, above=above, others=others)


@dataclass(frozen=True, slots=True)
class SheetPreview:
    """Preview of a sheet: its size without trailing empty rows, and its first non-empty rows.

    `more` is set if the sheet has further rows and does not state how many.
    """

    name: str
    rows: int
    columns: int
    more: bool
    first: list[list[Any]]


def xlsx_sheets(file: SourceFile, limits: Limits) -> list[SheetPreview]:
    """Previews of the first sheets of a workbook; raises NotUsable."""
    with _Opener(file, limits)() as workbook:
        names = islice(workbook.book.sheets, SHEETS_SHOWN)
        return [_preview(name, workbook.rows(name), partial(workbook.size, name)) for name in names]


def _preview(name: str, rows: Iterator[SheetRow], said: Callable[[], tuple[int, int]]) -> SheetPreview:
    """Preview a sheet; for a damaged one, whatever can be read."""
    last = widest = counted = 0
    first: list[list[Any]] = []
    with suppress(TooMuch, *_UNREADABLE):
        for number, cells in islice(rows, _COUNTED):
            counted += 1
            if isinstance(cells, BrokenRecord):
                last = number
            elif _width(cells):
                last, widest = number, max(widest, _last_cell(cells))
                first += [cells] if len(first) < _FIRST else []
    if counted < _COUNTED:
        return SheetPreview(name, last, widest, more=False, first=first)
    said_rows, said_columns = said()
    return SheetPreview(name, max(last, said_rows), max(widest, said_columns), said_rows <= last, first)


def _last_cell(cells: Sequence[Any]) -> int:
    """The number (from 1) of the last non-empty cell."""
    return max(number for number, cell in enumerate(cells, 1) if cell not in (None, ""))


def _width(cells: Sequence[Any] | BrokenRecord) -> int:
    if isinstance(cells, BrokenRecord):
        return 0
    return len(cells) - cells.count(None) - cells.count("")


def _is_empty(cells: Sequence[Any]) -> bool:
    """Whether a row has neither values nor formulas."""
    return not _width(cells) and not any(cell is NO_RESULT for cell in cells)


def _header(rows: Iterator[SheetRow]) -> tuple[int, list[Any]]:
    """The header's row number and its cells up to the last non-empty one; (0, []) if there is none."""
    first = [
        (number, list(cells))
        for number, cells in islice(rows, HEADER_WITHIN)
        if not isinstance(cells, BrokenRecord) and _width(cells)
    ]
    number, cells = next((row for row in first if _width(row[1]) > 1), first[0] if first else (0, []))
    while cells and cells[-1] in (None, ""):
        cells.pop()
    return number, cells[: MOST_COLUMNS + 1]


def _above(rows: Iterator[SheetRow], header: int) -> Iterator[tuple[int, str]]:
    """The texts of the rows above the header."""
    for number, cells in rows:
        if number >= header:
            return
        if not isinstance(cells, BrokenRecord) and _width(cells):
            yield number, " · ".join(str(cell) for cell in cells if cell not in (None, ""))


def _holds_cells(rows: Iterator[SheetRow]) -> bool:
    """Whether a sheet is not empty, or cannot be read."""
    try:
        return any(
            isinstance(cells, BrokenRecord) or _width(cells) for _number, cells in islice(rows, _COUNTED)
        )
    except (TooMuch, *_UNREADABLE):
        return True


def _is_table(rows: Iterator[SheetRow]) -> bool:
    return sum(_width(cells) > 1 for _number, cells in islice(rows, HEADER_WITHIN)) > 1
