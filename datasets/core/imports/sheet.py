"""Streams the rows of one worksheet; memory holds the rows in a few kilobytes of the file."""

import datetime
import re
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from datasets.core.imports.model import BrokenRecord
from datasets.core.imports.tables import NO_RESULT, CellError
from datasets.core.imports.workbook import WIDEST, TooMuch, Workbook, column_number, local, parsed

MOST_ROWS = 1_048_576
_REFERENCE = re.compile(r"([A-Z]{1,3})[0-9]*")

_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\s[^>]*?ref=\"(?:[A-Z]+[0-9]+:)?([A-Z]{1,3})([0-9]{1,7})\"")
_BEGINNING = 4096
"""The dimension element, if any, is at the start of a sheet."""

SheetRow = tuple[int, list[Any] | BrokenRecord]
"""(number from 1, values from column 1 or the reason there are none); empty rows and cells may be absent."""


def sheet_rows(
    archive: zipfile.ZipFile, member: str, book: Workbook, text: Callable[[int], str], most: int
) -> Iterator[SheetRow]:
    """Yield rows; `text` looks up shared strings, `most` limits characters per row. Raises as `parsed`."""
    reader = _Reader(book, most)
    for _some in parsed(archive, member, reader.start, reader.end, reader.text):
        while reader.rows:
            number, cells, shared = reader.rows.popleft()
            if number > MOST_ROWS:
                return
            yield number, _with_texts(cells, shared, text, most)


def _with_texts(
    cells: list[Any] | None, shared: dict[int, int], text: Callable[[int], str], most: int
) -> list[Any] | BrokenRecord:
    """Fill in shared strings, counting their length, as one long string may be used in millions of cells."""
    if cells is None:
        return BrokenRecord("too_large")
    for column, number in shared.items():
        content = text(number)
        most -= len(content)
        if most < 0:
            return BrokenRecord("too_large")
        cells[column] = _unescaped(content)
    return cells


def sheet_size(archive: zipfile.ZipFile, member: str) -> tuple[int, int]:
    """(rows, columns) as stated by the sheet; (0, 0) if it does not state them."""
    with archive.open(member) as stream:
        match = _DIMENSION.search(stream.read(_BEGINNING))
    return (int(match[2]), min(column_number(match[1].decode()), WIDEST)) if match else (0, 0)


class _Reader:
    """Builds rows from expat events.

    `rows`: (number, cells or None if too large, {index of a cell: shared string number}).
    """

    def __init__(self, book: Workbook, most: int) -> None:
        self.rows: deque[tuple[int, list[Any] | None, dict[int, int]]] = deque()
        self._book, self._most = book, most
        self._epoch = datetime.datetime(1904, 1, 1) if book.from_1904 else datetime.datetime(1899, 12, 30)
        self._columns: dict[str, int] = {}
        self._number = self._column = self._size = 0
        self._cells: list[Any] = []
        self._shared: dict[int, int] = {}
        self._kind = self._style = ""
        self._value: list[str] = []
        self._reading = self._spoken = self._computed = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c" or (":" in name and local(name) == "c"):
            self._column = self._column_of(attributes.get("r"))
            self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._value.clear()
            self._computed = False
            return
        name = local(name)
        if name == "v":
            self._reading = True
            if self._kind == "str":  # the stored result may be an empty text
                self._computed = False
        elif name == "f":
            self._computed = True
        elif name == "t":
            self._reading = self._kind == "inlineStr" and not self._spoken
        elif name == "rPh":
            self._spoken = True
        elif name == "row":
            self._number = max(self._number + 1, int(float(attributes.get("r", 0))))
            self._column = self._size = 0
            if self._cells:  # the consumer of the previous row holds its list
                self._cells, self._shared = [], {}

    def text(self, content: str) -> None:
        if self._reading:
            self._size += len(content)
            if self._size <= self._most:
                self._value.append(content)

    def end(self, name: str) -> None:
        name = local(name)
        if name == "c":
            if self._value:
                self._store_cell(self._made("".join(self._value)))
                self._value.clear()
            elif self._computed:
                self._store_cell(NO_RESULT)
        elif name in ("v", "t"):
            self._reading = False
        elif name == "rPh":
            self._spoken = False
        elif name == "row" and self._size > self._most:
            self.rows.append((self._number, None, {}))
        elif name == "row" and self._cells:
            self.rows.append((self._number, self._cells, self._shared))

    def _column_of(self, reference: str | None) -> int:
        """The column number in a cell reference such as `AB12`; without one, the next column."""
        match = _REFERENCE.match(reference) if reference else None
        if match is None:
            return self._column + 1
        letters = match[1]
        column = self._columns.get(letters)
        if column is None:
            column = column_number(letters)
            if column > WIDEST:
                raise TooMuch
            self._columns[letters] = column
        return column

    def _store_cell(self, value: Any) -> None:
        missing = self._column - 1 - len(self._cells)
        if missing < 0:  # duplicate cell, or out of order
            self._cells[self._column - 1] = value
            return
        if self._column > WIDEST:
            raise TooMuch
        if missing:
            self._cells += [None] * missing
        self._cells.append(value)

    def _made(self, text: str) -> Any:
        kind = self._kind
        if kind == "n":
            value: Any = float(text) if "." in text or "E" in text or "e" in text else int(text)
            style = int(self._style or 0)
            if style in self._book.dates or style in self._book.spans:
                return self._date(value, style in self._book.spans)
            return int(value) if isinstance(value, float) and _is_whole(value) else value
        if kind == "s":
            self._shared[self._column - 1] = int(text)
            return ""
        if kind == "b":
            return text.strip() not in ("0", "false")
        if kind == "e":
            return CellError(text)
        if kind == "d":
            from openpyxl.utils.datetime import from_ISO8601

            return _as_day(from_ISO8601(text))
        return _unescaped(text)

    def _date(self, value: float, span: bool) -> Any:
        from openpyxl.utils.datetime import from_excel

        try:
            return _as_day(from_excel(value, self._epoch, timedelta=span))
        except (OverflowError, ValueError):
            return CellError("#VALUE!")


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) < 2**53


def _as_day(value: Any) -> Any:
    """Convert a datetime at midnight to a date."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    return value


def _unescaped(text: str) -> str:
    """Decode escapes such as `_x000D_`, which represent characters that XML cannot contain."""
    if "_x" not in text:
        return text
    from openpyxl.utils.escape import unescape

    return str(unescape(text))
