"""One row changed by hand: its parts as fields of a form, what is found in it, and a file with such rows replaced."""

import codecs
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from datasets.core.csv_reader import CsvRecord, CsvTable, csv_record, records_in
from datasets.core.decode import Encoding, Unreadable, Upload, utf8_chunks
from datasets.core.findings import Finding, too_large, too_many_values
from datasets.core.formats import Format
from datasets.core.json_errors import JsonProblem, child_path, parse
from datasets.core.json_nodes import Node
from datasets.core.limits import Limits, holds_more_values
from datasets.core.repair.models import Edit, edited
from datasets.core.rows import findings_of

MOST_FIELDS = 200
_OPENED = frozenset({"messages", "conversation", "model_outputs", "responses", "content"})
"""Lists of objects whose members are fields of their own."""
_NOT_TYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Characters that a browser's text field does not give back as they were."""
_NAMES = re.compile(r"(^|\.)(role|model_name)$")
"""Parts that a new row has like the others."""
_LINE_END = re.compile(r"[ \t]*\r?\n[ \t]*")


@dataclass(frozen=True, slots=True)
class RowField:
    """One part of a row: `text` as people read it, or `json` as it is in the row."""

    path: str
    kind: Literal["text", "json"]
    value: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """The text that replaces the `lines` physical lines from `line` (from 1) on; its own lines end with \\n.

    An empty text deletes them. A row of no lines is added at the end; such ones come last.
    """

    line: int
    lines: int
    text: str


def fields_of(text: str, table: CsvTable | None = None) -> list[RowField] | None:
    """The row as a form, in its own order; None if it can only be edited as text. `table`: of a CSV its header."""
    try:
        found = _columns(text, table) if table else [_field(path, node) for path, node in _parts(text)]
    except JsonProblem:
        return None
    paths = {field.path for field in found}
    return found if found and len(paths) == len(found) <= MOST_FIELDS else None


def _columns(text: str, table: CsvTable) -> list[RowField]:
    """A record's fields by the names of their columns; none if they do not fit together."""
    record = record_of(text)
    if record is None or len(record.fields) != len(table.names):
        return []
    return [RowField(name, "text", value) for name, value in zip(table.names, record.fields, strict=True)]


def _parts(text: str) -> Iterator[tuple[str, Node]]:
    """The values that are fields, with their paths. Raises JsonProblem."""
    root = parse(text)
    for key, node in root.members():
        yield from _within(child_path("", key.value), key.value, node)


def _within(path: str, name: str, node: Node) -> Iterator[tuple[str, Node]]:
    items = list(node.items()) if name in _OPENED else []
    if not items or any(item.type != "object" for item in items):
        yield path, node
        return
    for number, item in enumerate(items):
        for key, value in item.members():
            yield from _within(child_path(f"{path}[{number}]", key.value), key.value, value)


def _field(path: str, node: Node) -> RowField:
    if node.type == "string":
        value = node.value
        if not _NOT_TYPED.search(value):
            return RowField(path, "text", value)
    return RowField(path, "json", node.text[node.start : node.end])


def with_fields(text: str, values: Mapping[str, str], table: CsvTable | None = None) -> str:
    """The row with those fields that were changed; all else stays byte for byte (but a CSV record is quoted again)."""
    changed: dict[str, RowField] = {}
    fields = fields_of(text, table) or []
    for field in fields:
        value = as_typed(field.value, values.get(field.path, field.value))
        if value != field.value:
            changed[field.path] = RowField(field.path, field.kind, value)
    if not changed:
        return text
    if table:
        return csv_record([changed.get(field.path, field).value for field in fields])
    return edited(text, _edits(text, changed))


def blank_like(text: str, table: CsvTable | None = None) -> str:
    """A row with the same parts as this one, but with nothing in them; "" of one that is no form."""
    fields = fields_of(text, table) or []
    values = {one.path: "" if one.kind == "text" else "null" for one in fields if not _NAMES.search(one.path)}
    return with_fields(text, values, table) if fields else ""


def _edits(text: str, changed: Mapping[str, RowField]) -> Iterator[Edit]:
    for path, node in _parts(text):
        if field := changed.get(path):
            spelt = field.value if field.kind == "json" else json.dumps(field.value, ensure_ascii=False)
            yield node.start, node.end, spelt


def as_typed(old: str, new: str) -> str:
    """What was typed, with the original line ends: a browser sends \\r\\n whatever it was given."""
    plain = _plain_ends(new)
    if plain == _plain_ends(old):
        return old
    return plain.replace("\n", "\r\n") if "\r\n" in old else plain


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    """JSON that was typed over several lines as the one line that it must be; what is no JSON stays as it is."""
    text = text.strip()
    if "\n" in text:
        try:
            parse(text)
        except JsonProblem:
            return text
    return _LINE_END.sub(" ", text)  # in JSON no string holds a line end as such


def record_of(text: str) -> CsvRecord | None:
    """The record of a CSV that a text is; None if it is none, more than one, or a quote in it never ends."""
    found = records_in(text)
    return found[0] if len(found) == 1 and found[0].quote is None else None


def findings_in(
    text: str, line: int, fmt: Format | None, limits: Limits, table: CsvTable | None = None
) -> list[Finding]:
    """What the ordinary rules find in a row by itself, errors first; what concerns several rows is not among it."""
    source = text.encode("utf-8", "replace")
    if len(source) > limits.row_bytes:
        return [too_large(line, limits)]
    if table:
        found = [one for record in records_in(text, line) for one in table.check(record)]
    elif holds_more_values(source, limits.row_values):
        return [too_many_values(line, limits)]
    else:
        found = findings_of(line, text, fmt)
    return sorted(found, key=lambda one: (one.severity, one.column or 0, one.code))


def replaced(
    upload: Upload,
    encoding: Encoding,
    replacements: Iterable[Replacement],
    progress: Callable[[float], None] | None = None,
) -> Iterator[bytes]:
    """The upload in UTF-8 with some of its lines replaced, which come in ascending order; every other byte of a UTF-8
    file as it is. Neither the file nor the replacements are held in memory. `progress` gets the share that is read.

    Raises OSError; of an archive that is cut, what can be read of it comes.
    """
    if encoding == "utf-8-sig":
        yield codecs.BOM_UTF8
    writer, done, end, windows = _Writer(replacements), 0, b"\n", False
    with suppress(Unreadable):  # its finding is added when the file is validated
        for chunk in utf8_chunks(upload, encoding):
            windows = windows or (not done and b"\r\n" in chunk)
            for piece in io.BytesIO(chunk):
                part = writer.take(piece)
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
    """Lines in, or the parts of long ones; out comes each as it is, a replacement where one starts, or nothing."""

    def __init__(self, replacements: Iterable[Replacement]) -> None:
        self._coming = iter(replacements)
        self._next = next(self._coming, None)
        self._line = 1  # of the byte that comes next
        self._skip_to = 0  # the line with which copying continues
        self._deleting = False
        self._before_end = b""  # the last byte that was left out, but for line ends

    def take(self, piece: bytes) -> bytes:
        line = self._line
        self._line += piece.endswith(b"\n")
        written = b""
        if line >= self._skip_to:
            found = self._next
            if found is None or found.line != line or found.lines == 0:
                return piece
            self._skip_to, self._deleting = line + found.lines, not found.text
            self._next = next(self._coming, None)
            written = found.text.encode("utf-8", "replace")
        self._before_end = piece.removesuffix(b"\n")[-1:] or self._before_end
        if self._line == self._skip_to and not self._deleting:  # a last line without a line end stays without
            written += b"\r\n" if self._before_end == b"\r" else b"\n"
        return written

    def added(self) -> Iterator[bytes]:
        """The rows that come behind the last line."""
        while self._next is not None:
            yield self._next.text.encode("utf-8", "replace")
            self._next = next(self._coming, None)
