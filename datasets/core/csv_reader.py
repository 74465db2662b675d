"""CSV as RFC 4180 has it, and as spreadsheets write it: records that may span lines, and the legacy format in it.

The legacy CSV has a header that names `prompt`, `response` and optionally `system`, and one turn a record.
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
    """One record: where it starts, its text and its fields; `quote` is the column of a quote that never ends.

    `more` lines belong to it in addition to the first.

    One that is `oversized` has no text, one that is `crowded` with fields has none of them.
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
    """The names of a header line."""
    return split_fields(text.rstrip("\r\n"))


def split_fields(text: str) -> list[str]:
    """The fields of one whole record, its line end taken off. A quote counts only where a field starts."""
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
    """The text of a quoted field from its opening quote, and the place after the closing one."""
    end = _closing(text, start + 1)
    inner = text[start + 1 : end] if end >= 0 else text[start + 1 :]
    return inner.replace('""', '"'), end + 1 if end >= 0 else len(text)


def _closing(text: str, position: int) -> int:
    """The place of the quote that ends a field, -1 if there is none; two quotes are one in the text."""
    while True:
        at = text.find('"', position)
        if at < 0 or text[at + 1 : at + 2] != '"':
            return at
        position = at + 2


def open_quote(line: str, inside: bool) -> int | None:
    """Where (from 0) the quote is that is still open at the end of `line`; -1 if it was open before."""
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
    """The records of some blocks of lines. Blank lines between records are skipped.

    A record longer than a row may be is read to its end but not kept; of one with too many fields the text is.
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
    """The records in a text that starts at `line`."""
    source = text.encode("utf-8", "replace")
    return list(records([Block(line, source.split(b"\n"), source)], Limits()))


def csv_record(fields: Iterable[str]) -> str:
    """The text of one record, without a line end."""
    written = io.StringIO()
    csv.writer(written).writerow(fields)  # with another line end it would not quote fields that hold this one
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
        """Takes a physical line; True if the record ends with it."""
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
    """A header. `keys` are the columns as keys of a row, `names` as the file spells them."""

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
        """What is wrong or remarkable about the header; all at its line."""
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
        """Everything found in one record; all of it with its line."""
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
        """The record as an object, of a column that is there twice the first."""
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
    """Why a record, or the header, is not looked at, if it is not."""
    if record.crowded:
        return too_many_values(record.line, limits)
    if record.oversized and record.quote is None:
        return too_large(record.line, limits)
    return None


def text_findings(record: CsvRecord) -> Iterator[Finding]:
    """What is wrong with the text of a record, or of the header, whatever its fields are."""
    if record.broken is not None:
        yield not_utf8(record.line, record.broken)
    if record.quote is not None:
        yield finding("csv.quote", line=record.line, column=record.quote or None, more=record.more)


def examined(blocks: Iterable[Block], state: ReadState, *, keep: bool) -> Iterator[Part]:
    """Examines the records of a file; only where it is to `keep` rows are they handed out."""
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
    """The rows of a file that was examined."""
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
    """Of one that is not read to its end nothing is said of its names."""
    if refused := refusal(header, limits):
        yield refused
    else:
        yield from text_findings(header)
        if header.quote is None:
            yield from table.findings()
