"""Manual editing of one row: its parts as form fields, its findings, and writing a file with rows replaced."""

import codecs
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from datasets.core.csv_reader import CsvRecord, CsvTable, records_in
from datasets.core.csv_text import csv_record
from datasets.core.decode import Encoding, Unreadable, Upload, utf8_chunks
from datasets.core.findings import Finding, too_large, too_many_values
from datasets.core.formats import Format
from datasets.core.json_errors import JsonProblem, child_path, parse
from datasets.core.json_nodes import Node
from datasets.core.limits import Limits, holds_more_values
from datasets.core.row_repairs import Edit, edited
from datasets.core.rows import findings_of

MOST_FIELDS = 200
_OPENED = frozenset({"messages", "conversation", "model_outputs", "responses", "content"})
"""Lists of objects whose members are separate fields."""
_NOT_TYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Characters that a browser's text field does not return unchanged."""
_NAMES = re.compile(r"(^|\.)(role|model_name)$")
"""Parts whose values a new row copies from existing rows."""
_LINE_END = re.compile(r"[ \t]*\r?\n[ \t]*")


@dataclass(frozen=True, slots=True)
class RowField:
    """One part of a row; `value` is plain text, or JSON as in the row if `kind` is "json"."""

    path: str
    kind: Literal["text", "json"]
    value: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """Text that replaces `lines` physical lines starting at `line` (from 1); its own lines end with \\n.

    An empty text deletes them. With 0 lines, the row is added at the end; such replacements come last.
    """

    line: int
    lines: int
    text: str


def fields_of(text: str, table: CsvTable | None = None) -> list[RowField] | None:
    """The fields of a row in its own order; None if it can only be edited as text. `table`: the header of a CSV."""
    try:
        fields = _columns(text, table) if table else [_field(path, node) for path, node in _parts(text)]
    except JsonProblem:
        return None
    paths = {field.path for field in fields}
    return fields if fields and len(paths) == len(fields) <= MOST_FIELDS else None


def _columns(text: str, table: CsvTable) -> list[RowField]:
    """A record's fields by column name; empty if their numbers do not match."""
    record = record_of(text, table.delimiter)
    if record is None or len(record.fields) != len(table.names):
        return []
    return [RowField(name, "text", value) for name, value in zip(table.names, record.fields, strict=True)]


def _parts(text: str) -> Iterator[tuple[str, Node]]:
    """Yield the values that become fields, with their paths. Raises JsonProblem."""
    root = parse(text)
    for key, node in root.members():
        yield from _within(child_path("", key.plain()), key.plain(), node)


def _within(path: str, name: str, node: Node) -> Iterator[tuple[str, Node]]:
    items = list(node.items()) if name in _OPENED else []
    if not items or any(item.type != "object" for item in items):
        yield path, node
        return
    for number, item in enumerate(items):
        for key, value in item.members():
            yield from _within(child_path(f"{path}[{number}]", key.plain()), key.plain(), value)


def _field(path: str, node: Node) -> RowField:
    if node.type == "string" and not _NOT_TYPED.search(node.plain()):
        return RowField(path, "text", node.plain())
    return RowField(path, "json", node.text[node.start : node.end])


def with_fields(text: str, values: Mapping[str, str], table: CsvTable | None = None) -> str:
    """Replace the changed fields; everything else stays byte for byte (but a CSV record is quoted again)."""
    fields = fields_of(text, table) or []
    typed = [
        replace(field, value=as_typed(field.value, values.get(field.path, field.value))) for field in fields
    ]
    if typed == fields:
        return text
    if table:
        return csv_record([field.value for field in typed], table.delimiter)
    changed = {new.path: new for new, old in zip(typed, fields, strict=True) if new != old}
    return edited(text, _edits(text, changed))


def blank_like(text: str, table: CsvTable | None = None) -> str:
    """A row with the same parts but empty values; "" if the row cannot be shown as fields."""
    fields = fields_of(text, table) or []
    values = {
        field.path: "" if field.kind == "text" else "null"
        for field in fields
        if not _NAMES.search(field.path)
    }
    return with_fields(text, values, table) if fields else ""


def _edits(text: str, changed: Mapping[str, RowField]) -> Iterator[Edit]:
    for path, node in _parts(text):
        if field := changed.get(path):
            spelt = field.value if field.kind == "json" else json.dumps(field.value, ensure_ascii=False)
            yield node.start, node.end, spelt


def as_typed(old: str, new: str) -> str:
    """The typed text with the original line ends, as a browser always sends \\r\\n."""
    plain = _plain_ends(new)
    if plain == _plain_ends(old):
        return old
    return plain.replace("\n", "\r\n") if "\r\n" in old else plain


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    """Put multi-line JSON on one line; invalid JSON stays unchanged."""
    text = text.strip()
    if "\n" in text:
        try:
            parse(text)
        except JsonProblem:
            return text
    return _LINE_END.sub(" ", text)  # JSON strings cannot contain raw line ends


def record_of(text: str, delimiter: str = ",") -> CsvRecord | None:
    """Parse a text as one CSV record; None if it is not exactly one, or has an unclosed quote."""
    records = records_in(text, delimiter=delimiter)
    return records[0] if len(records) == 1 and records[0].quote is None else None


def findings_in(
    text: str, line: int, fmt: Format | None, limits: Limits, table: CsvTable | None = None
) -> list[Finding]:
    """Findings of a single row, errors first; rules that concern several rows are not applied."""
    source = text.encode("utf-8", "replace")
    if len(source) > limits.row_bytes:
        return [too_large(line, limits)]
    if table:
        findings = [
            finding for record in records_in(text, line, table.delimiter) for finding in table.check(record)
        ]
    elif holds_more_values(source, limits.row_values):
        return [too_many_values(line, limits)]
    else:
        findings = findings_of(line, text, fmt)
    return sorted(findings, key=lambda finding: (finding.severity, finding.column or 0, finding.code))


def replaced(
    upload: Upload,
    encoding: Encoding,
    replacements: Iterable[Replacement],
    progress: Callable[[float], None] | None = None,
) -> Iterator[bytes]:
    """Yield the upload in UTF-8 with lines replaced; `replacements` are in ascending order.

    Other bytes of a UTF-8 file stay unchanged. Neither the file nor the replacements are held in memory. `progress`
    gets the share read. Raises OSError; a truncated archive yields what can be read.
    """
    if encoding == "utf-8-sig":
        yield codecs.BOM_UTF8
    writer, done, end, windows = _Writer(replacements), 0, b"\n", False
    with suppress(Unreadable):  # validation of the new file reports it
        for chunk in utf8_chunks(upload, encoding):
            windows = windows or (not done and b"\r\n" in chunk)
            for piece in io.BytesIO(chunk):
                part = writer.feed(piece)
                end = part[-1:] or end
                yield part
            done += len(chunk)
            if progress:
                progress(min(1.0, done / max(upload.bytes, 1)))
    line_end = b"\r\n" if windows else b"\n"
    for text in writer.added():
        yield (b"" if end == b"\n" else line_end) + text + line_end
        end = b"\n"


class _Writer:
    """Takes lines, or parts of long ones; returns each unchanged, a replacement where one starts, or nothing."""

    def __init__(self, replacements: Iterable[Replacement]) -> None:
        self._coming = iter(replacements)
        self._next = next(self._coming, None)
        self._line = 1  # line of the next byte
        self._skip_to = 0  # line from which copying continues
        self._deleting = False
        self._before_end = b""  # last removed byte other than a line feed

    def feed(self, piece: bytes) -> bytes:
        line = self._line
        self._line += piece.endswith(b"\n")
        written = b""
        if line >= self._skip_to:
            replacement = self._next
            if replacement is None or replacement.line != line or replacement.lines == 0:
                return piece
            self._skip_to, self._deleting = line + replacement.lines, not replacement.text
            self._next = next(self._coming, None)
            written = replacement.text.encode("utf-8", "replace")
        self._before_end = piece.removesuffix(b"\n")[-1:] or self._before_end
        if self._line == self._skip_to and not self._deleting:  # keep a missing final line end
            written += b"\r\n" if self._before_end == b"\r" else b"\n"
        return written

    def added(self) -> Iterator[bytes]:
        """The rows to add after the last line."""
        while self._next is not None:
            yield self._next.text.encode("utf-8", "replace")
            self._next = next(self._coming, None)
