"""Reads CSV as defined by RFC 4180 and as written by spreadsheets, including the legacy CSV format.

Records may span lines. A legacy CSV has a header with `prompt`, `response` and optionally `system`, and one turn per
record.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from datasets.core.decode import Block
from datasets.core.findings import ERRORS, Finding, broken_byte, finding, not_utf8, too_large, too_many_values
from datasets.core.formats import LEGACY_COLUMNS
from datasets.core.limits import Limits
from datasets.core.rows import Part, RawRow
from datasets.core.spelling import near_miss
from datasets.core.stats import ReadState


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


def header_of(text: str) -> list[str]:
    """The column names in a header line."""
    return split_fields(text.rstrip("\r\n"))


def split_fields(text: str) -> list[str]:
    """Split one record without its line end. A quote is special only at the start of a field."""
    return list(_fields(text))


def _fields(text: str) -> Iterator[str]:
    position = 0
    while True:
        field, position = _quoted(text, position) if text.startswith('"', position) else ("", position)
        end = text.find(",", position)
        if end < 0:
            yield field + text[position:]
            return
        yield field + text[position:end]
        position = end + 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The text of the quoted field that starts at `start`, and the position after its closing quote."""
    end = _closing(text, start + 1)
    inner = text[start + 1 : end] if end >= 0 else text[start + 1 :]
    return inner.replace('""', '"'), end + 1 if end >= 0 else len(text)


def _closing(text: str, position: int) -> int:
    """The position of the closing quote, or -1; a doubled quote is an escaped one."""
    while True:
        at = text.find('"', position)
        if at < 0 or text[at + 1 : at + 2] != '"':
            return at
        position = at + 2


def open_quote(line: str, inside: bool) -> int | None:
    """Index of the quote still open at the end of `line`: -1 if opened on an earlier line, None if there is none."""
    if '"' not in line:
        return -1 if inside else None
    position, opened = 0, -1
    while True:
        if inside:
            end = _closing(line, position)
            if end < 0:
                return opened
            position, inside = end + 1, False
        elif line.startswith('"', position):
            opened, position, inside = position, position + 1, True
            continue
        comma = line.find(",", position)
        if comma < 0:
            return None
        position = comma + 1


def records(blocks: Iterable[Block], limits: Limits) -> Iterator[CsvRecord]:
    """Parse records from blocks of lines, skipping blank lines between records.

    An oversized record is read to its end but its text is discarded; for one with too many fields, only the fields are.
    """
    building: _Building | None = None
    for block in blocks:
        for number, line in enumerate(block.lines, block.first):
            if building is None:
                if not line.strip():
                    continue
                building = _Building(number, limits)
            if building.add(number, line + b"\n", number in block.oversized):
                yield building.record()
                building = None
    if building:
        yield building.record()


def records_in(text: str, line: int = 1) -> list[CsvRecord]:
    """The records in a text whose first line has number `line`."""
    source = text.encode("utf-8", "replace")
    return list(records([Block(line, source.split(b"\n"), source)], Limits()))


def csv_record(fields: Iterable[str]) -> str:
    """The text of one record, without a line end."""
    written = io.StringIO()
    csv.writer(written).writerow(fields)  # another lineterminator would leave fields with \r\n unquoted
    return written.getvalue().removesuffix("\r\n")


class _Building:
    def __init__(self, line: int, limits: Limits) -> None:
        self.line, self.left = line, limits.row_bytes
        self.most = limits.row_values
        self.raw = bytearray()
        self.quote: int | None = None
        self.oversized = False
        self.broken: tuple[int, str] | None = None
        self.more = -1

    def add(self, number: int, raw: bytes, oversized: bool) -> bool:
        """Add a physical line; return True if the record ends with it."""
        self.more += 1
        text = raw.decode("utf-8", "replace")
        if self.broken is None and not oversized and "\ufffd" in text:
            self.broken = broken_byte(raw)
        still = open_quote(text, self.quote is not None)
        if still is None:
            self.quote = None
        elif still >= 0:
            self.quote = still if number == self.line else -1
        self.left -= len(raw)
        self.oversized = self.oversized or oversized or self.left < 0
        if not self.oversized:
            self.raw += raw
        return self.quote is None

    def record(self) -> CsvRecord:
        text = self.raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        quote = None if self.quote is None else self.quote + 1
        is_long = not self.oversized and text.count(",") >= self.most
        crowded = is_long and any(True for _ in islice(_fields(text), self.most, None))
        fields = [] if self.oversized or crowded else split_fields(text)
        return CsvRecord(self.line, text, fields, quote, self.oversized, crowded, self.broken, self.more)


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV header: `names` as spelled in the file, `keys` as used in a row."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    line: int

    @classmethod
    def of(cls, header: CsvRecord) -> "CsvTable":
        names = tuple(name.strip() for name in header.fields)
        keys = tuple(name.lower() if name.lower() in LEGACY_COLUMNS else name for name in names)
        return cls(names, keys, header.line)

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
                yield finding("csv.extra_column", line=self.line, path=name, name=name, number=number)
            if "\0" in name:
                yield finding("json.nul", line=self.line, path=name)
            seen.add(key)

    def check(self, record: CsvRecord) -> list[Finding]:
        """All findings of one record, each with its line."""
        found = list(text_findings(record))
        if record.quote is not None or not self.keys:
            return found
        if len(record.fields) != len(self.keys):
            found.append(
                finding("csv.columns", line=record.line, met=len(record.fields), wanted=len(self.keys))
            )
        elif self.usable:
            found += self._text_findings(record)
        return found

    def row(self, record: CsvRecord) -> dict[str, str]:
        """The record as an object; the first of several columns with the same name wins."""
        pairs = list(zip(self.keys, record.fields, strict=False))
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
    found = records(blocks, state.limits)
    if header := next(found, None):
        table = CsvTable.of(header)
        state.log.add_all(_of_header(header, table, state.limits))
        for record in found:
            valid = _examined(record, table, state)
            if keep:
                row = _row_of(record, table, valid).kept
                yield [row], len(row.raw)
    if not state.rows:
        state.log.add(finding("file.empty"))


def rows(blocks: Iterable[Block], state: ReadState) -> Iterator[RawRow]:
    """The rows of a file that was already checked."""
    found = records(blocks, state.limits)
    if header := next(found, None):
        table = CsvTable.of(header)
        for record, valid in zip(found, state.valid, strict=False):
            yield _row_of(record, table, bool(valid))


def _row_of(record: CsvRecord, table: CsvTable, valid: bool) -> RawRow:
    return RawRow(record.line, valid, record.text.encode(), table.json(record) if valid else b"")


def _examined(record: CsvRecord, table: CsvTable, state: ReadState) -> bool:
    refused = refusal(record, state.limits)
    found = [refused] if refused else table.check(record)
    valid = state.count(table.usable and ERRORS.isdisjoint(one.code for one in found))
    if not refused:
        state.stats.add(record.line, table.row(record), legacy_csv=True)
    if not state.detection.silent:
        state.log.add_all(found)
    return valid


def _of_header(header: CsvRecord, table: CsvTable, limits: Limits) -> Iterator[Finding]:
    """Findings of the header; column names are not checked if it was not read to its end."""
    if refused := refusal(header, limits):
        yield refused
    else:
        yield from text_findings(header)
        if header.quote is None:
            yield from table.findings()
