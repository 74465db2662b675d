"""XLSX as a table, streamed: memory holds one row of the sheet.

A formula is what it last came to, empty if that is not stored; of merged cells only the first one has the value.
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
from datasets.core.imports.model import NotUsable, SourceFile
from datasets.core.imports.sheet import SheetRow, sheet_rows, sheet_size
from datasets.core.imports.tables import MOST_COLUMNS, BrokenRecord, Table, by_column, unique_names
from datasets.core.imports.workbook import SharedStrings, TooMuch, Workbook, read_workbook
from datasets.core.limits import MEBIBYTE, Limits

MOST_MEMBERS = 10_000
HEADER_WITHIN = 20
"""The header is the first of so many rows that has two cells; else the first row that has any."""
_FOLDS = 100
"""A sheet packs ten to thirty times; what claims more than this is made to fill memory."""
_UNREADABLE = (*BROKEN, LookupError, ArithmeticError, ExpatError)
"""What is raised of broken files."""

SHEETS_SHOWN = 50
_COUNTED = 1_000
"""Rows of a sheet that are counted where it does not say how many it has."""
_FIRST = 3

Rows = Callable[[str], Iterator[SheetRow]]
"""The rows of the sheet with this title."""
Size = Callable[[str], tuple[int, int]]
"""How many rows and columns that sheet says it has."""


def is_xlsx(file: SourceFile) -> bool:
    """By the zip's list of members."""
    return is_archive_with(file, "xl/workbook.xml", "xl/styles.xml", "xl/sharedStrings.xml")


class _Opener:
    """Opens the workbook again for each reading; its shared strings are read once, when a cell wants one."""

    def __init__(self, file: SourceFile, limits: Limits) -> None:
        self._file, self._limits = file, limits
        self._strings: SharedStrings | None = None

    @contextmanager
    def __call__(self) -> Iterator[tuple[Workbook, Rows, Size]]:
        """Raises NotUsable for whatever is wrong with the file, also while it is read."""
        try:
            with self._file.open_file() as source:
                _check_sizes(self._file, source, self._limits)
                with closing(zipfile.ZipFile(source)) as archive:
                    book = read_workbook(archive)

                    def text(number: int) -> str:
                        if self._strings is None:
                            self._strings = SharedStrings(archive, book.strings, self._limits.row_bytes)
                        return self._strings[number]

                    yield (
                        book,
                        lambda title: sheet_rows(
                            archive, book.sheets[title], book, text, self._limits.row_bytes
                        ),
                        lambda title: sheet_size(archive, book.sheets[title]),
                    )
        except TooMuch:
            raise NotUsable("too_large_unpacked", file=self._file.name) from None
        except _UNREADABLE as error:
            raise NotUsable("unreadable", finding="xlsx", file=self._file.name) from error


def _check_sizes(file: SourceFile, source: Any, limits: Limits) -> None:
    """What the members claim to unfold to is what zipfile reads at most of each."""
    if directory_bytes(source) > DIRECTORY_BYTES:
        raise NotUsable("too_large_unpacked", file=file.name)
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
    most = min(limits.unpacked_bytes, max(64 * MEBIBYTE, _FOLDS * file.size))
    if sum(one.file_size for one in members) > most or len(members) > MOST_MEMBERS:
        raise NotUsable("too_large_unpacked", file=file.name)
    if any(one.flag_bits & 1 for one in members):
        raise NotUsable("encrypted", file=file.name)


def xlsx_table(file: SourceFile, limits: Limits, sheet: str = "") -> Table:
    """The sheet of this name, else the first that has two columns and rows below them."""
    opened = _Opener(file, limits)
    with opened() as (book, rows, _size):
        names = list(book.sheets)
        if sheet and sheet not in book.sheets:
            raise NotUsable("no_such_sheet", sheet=sheet, sheets=", ".join(names[:50]))
        first = next((name for name in names if not sheet and _is_table(rows(name))), "")
        chosen = sheet or first or next(iter(names), "")
        header_row, header = _header(rows(chosen)) if chosen else (0, [])
    if not header:
        raise NotUsable("no_rows", file=f"{file.name} · {sheet}" if sheet else file.name)
    columns = unique_names(header)

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        with opened() as (_book, again, _size):
            for number, cells in again(chosen):
                if isinstance(cells, BrokenRecord):
                    yield number, cells
                elif number > header_row and _width(cells):
                    yield number, by_column(columns, cells)

    return Table(columns, records, sheet=chosen, sheets=names)


@dataclass(frozen=True, slots=True)
class SheetLook:
    """A sheet before anyone chooses it: its size without empty rows at its end, and its first rows that hold anything.

    `more`: it has more rows than these, and does not say how many.
    """

    name: str
    rows: int
    columns: int
    more: bool
    first: list[list[Any]]


def xlsx_sheets(file: SourceFile, limits: Limits) -> list[SheetLook]:
    """The first sheets of a workbook; raises NotUsable."""
    with _Opener(file, limits)() as (book, rows, size):
        return [_look(name, rows(name), partial(size, name)) for name in islice(book.sheets, SHEETS_SHOWN)]


def _look(name: str, rows: Iterator[SheetRow], said: Callable[[], tuple[int, int]]) -> SheetLook:
    """Of a sheet that is damaged what can be read."""
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
        return SheetLook(name, last, widest, more=False, first=first)
    said_rows, said_columns = said()
    return SheetLook(name, max(last, said_rows), max(widest, said_columns), said_rows <= last, first)


def _last_cell(cells: Sequence[Any]) -> int:
    """The number of the last cell that holds something."""
    return max(number for number, cell in enumerate(cells, 1) if cell not in (None, ""))


def _width(cells: Sequence[Any] | BrokenRecord) -> int:
    if isinstance(cells, BrokenRecord):
        return 0
    return len(cells) - cells.count(None) - cells.count("")


def _header(rows: Iterator[SheetRow]) -> tuple[int, list[Any]]:
    """The number of the header's row and its cells as far as the last that holds something; (0, []) without any."""
    first = [
        (number, list(cells))
        for number, cells in islice(rows, HEADER_WITHIN)
        if not isinstance(cells, BrokenRecord) and _width(cells)
    ]
    number, cells = next((row for row in first if _width(row[1]) > 1), first[0] if first else (0, []))
    while cells and cells[-1] in (None, ""):
        cells.pop()
    return number, cells[: MOST_COLUMNS + 1]


def _is_table(rows: Iterator[SheetRow]) -> bool:
    return sum(_width(cells) > 1 for _number, cells in islice(rows, HEADER_WITHIN)) > 1
