"""Reads a file as a table of column names and records: CSV with any delimiter, JSON or Parquet.

Values are JSON values; `json_value` converts other types (dates, decimals, NaN).
"""

import datetime
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, partial
from itertools import islice
from typing import Any

from datasets.core.csv_layout import FIRST_LINES, CsvLayout, layout_of
from datasets.core.csv_reader import CsvRecord
from datasets.core.csv_reader import records as csv_records
from datasets.core.csv_text import header_of
from datasets.core.decode import Block, Upload, blocks, first_encoding, text_encoding, utf8_chunks
from datasets.core.imports.columns import (
    Columns,
    LazyLooks,
    Look,
    Looks,
    Record,
    count_choice,
    names_question,
)
from datasets.core.imports.encodings import encoding_seen
from datasets.core.imports.json_records import json_records
from datasets.core.imports.key_use import KeyUse
from datasets.core.imports.model import BrokenRecord, NotUsable, SourceFile, with_warning_of
from datasets.core.imports.wrapped import wrapped_records, wrapper_of
from datasets.core.limits import MEBIBYTE, Limits
from datasets.core.own_exports import is_own_table, text_of_cell

DELIMITERS = ",\t;|"
MOST_COLUMNS = 2_000
LOOKED_AT = 20
"""Number of records shown as examples."""
FIRST_BYTES = MEBIBYTE
_DEEPEST = 4
_JSON_START = re.compile(r"\s*(?:\{|\[\s*(?:[{\[\"\]]|$))")


class CellError(str):
    """The error value of a formula, such as `#N/A`."""

    __slots__ = ()


class EmptyCell(str):
    """An empty cell that should have a value; `code` is from LEFT_OUT (reasons.py)."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, code: str) -> "EmptyCell":
        cell = super().__new__(cls)
        cell.code = code
        return cell


NO_RESULT = EmptyCell("formula_without_result")
MERGED = EmptyCell("merged_cell")


@dataclass(slots=True)
class SourceTable:
    """A table; `records()` starts over on each call.

    It yields (line or record number from 1, values by column or BrokenRecord). `looks()` tells what each column holds
    over all records. `mapping` is set if the columns' meaning is known and need not be guessed. `above` are the texts
    above the header by line, `others` the names of further sheets that are not empty, `key_uses` the keys of what the
    records are made from, `lists` the lists of one document that are read one after the other.
    """

    columns: list[str]
    records: Callable[[], Iterator[tuple[int, Record | BrokenRecord]]]
    sheet: str = ""
    sheets: list[str] = field(default_factory=list)
    encoding: str = ""
    mapping: Columns | None = None
    above: Sequence[tuple[int, str]] = ()
    others: Sequence[str] = ()
    key_uses: Sequence[KeyUse] = ()
    lists: str = ""
    looks: Callable[[], Looks] = dict

    def __post_init__(self) -> None:
        if self.looks is dict:
            self.looks = cache(lambda: LazyLooks(self.whole_records))

    def whole_records(self) -> Iterator[Record]:
        return (values for _number, values in self.records() if not isinstance(values, BrokenRecord))

    def first(self, most: int = LOOKED_AT) -> list[Record]:
        """The first valid records."""
        return list(islice(self.whole_records(), most))


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
    """Open CSV, TSV etc. in any encoding, with a line `sep=;` or a title above its header."""
    with file.upload(limits) as upload:
        encoding = text_encoding(upload)
        layout = _layout(_first_lines(upload, encoding))
    header = next(_csv_records(file, limits, encoding, layout), None)
    if header is None:
        raise NotUsable("no_rows", file=file.name)
    is_own = is_own_table(header.fields)
    columns = unique_names([text_of_cell(name) for name in header.fields] if is_own else header.fields)

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        lines = _csv_records(file, limits, encoding, layout)
        next(lines)
        for record in lines:
            if broken := _broken(record):
                yield record.line, broken
            elif any(record.fields):
                cells = [text_of_cell(text) for text in record.fields] if is_own else record.fields
                yield record.line, _by_name(columns, cells)

    return SourceTable(columns, records, encoding=encoding, above=layout.above)


def _csv_records(file: SourceFile, limits: Limits, encoding: str, layout: CsvLayout) -> Iterator[CsvRecord]:
    with file.upload(limits) as upload:
        yield from csv_records(blocks(upload, encoding), limits, layout.delimiter, layout.header)


def _broken(record: CsvRecord) -> BrokenRecord | None:
    """Why a record cannot be taken, or None."""
    if record.quote is not None:
        return BrokenRecord("quote_never_ends")
    if record.oversized or record.crowded:
        return BrokenRecord("too_large")
    return BrokenRecord("not_utf8", record.broken[1]) if record.broken else None


def _by_name(columns: list[str], cells: Sequence[str]) -> Record | BrokenRecord:
    """Map the fields of a record to columns; it must have all of them."""
    if len(cells) < len(columns):
        return BrokenRecord("fewer_cells_than_columns", f"{len(cells)} < {len(columns)}")
    return by_column(columns, cells)


def by_column(columns: list[str], cells: Sequence[Any]) -> Record | BrokenRecord:
    """Map cells to columns; cells beyond the last column must be empty."""
    if isinstance(cells, BrokenRecord):
        return cells
    if len(cells) > len(columns) and any(cell not in (None, "") for cell in cells[len(columns) :]):
        return BrokenRecord("more_cells_than_columns", f"{len(cells)} > {len(columns)}")
    return dict(zip(columns, cells, strict=False))


def _layout(lines: Sequence[str]) -> CsvLayout:
    """The layout of a table: its header names a question, or is the first line with several texts."""
    own = [delimiter_of(lines)]
    layout = layout_of(lines, DELIMITERS, lambda names: len(names) if names_question(names) else 0)
    if not _is_header(lines, layout):
        layout = layout_of(lines, own, lambda names: sum(bool(name.strip()) for name in names) > 1)
    if not _is_header(lines, layout):
        layout = layout_of(lines, own, lambda _names: 1)
    if layout is None:
        return CsvLayout()
    is_wide = len(header_of(lines[layout.header - 1], layout.delimiter)) > 1
    return layout if is_wide else replace(layout, delimiter="")


def _is_header(lines: Sequence[str], layout: CsvLayout | None) -> bool:
    """Whether nothing stands above the header but titles.

    Those are lines with one text, unlike most of those below the header, or apart from a header that names a question.
    """
    if layout is None or not layout.above:
        return layout is not None
    if layout.header > 1 and not lines[layout.header - 2].strip():
        return names_question(header_of(lines[layout.header - 1], layout.delimiter))
    texts = [sum(map(bool, header_of(text, layout.delimiter))) for _line, text in layout.above]
    widths = _widths(lines[layout.header - 1 :], layout.delimiter)
    return max(texts) == 1 < widths[0] and 2 * (widths.count(widths[0]) - 1) >= len(widths) - 1


def delimiter_of(lines: Sequence[str]) -> str:
    """The delimiter that most consistently splits the first lines into equally many fields, preferring more fields."""

    def fit(delimiter: str) -> tuple[float, int]:
        widths = _widths(lines, delimiter)
        width, times = Counter(widths).most_common(1)[0] if widths else (1, 0)
        return (times / len(widths) if width > 1 else 0, width)

    return max(DELIMITERS, key=fit)


def _widths(lines: Sequence[str], delimiter: str) -> list[int]:
    """The number of fields of each of the first records."""
    records = csv_records([_block(lines)], Limits(), delimiter)
    return [len(record.fields) for record in records if record.quote is None]


def _block(lines: Sequence[str]) -> Block:
    encoded = [line.encode("utf-8", "replace") for line in lines]
    return Block(1, encoded, b"\n".join(encoded))


def first_header(file: SourceFile) -> list[str]:
    """The fields of a text's header; [] if it is not text. Reads little."""
    lines = _beginning_of_text(file)
    layout = _layout(lines)
    header = next(csv_records([_block(lines)], Limits(), layout.delimiter, layout.header), None)
    return header.fields if header else []


def seems_csv(file: SourceFile) -> bool:
    """Whether the header names a question, or at least half of the first records are as wide as a header of several."""
    lines = _beginning_of_text(file)
    if _JSON_START.match("\n".join(lines[:2])):
        return False
    header = first_header(file)
    if len(header) < 2 or names_question(header):
        return names_question(header)
    layout = _layout(lines)
    widths = _widths(lines[layout.header - 1 :], layout.delimiter)[1:]
    as_wide = sum(width == len(header) for width in widths)
    return (bool(widths) or file.size > FIRST_BYTES) and 2 * as_wide >= len(widths)


def _beginning_of_text(file: SourceFile) -> list[str]:
    with suppress(NotUsable), file.upload() as upload:
        if not upload.other_kind():
            return _first_lines(upload, first_encoding(upload))
    return []


def _first_lines(upload: Upload, encoding: str) -> list[str]:
    """The first lines without their ends; the last one read is dropped if it may be incomplete."""
    start, is_cut = b"", False
    for chunk in utf8_chunks(upload, encoding):
        start += chunk
        is_cut = len(start) > FIRST_BYTES or start.count(b"\n") > FIRST_LINES
        if is_cut:
            break
    lines = [line.removesuffix("\r") for line in start.decode("utf-8", "replace").split("\n")]
    if len(lines) > 1 and (is_cut or not lines[-1]):
        lines.pop()
    return lines[:FIRST_LINES]


# JSON


def json_table(file: SourceFile, limits: Limits) -> SourceTable:
    """Open an array of objects or JSON Lines; column `a.b` is `b` in the object `a`, or in the first item of a list.

    The columns are those of all records; of objects with very many names, not all have a column of their own. If the
    records are lists in one object, its other keys are left out.
    """
    wrapper = wrapper_of(file, limits)
    read = partial(json_records, file, limits)
    if wrapper is not None:
        read = partial(wrapped_records, file, wrapper, limits)
    columns: dict[str, None] = {}
    looks: defaultdict[str, Look] = defaultdict(Look)
    for _line, value in read():
        if isinstance(value, dict):
            columns.update(dict.fromkeys(value))
            for name, inner in value.items():
                _look(name, inner, looks)
                for path, part in _parts(name, inner):
                    if path not in value and (path in columns or len(columns) < MOST_COLUMNS):
                        columns[path] = None
                        _look(path, part, looks)
            count_choice(value, looks)
    if len(columns) > MOST_COLUMNS:
        raise NotUsable("too_many_columns", count=str(len(columns)))
    names = sorted(columns, key=lambda name: "." in name)
    inner = [name.split(".") for name in names if "." in name]

    def records() -> Iterator[tuple[int, Record | BrokenRecord]]:
        for line, value in read():
            if isinstance(value, BrokenRecord):
                yield line, value
            elif not isinstance(value, dict):
                yield line, BrokenRecord("not_an_object")
            else:
                yield line, _with_parts(value, inner)

    table = SourceTable(names, records, encoding=encoding_seen(file, limits), looks=lambda: looks)
    return replace(table, key_uses=[wrapper.key_use(file)], lists=wrapper.told) if wrapper else table


def _look(name: str, value: Any, looks: dict[str, Look]) -> None:
    if value is not None and value != "":
        looks[name].add(value)


def _parts(before: str, value: Any, deep: int = 1) -> Iterator[tuple[str, Any]]:
    """(path, value) of all parts of an object at the path `before`, or of the first item of a list `choices`."""
    if isinstance(value, list) and value and before.rpartition(".")[2] == "choices":
        value = value[0]
    if isinstance(value, dict) and deep <= _DEEPEST:
        for name, inner in value.items():
            path = f"{before}.{name}"
            yield path, inner
            if isinstance(inner, dict | list):
                yield from _parts(path, inner, deep + 1)


def _with_parts(value: Record, inner: Iterable[Sequence[str]]) -> Record:
    """The record with the parts at these paths, unless it has a key with the name of the whole path."""
    parts = {".".join(path): _at(value[path[0]], path) for path in inner if path[0] in value}
    return with_warning_of(value, {**parts, **value})


def _at(value: Any, path: Sequence[str]) -> Any:
    """The part at the path in the value of its first name; of a list, in its first item."""
    for name in path[1:]:
        value = value[0] if isinstance(value, list) and value else value
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def every_at(value: Any, path: str) -> list[Any]:
    """The values at a path through objects, of all items of lists."""
    level = [value]
    for name in path.split("."):
        items = [item for held in level for item in (held if isinstance(held, list) else [held])]
        level = [item[name] for item in items if isinstance(item, dict) and name in item]
    return level


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
