"""Reads CSV as defined by RFC 4180 and as written by spreadsheets, including the legacy CSV format.

Records may span lines; fields are separated by commas, semicolons or tabs, also in the tables of other tools. A
legacy CSV has a header with `prompt`, `response` and optionally `system`, and one turn per record.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from datasets.core.csv_layout import FIRST_LINES, CsvLayout, legacy_layout
from datasets.core.csv_text import NEVER, fields_in, open_quote, split_fields, whole_fields
from datasets.core.decode import Block
from datasets.core.findings import (
    ERRORS,
    Finding,
    broken_byte,
    finding,
    not_utf8,
    too_large,
    too_many_values,
)
from datasets.core.formats import LEGACY_COLUMNS
from datasets.core.limits import Limits
from datasets.core.own_exports import is_own_invalid_rows, text_of_cell
from datasets.core.rows import Part, RawRow
from datasets.core.spelling import near_miss
from datasets.core.stats import ReadState

MODEL_COLUMNS = frozenset(("model", "model_name", "model_id", "模型", "模型名称"))
"""An extra column of this name suggests that each record is an answer of another model."""
HELD_BYTES = 1 << 20
"""More bytes of a record's lines are held on disk."""
MOST_REREAD = 100
"""How often lines are read again after a record in which quotes close and open to its end, as each time may be the
rest of the file."""


@dataclass(frozen=True, slots=True)
class CsvRecord:
    """One record: its first line number, text and fields; `quote` is the column of an unclosed quote.

    `more` is the number of lines after the first. An `oversized` record has no text; a `crowded` one has too many
    fields and lists none of them. `broken` is the column and value of the first byte that is not UTF-8.
    """

    line: int
    text: str
    fields: list[str]
    quote: int | None = None
    oversized: bool = False
    crowded: bool = False
    broken: tuple[int, str] | None = None
    more: int = 0


def records(
    blocks: Iterable[Block], limits: Limits, delimiter: str = ",", first: int = 1
) -> Iterator[CsvRecord]:
    """Parse the records from line `first` on, skipping blank lines between records.

    A record whose quote never closes has only its first line, and what follows is read again from the next one. An
    oversized record is read to its end but its text is discarded; for one with too many fields, only the fields are.
    """
    with closing(_Lines(blocks, first)) as lines:
        yield from _records(lines, limits, delimiter)


def _records(lines: "_Lines", limits: Limits, delimiter: str) -> Iterator[CsvRecord]:
    left = MOST_REREAD
    while (line := lines.take()) is not None:
        if not line.text.strip():
            continue
        if (alone := _alone(line, limits.row_values, delimiter)) is not None:
            yield alone
            continue
        building = _Building(line.number, limits, delimiter)
        held = _build(building, line, lines)
        again = building.quote is not None and (left > 0 or not building.reopened)
        left -= building.reopened and building.quote is not None
        if again:
            lines.put_back(held)
        else:
            held.close()
        more = 0 if again else building.more
        yield building.record() if building.quote is None else building.first_line(more)


def _alone(line: "_Line", most: int, delimiter: str) -> CsvRecord | None:
    """The record that is on this line alone, as most are; None if that is not known at once."""
    if line.oversized:
        return None
    text = _without_end(line.text)
    if b'"' in line.text:
        fields = whole_fields(text, delimiter)
        if fields is None and open_quote(text, False, delimiter) is None:
            fields = list(islice(fields_in(text, delimiter), most + 1))
        if fields is None or len(fields) > most:
            return None
    elif delimiter and text.count(delimiter) < most:
        fields = text.split(delimiter)
    else:
        return _record(line.number, text, most, delimiter, broken_byte(line.text))
    return CsvRecord(line.number, text, fields, broken=None if text.isascii() else broken_byte(line.text))


def _build(building: "_Building", line: "_Line | None", lines: "_Lines") -> "_Held":
    """Add lines to a record until it ends, or its quote is known never to; return those after its first."""
    held = lines.held = _Held()
    while line is not None and not building.add(line) and not building.never:
        line = lines.take()
        if line is not None:
            held.append(line)
    return held


class _Line(NamedTuple):
    number: int
    text: bytes
    oversized: bool


class _Lines:
    """The lines of blocks, of which some can be put back."""

    def __init__(self, blocks: Iterable[Block], first: int) -> None:
        self._rest = (
            _Line(number, line + b"\n", number in block.oversized)
            for block in blocks
            for number, line in enumerate(block.lines, block.first)
            if number >= first
        )
        self._back: list[_Held] = []
        self.held = _Held()
        """Those of the record that is being read."""

    def take(self) -> _Line | None:
        """The next line; None at the end."""
        while self._back:
            if (line := self._back[-1].take()) is not None:
                return line
            self._back.pop().close()
        return next(self._rest, None)

    def put_back(self, lines: "_Held") -> None:
        lines.rewind()
        self._back.append(lines)

    def close(self) -> None:
        for held in (self.held, *self._back):
            held.close()


class _Held:
    """The lines of a record after its first, which may have to be read again; many of them are on disk."""

    def __init__(self) -> None:
        self._file: tempfile.SpooledTemporaryFile[bytes] | None = None
        self._first = 0
        self._oversized: set[int] = set()

    def append(self, line: _Line) -> None:
        if self._file is None:
            self._first = line.number
            self._file = tempfile.SpooledTemporaryFile(HELD_BYTES)  # noqa: SIM115 - closed by `close`
        self._file.write(line.text)
        if line.oversized:
            self._oversized.add(line.number)

    def rewind(self) -> None:
        if self._file is not None:
            self._file.seek(0)

    def take(self) -> _Line | None:
        """The next line; None at the end."""
        text = self._file.readline() if self._file is not None else b""
        if not text:
            return None
        number, self._first = self._first, self._first + 1
        return _Line(number, text, number in self._oversized)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def records_in(text: str, line: int = 1, delimiter: str = ",") -> list[CsvRecord]:
    """The records in a text whose first line has number `line`."""
    source = text.encode("utf-8", "replace")
    return list(records([Block(line, source.split(b"\n"), source)], Limits(), delimiter))


class _Building:
    """A record that grows by lines.

    `never`: its quote is not closed, though there are quotes after it; `reopened`: a later line opens another one.
    """

    def __init__(self, line: int, limits: Limits, delimiter: str) -> None:
        self.line, self.left = line, limits.row_bytes
        self.most, self.delimiter = limits.row_values, delimiter
        self.raw, self.first = bytearray(), b""
        self.quote: int | None = None
        self.never = self.reopened = self.oversized = False
        self.broken: tuple[int, str] | None = None
        self.more = -1

    def add(self, line: _Line) -> bool:
        """Add a physical line; return True if the record ends with it."""
        self.more += 1
        text = line.text.decode("utf-8", "replace")
        if self.broken is None and not line.oversized and "\ufffd" in text:
            self.broken = broken_byte(line.text)
        still = open_quote(text, self.quote is not None, self.delimiter)
        if still == NEVER:
            self.never = True
            return False
        if not self.more:
            self.quote, self.first = still, line.text
        elif still is None:
            self.quote = None
        else:
            self.reopened = self.reopened or still >= 0
        self._keep(line)
        return still is None

    def _keep(self, line: _Line) -> None:
        self.left -= len(line.text)
        self.oversized = self.oversized or line.oversized or self.left < 0
        if not self.oversized:
            self.raw += line.text

    def record(self) -> CsvRecord:
        text = _without_end(self.raw)
        if self.oversized:
            return CsvRecord(self.line, text, [], oversized=True, broken=self.broken, more=self.more)
        return _record(self.line, text, self.most, self.delimiter, self.broken, self.more)

    def first_line(self, more: int) -> CsvRecord:
        """The record as far as its first line; `more` lines after it are not read again."""
        assert self.quote is not None  # only an open quote keeps a record from ending
        text, broken = _without_end(self.first), broken_byte(self.first)
        fields = split_fields(text, self.delimiter)
        return CsvRecord(self.line, text, fields, self.quote + 1, broken=broken, more=more)


def _record(
    line: int, text: str, most: int, delimiter: str, broken: tuple[int, str] | None, more: int = 0
) -> CsvRecord:
    """A whole record; of one with more than `most` fields, none is listed."""
    is_long = text.count(delimiter or "\n") >= most
    crowded = is_long and any(True for _ in islice(fields_in(text, delimiter), most, None))
    fields = [] if crowded else split_fields(text, delimiter)
    return CsvRecord(line, text, fields, crowded=crowded, broken=broken, more=more)


def _without_end(line: bytes | bytearray) -> str:
    return line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV header: `names` as spelled in the file, `keys` as used in a row; `is_own` in our file of invalid rows."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    line: int
    delimiter: str = ","
    is_own: bool = False

    @classmethod
    def of(cls, header: CsvRecord, delimiter: str = ",") -> "CsvTable":
        is_own = is_own_invalid_rows(header.fields)
        names = tuple((text_of_cell(name) if is_own else name).strip() for name in header.fields)
        keys = tuple(name.lower() if name.lower() in LEGACY_COLUMNS else name for name in names)
        return cls(names, keys, header.line, delimiter, is_own)

    @property
    def usable(self) -> bool:
        named = {"prompt", "response"} <= set(self.keys) and len(set(self.keys)) == len(self.keys)
        return named and not any("\0" in name for name in self.names)

    def findings(self) -> Iterator[Finding]:
        """Problems of the header, all reported at its line."""
        met = ", ".join(self.names)
        for key in ("prompt", "response"):
            if key not in self.keys:
                near = near_miss(self.names, key, LEGACY_COLUMNS)
                yield finding(
                    "csv.header", line=self.line, path=key, problem="missing", name=key, met=met, **near
                )
        seen: set[str] = set()
        for number, (name, key) in enumerate(zip(self.names, self.keys, strict=True), 1):
            if key in seen:
                yield finding("csv.header", line=self.line, path=name, problem="twice", name=name, met=met)
            elif key not in LEGACY_COLUMNS:
                long_form: dict[str, Any] = (
                    {"columns": self.long_form(name)} if key.lower() in MODEL_COLUMNS else {}
                )
                yield finding(
                    "csv.extra_column", line=self.line, path=name, name=name, number=number, **long_form
                )
            if "\0" in name:
                yield finding("json.nul", line=self.line, path=name)
            seen.add(key)

    def long_form(self, model: str) -> str:
        """The mapping that reads each record as an answer of the model named in a column."""
        named = dict(zip(self.keys, self.names, strict=True))
        return f"question={named.get('prompt', '')},answer={named.get('response', '')},model={model}"

    def check(self, record: CsvRecord) -> list[Finding]:
        """All findings of one record, each with its line."""
        findings = list(text_findings(record))
        if record.quote is not None or not self.keys:
            return findings
        if len(record.fields) != len(self.keys):
            findings.append(
                finding("csv.columns", line=record.line, met=len(record.fields), wanted=len(self.keys))
            )
        elif self.usable:
            findings += self._text_findings(record)
        return findings

    def row(self, record: CsvRecord) -> dict[str, str]:
        """The record as an object; the first of several columns with the same name wins."""
        fields = [text_of_cell(text) for text in record.fields] if self.is_own else record.fields
        pairs = list(zip(self.keys, fields, strict=False))
        return dict(reversed(pairs)) if len(set(self.keys)) < len(self.keys) else dict(pairs)

    def json(self, record: CsvRecord) -> bytes:
        return msgspec.json.encode(self.row(record))

    def _text_findings(self, record: CsvRecord) -> Iterator[Finding]:
        for name, key, text in zip(self.names, self.keys, record.fields, strict=True):
            if "\0" in text:
                yield finding("json.nul", line=record.line, path=name)
            if key in ("prompt", "response") and not text.strip():
                yield finding(f"{key}.blank", line=record.line, path=name)


def refusal(record: CsvRecord, limits: Limits) -> Finding | None:
    """The finding if a record or the header exceeds a limit and is not checked."""
    if record.crowded:
        return too_many_values(record.line, limits)
    if record.oversized and record.quote is None:
        return too_large(record.line, limits)
    return None


def text_findings(record: CsvRecord) -> Iterator[Finding]:
    """Encoding and quote errors in a record or the header."""
    if record.broken is not None:
        yield not_utf8(record.line, record.broken)
    if record.quote is not None:
        yield finding("csv.quote", line=record.line, column=record.quote or None, more=record.more)


def examined(blocks: Iterable[Block], state: ReadState, *, keep: bool) -> Iterator[Part]:
    """Check the records of a file; yield them only if `keep` is set."""
    layout = state.detection.layout
    csv_records = records(blocks, state.limits, layout.delimiter, layout.header)
    state.log.add_all(finding("csv.title", line=line, text=text) for line, text in layout.above)
    if header := next(csv_records, None):
        table = CsvTable.of(header, layout.delimiter)
        state.log.add_all(_of_header(header, table, state.limits))
        for record in csv_records:
            valid = _examined(record, table, state)
            if keep:
                row = _row_of(record, table, valid).new_row
                yield [row], len(row.raw)
    if not state.rows:
        state.log.add(finding("file.empty"))


def rows(blocks: Iterable[Block], state: ReadState) -> Iterator[RawRow]:
    """The rows of a file that was already checked."""
    layout = state.detection.layout
    csv_records = records(blocks, state.limits, layout.delimiter, layout.header)
    if header := next(csv_records, None):
        table = CsvTable.of(header, layout.delimiter)
        for record, valid in zip(csv_records, state.valid, strict=False):
            yield _row_of(record, table, bool(valid))


def layout_in(block: Block) -> CsvLayout | None:
    """The layout of a legacy CSV that starts with this block; None if it has no header of ours."""
    lines = [line.decode("utf-8", "replace") for line in block.lines[:FIRST_LINES]]
    return legacy_layout(lines, block.first)


def header_table(blocks: Iterable[Block], limits: Limits) -> tuple[CsvRecord, CsvTable]:
    """The header of a legacy CSV, which has one."""
    rest = iter(blocks)
    start = next(block for block in rest if block.text.strip())
    layout = layout_in(start) or CsvLayout()
    header = next(records(chain([start], rest), limits, layout.delimiter, layout.header))
    return header, CsvTable.of(header, layout.delimiter)


def _row_of(record: CsvRecord, table: CsvTable, valid: bool) -> RawRow:
    return RawRow(record.line, valid, record.text.encode(), table.json(record) if valid else b"")


def _examined(record: CsvRecord, table: CsvTable, state: ReadState) -> bool:
    refused = refusal(record, state.limits)
    findings = [refused] if refused else table.check(record)
    valid = state.count(table.usable and ERRORS.isdisjoint(flaw.code for flaw in findings))
    if not refused:
        state.stats.add(record.line, table.row(record), legacy_csv=True)
    if not state.detection.silent:
        state.log.add_all(findings)
    return valid


def _of_header(header: CsvRecord, table: CsvTable, limits: Limits) -> Iterator[Finding]:
    """Findings of the header; column names are not checked if it was not read to its end."""
    if refused := refusal(header, limits):
        yield refused
    else:
        yield from text_findings(header)
        if header.quote is None:
            yield from table.findings()
