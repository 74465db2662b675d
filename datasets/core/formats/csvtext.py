"""CSV as RFC 4180 has it, and as spreadsheets write it: records that may span lines, with their first line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from datasets.core.limits import Limits


@dataclass(frozen=True, slots=True)
class Record:
    """One record: where it starts, its text and its fields; `quote` is the column of a quote that never ends.

    `more` lines belong to it beside the first.

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
    """The fields of one whole record, its line end taken off. A quote counts only where a field begins."""
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


def _has_more_fields(text: str, most: int) -> bool:
    """Whether a record has more than `most` fields; none of them is kept."""
    return text.count(",") >= most and any(True for _ in islice(_fields(text), most, None))


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
    """Where (from 0) the quote stands that is still open at the end of `line`; -1 if it was open before."""
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


def records(
    lines: Iterable[tuple[int, bytes, bool]], row_bytes: int, row_values: int = Limits().row_values
) -> Iterator[Record]:
    """(number, bytes with line end, oversized) → records. Blank lines between records are skipped.

    A record longer than `row_bytes` is read to its end but not kept; of one with more than `row_values` fields the text
    is.
    """
    building: _Building | None = None
    for number, raw, oversized in lines:
        if building is None:
            if not raw.strip():
                continue
            building = _Building(number, row_bytes, row_values)
        if building.add(number, raw, oversized):
            yield building.record(ended=True)
            building = None
    if building:
        yield building.record(ended=False)


class _Building:
    def __init__(self, line: int, row_bytes: int, row_values: int) -> None:
        self.line, self.room = line, row_bytes
        self.most = row_values
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
        self.room -= len(raw)
        self.oversized = self.oversized or oversized or self.room < 0
        if not self.oversized:
            self.raw += raw
        return self.quote is None

    def record(self, ended: bool) -> Record:
        text = self.raw.decode("utf-8", "replace")
        text = text.removesuffix("\n").removesuffix("\r")
        quote = None if ended or self.quote is None else self.quote + 1
        crowded = not self.oversized and _has_more_fields(text, self.most)
        fields = [] if self.oversized or crowded else split_fields(text)
        return Record(self.line, text, fields, quote, self.oversized, crowded, self.broken, self.more)


def broken_byte(raw: bytes) -> tuple[int, str] | None:
    """The column of the first byte that is no UTF-8, and the byte as `0xFF`; None if all are."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(raw[: error.start].decode("utf-8", "replace")) + 1, f"0x{raw[error.start]:02X}"
    return None
