"""Reads a file as a table of column names and records: CSV with any delimiter, JSON or Parquet.

Values are JSON values; `json_value` converts other types (dates, decimals, NaN).
"""

import codecs
import csv
import datetime
import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any

from datasets.core.decode import Upload, decodes, encoding_of, marked_encoding
from datasets.core.imports.columns import Columns, Record
from datasets.core.imports.json_records import first_records, json_records
from datasets.core.imports.model import BrokenRecord, NotUsable, SourceFile
from datasets.core.limits import Limits

DELIMITERS = ",\t;|"
MOST_COLUMNS = 2_000
LOOKED_AT = 20
"""Number of records used to recognise a file, and its columns if it has no header."""
_DEEPEST = 4
_UNKNOWN_ENCODING = "cp1252"


class CellError(str):
    """The error value of a formula, such as `#N/A`."""

    __slots__ = ()


@dataclass(slots=True)
class SourceTable:
    """A table; `records()` starts over on each call.

    It yields (line or record number from 1, values by column or BrokenRecord). `mapping` is set if the columns' meaning
    is known and need not be guessed.
    """

    columns: list[str]
    records: Callable[[], Iterator[tuple[int, Record | BrokenRecord]]]
    sheet: str = ""
    sheets: list[str] = field(default_factory=list)
    encoding: str = ""
    mapping: Columns | None = None

    def first(self, most: int = LOOKED_AT) -> list[Record]:
        """The first valid records."""
        whole = (values for _number, values in self.records() if not isinstance(values, BrokenRecord))
        return list(islice(whole, most))


def unique_names(header: Sequence[Any]) -> list[str]:
    """A unique name for each column: unnamed ones are called by number, repeated ones `name (2)`."""
    if len(header) > MOST_COLUMNS:
        raise NotUsable("too_many_columns", count=str(len(header)))
    names: list[str] = []
    for number, cell in enumerate(header, 1):
        name = " ".join(str(cell).split()) if cell is not None else ""
        name = wanted = (name or f"column {number}")[:200]
        again = 2
        while name in names:
            name, again = f"{wanted} ({again})", again + 1
        names.append(name)
    return names


def json_value(value: Any) -> Any:
    """Convert to a JSON value: dates to ISO 8601, whole decimals to integers, NaN and infinity to None.

    Raises ValueError for bytes.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value)
    if isinstance(value, Decimal):
        return (
            (int(value) if value == value.to_integral_value() else float(value))
            if value.is_finite()
            else None
        )
    if isinstance(value, dict):
        return {str(name): json_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    raise ValueError(type(value).__name__)


# CSV


def csv_table(file: SourceFile, limits: Limits) -> SourceTable:
    """Open CSV, TSV etc. in UTF-8, UTF-16 or GB18030; anything else is read as Windows-1252."""
    with file.upload(limits) as upload:
        encoding: str = encoding_of(upload)
        if encoding == "utf-8" and not decodes(upload, "utf-8"):
            encoding = _UNKNOWN_ENCODING
        delimiter = delimiter_of(_first_lines(upload, encoding))
    header = next(_csv_records(file, limits, encoding, delimiter), None)
    if header is None:
        raise NotUsable("no_rows", file=file.name)
    columns = unique_names(header[1])

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        given = _csv_records(file, limits, encoding, delimiter)
        next(given)
        for line, cells in given:
            yield line, by_column(columns, cells)

    return SourceTable(columns, records, encoding=encoding)


def by_column(columns: list[str], cells: Sequence[Any]) -> Record | BrokenRecord:
    """Map cells to columns; cells beyond the last column must be empty."""
    if isinstance(cells, BrokenRecord):
        return cells
    if len(cells) > len(columns) and any(cell not in (None, "") for cell in cells[len(columns) :]):
        return BrokenRecord("more_cells_than_columns", f"{len(cells)} > {len(columns)}")
    return dict(zip(columns, cells, strict=False))


def delimiter_of(lines: Sequence[str]) -> str:
    """The delimiter that most consistently splits the first lines into equally many fields, preferring more fields."""

    def fit(delimiter: str) -> tuple[float, int]:
        widths = _widths(lines, delimiter)
        width = widths[0] if widths else 1
        return (sum(one == width for one in widths) / len(widths) if width > 1 else 0, width)

    return max(DELIMITERS, key=fit)


def _widths(lines: Sequence[str], delimiter: str) -> list[int]:
    return [len(cells) for cells in _records(lines, delimiter)]


def _records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [cells for cells in csv.reader(lines, delimiter=delimiter) if cells]
    except csv.Error:
        return []


def first_header(file: SourceFile) -> list[str]:
    """The fields of the first line of a text, read as UTF-8 without a mark; [] if it is not text. Reads little."""
    lines = _beginning_of_text(file)
    return next(iter(_records(lines, delimiter_of(lines))), [])


def seems_csv(file: SourceFile) -> bool:
    """Whether a text has several columns, and at least half of the first records are as wide as the header."""
    lines = _beginning_of_text(file)
    widths = _widths(lines, delimiter_of(lines))
    as_wide = sum(width == widths[0] for width in widths[1:]) if widths else 0
    return len(widths) > 1 and widths[0] > 1 and 2 * as_wide >= len(widths) - 1


def _beginning_of_text(file: SourceFile) -> list[str]:
    with suppress(NotUsable), file.upload() as upload:
        if not upload.other_kind():
            return _first_lines(upload, marked_encoding(upload.head()))
    return []


def _first_lines(upload: Upload, encoding: str) -> list[str]:
    """The lines in the first chunk; the last is dropped if it may be incomplete."""
    chunk = next(upload.chunks(), b"")
    start = codecs.getincrementaldecoder(encoding)("replace").decode(chunk).removeprefix("\ufeff")
    lines = io.StringIO(start, newline="").readlines()
    is_cut = len(chunk) < upload.bytes or upload.gzipped
    if is_cut and len(lines) > 1 and not start.endswith("\n"):
        lines.pop()
    return lines[: 10 * LOOKED_AT]


def _csv_records(
    file: SourceFile, limits: Limits, encoding: str, delimiter: str
) -> Iterator[tuple[int, Any]]:
    """(first line number, cells) of each non-blank record."""
    csv.field_size_limit(max(csv.field_size_limit(), limits.row_bytes))
    with file.upload(limits) as upload:
        lines = _Lines(upload.chunks(), encoding, limits.row_bytes)
        rows = csv.reader(lines, delimiter=delimiter)
        line = 1
        try:
            for cells in rows:
                lines.of_record = 0
                if any(cells):
                    yield line, cells
                line = rows.line_num + 1
        except csv.Error:
            yield line, BrokenRecord("quote_never_ends")


class _Lines:
    """Lines with their ends; only \n ends a line. Raises csv.Error if a record exceeds `most` characters."""

    def __init__(self, chunks: Iterator[bytes], encoding: str, most: int) -> None:
        self._chunks, self._most, self.of_record = chunks, most, 0
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def __iter__(self) -> Iterator[str]:
        rest = ""
        for chunk in self._chunks:
            *lines, rest = (rest + self._decoder.decode(chunk)).split("\n")
            for line in lines:
                yield self._counted(line + "\n")
            if len(rest) > self._most:
                raise csv.Error
        rest += self._decoder.decode(b"", final=True)
        if rest:
            yield self._counted(rest)

    def _counted(self, line: str) -> str:
        self.of_record += len(line)
        if self.of_record > self._most:
            raise csv.Error
        return line


# JSON


def json_table(file: SourceFile, limits: Limits) -> SourceTable:
    """Open an array of objects or JSON Lines; column `a.b` is `b` in the object `a`, or in the first item of a list."""
    columns: dict[str, None] = {}
    for value in first_records(file, LOOKED_AT * 10):
        if isinstance(value, dict):
            columns.update(dict.fromkeys(_paths(value)))
    if len(columns) > MOST_COLUMNS:
        raise NotUsable("too_many_columns", count=str(len(columns)))
    names = sorted(columns, key=lambda name: "." in name)
    inner = [name for name in names if "." in name]

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        for line, value in json_records(file, limits):
            if isinstance(value, BrokenRecord):
                yield line, value
            elif not isinstance(value, dict):
                yield line, BrokenRecord("not_an_object")
            else:
                parts = {name: value[name] if name in value else _at(value, name) for name in inner}
                yield line, {**value, **parts}

    return SourceTable(names, records, encoding="utf-8")


def _paths(value: Record, before: str = "", deep: int = 1) -> Iterator[str]:
    for name, inner in value.items():
        yield before + name
        if isinstance(inner, list) and name == "choices" and inner:
            inner = inner[0]
        if isinstance(inner, dict) and deep <= _DEEPEST:
            yield from _paths(inner, f"{before}{name}.", deep + 1)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[0] if isinstance(value, list) and value else value
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


# Parquet


def parquet_table(file: SourceFile, limits: Limits) -> SourceTable:
    """Open Parquet, read in batches within row groups."""
    with _parquet(file, limits) as opened:
        columns = unique_names(opened.schema_arrow.names)

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        number = 0
        with _parquet(file, limits) as opened:
            for batch in opened.iter_batches(batch_size=64, use_threads=False):
                for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, dict(zip(columns, cells, strict=True))

    return SourceTable(columns, records)


@contextmanager
def _parquet(file: SourceFile, limits: Limits) -> Iterator[Any]:
    import pyarrow.parquet as parquet  # imported here: takes 100 ms and is rarely needed
    from pyarrow import ArrowException

    try:
        with file.open_file() as source:
            yield parquet.ParquetFile(source, thrift_string_size_limit=limits.row_bytes * 8)
    except (ArrowException, OSError, ValueError) as error:
        raise NotUsable("unreadable", finding="parquet", file=file.name) from error


def is_parquet(file: SourceFile) -> bool:
    with file.open_file() as source:
        return source.read(4) == b"PAR1"
