"""Reads JSON of other tools: the values of a file one by one, or a whole document up to a limit; compressed or not.

The values are those of JSON Lines, of one array, or multi-line objects. Only one is held in memory, subject to the row
limits of an upload.
"""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

import msgspec

from datasets.core.decode import Block, Upload, blocks, first_encoding, text_encoding, utf8_chunks
from datasets.core.findings import broken_byte
from datasets.core.imports.model import BrokenRecord, MendedRecord, NotUsable, SourceFile
from datasets.core.json_repairs import as_json
from datasets.core.limits import MEBIBYTE, Limits, holds_more_values

DOCUMENT_BYTES = 512 * MEBIBYTE
"""Larger documents are rejected, as the whole document is held in memory."""
UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError)
_BEGINNING = 64 * 1024
_LOOKED_AT = MEBIBYTE
_FIRST_STEP = 64 * 1024
_SPACE = re.compile(r"[\s,]*")
_BROKEN, _END = BrokenRecord("json_broken"), BrokenRecord("json_ends")
_LINES_LOOKED_AT = 20
_NOTHING = (b"null", b'""', b"[]", b"{}")

Kind = TypeVar("Kind")


def value_at(value: Any, *keys: str) -> Any:
    """The value under these keys, one inside the other; None if one is missing or not in an object."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def object_at(value: Any, *keys: str) -> dict[str, Any]:
    """The object under these keys; {} if there is none."""
    inner = value_at(value, *keys)
    return inner if isinstance(inner, dict) else {}


def list_at(value: Any, *keys: str) -> list[Any]:
    """The list under these keys; [] if there is none."""
    inner = value_at(value, *keys)
    return inner if isinstance(inner, list) else []


def single(value: Any) -> Any:
    """The only item of a list, None for an empty one; any other value as it is."""
    return next(iter(value), None) if isinstance(value, list) and len(value) < 2 else value


def json_records(file: SourceFile, limits: Limits | None = None) -> Iterator[tuple[int, Any]]:
    """Yield each value with the line (from 1) where it starts.

    Values of a top-level array are numbered instead, as they may all be on one line. An invalid value is yielded as
    (line, BrokenRecord); JSON Lines then continue, other files end there. Raises NotUsable if the file cannot be
    decoded or decompressed.
    """
    with file.upload(limits) as upload:
        encoding = text_encoding(upload)
        if _is_lines(_start(upload, encoding)):
            yield from _lines(upload, encoding)
        else:
            yield from _values(utf8_chunks(upload, encoding), upload.limits)


def first_records(file: SourceFile, most: int = 20) -> list[Any]:
    """The first complete values, for recognition; [] if the file does not start with JSON. Reads about a megabyte."""
    with suppress(NotUsable), file.upload() as upload:
        if upload.other_kind():
            return []
        start = _start(upload, first_encoding(upload))
        if _is_lines(start):
            values = (_value(line) for line in start.split(b"\n") if line.strip())
            return list(islice((value for value in values if not isinstance(value, BrokenRecord)), most))
        return list(islice(_whole(start), most))
    return []


def _whole(start: bytes) -> Iterator[Any]:
    """The values at the start of a document, up to one that is broken or cut."""
    for _line, value in _values(iter([start]), Limits(row_bytes=2 * _LOOKED_AT)):
        if isinstance(value, BrokenRecord):
            return
        yield value


def first_record(file: SourceFile) -> Any:
    """The first value; None if the file does not start with JSON."""
    return next(iter(first_records(file, 1)), None)


def _start(upload: Upload, encoding: str) -> bytes:
    """About the first megabyte as UTF-8."""
    start = bytearray()
    for chunk in utf8_chunks(upload, encoding):
        start += chunk
        if len(start) >= _LOOKED_AT:
            break
    return bytes(start)


def _is_lines(start: bytes) -> bool:
    """Whether the first line is a complete value other than a list, or most of the first lines are objects."""
    first = [
        line for line in start.split(b"\n", 2 * _LINES_LOOKED_AT)[: 2 * _LINES_LOOKED_AT] if line.strip()
    ]
    if not first or first[0].lstrip().startswith(b"["):
        return False
    values = [_value(line) for line in first[:_LINES_LOOKED_AT]]
    objects = sum(isinstance(value, dict) for value in values)
    return not isinstance(values[0], BrokenRecord) or (objects > 0 and 2 * objects >= len(values) - 1)


def _lines(upload: Upload, encoding: str) -> Iterator[tuple[int, Any]]:
    limits = upload.limits
    for block in blocks(upload, encoding):
        for number, line in enumerate(block.lines, block.first):
            if line.strip() or number in block.oversized:
                yield number, _line_value(number, line, block, limits)


def _line_value(number: int, line: bytes, block: Block, limits: Limits) -> Any:
    if number in block.oversized or holds_more_values(line, limits.row_values):
        return BrokenRecord("too_large")
    return _value(line)


def _value(line: bytes) -> Any:
    try:
        value = msgspec.json.decode(line)
    except UNDECODED:
        return _mended(line)
    if isinstance(value, dict) and line.count(b":") != _colons(value):
        return _with_last_keys(line, value)
    return value


def _colons(value: Any) -> int:
    """How many colons the value has as JSON; fewer than its text if a key was lost because it stands there twice."""
    try:
        return msgspec.json.encode(value).count(b":")
    except (*UNDECODED, UnicodeError, OverflowError):
        return -1


def _with_last_keys(line: bytes, value: dict[str, Any]) -> Any:
    """The value, with a warning that names a key that occurs twice in it."""
    twice: list[str] = []

    def with_last_values(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names: dict[str, Any] = {}
        for name, inner in pairs:
            twice.extend([name] if name in names else [])
            names[name] = inner
        return names

    with suppress(*UNDECODED):
        json.loads(line, object_pairs_hook=with_last_values)
    return MendedRecord(value, "key_twice", ", ".join(dict.fromkeys(twice))) if twice else value


def _mended(line: bytes) -> Any:
    """The object in a line that is nearly JSON, with a warning; else why it cannot be read."""
    if broken := broken_byte(line):
        return BrokenRecord("not_utf8", broken[1])
    constants: list[str] = []
    written = as_json(line.decode())
    try:
        value = json.loads(written or line, parse_constant=constants.append)
    except UNDECODED:
        return _BROKEN
    if not isinstance(value, dict) or not (constants or written):
        return _BROKEN
    code = "python_literal" if written else "nan"
    return MendedRecord(value, code, ", ".join(dict.fromkeys(constants)))


def _values(chunks: Iterator[bytes], limits: Limits) -> Iterator[tuple[int, Any]]:
    """Values in sequence or inside an array, separated by commas and white space."""
    text = Text(chunks, limits)
    text.skip()
    in_array = text.take("[")
    number = 0
    while text.skip():
        if in_array and text.take("]"):
            in_array = False
            continue
        number += 1
        line, value = text.line, text.value()
        broken = isinstance(value, BrokenRecord)
        yield number if in_array else line, _END if value is _BROKEN else value
        if broken:
            return


class Text:
    """A text decoded from chunks; holds only the part not yet consumed."""

    def __init__(self, chunks: Iterator[bytes], limits: Limits) -> None:
        self._chunks, self._limits = chunks, limits
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest, self._at, self.line = "", 0, 1
        self._constants: list[str] = []
        self._decode = json.JSONDecoder(parse_constant=self._constants.append).raw_decode

    def skip(self) -> bool:
        """Skip white space and commas; return False at the end."""
        while True:
            match = _SPACE.match(self._rest, self._at)
            self._go(match.end() if match else self._at)
            if self._at < len(self._rest):
                return True
            if not self._more(_FIRST_STEP):
                return False

    def take(self, sign: str) -> bool:
        if self._rest[self._at : self._at + 1] != sign:
            return False
        self._go(self._at + 1)
        return True

    def value(self) -> Any:
        """Parse the value at the current position, reading more until it is complete."""
        while True:
            self._constants.clear()
            try:
                value, end = self._decode(self._rest, self._at)
            except RecursionError:
                return _BROKEN
            except ValueError:
                waiting = len(self._rest) - self._at
                if waiting > self._limits.row_bytes:
                    return BrokenRecord("too_large")
                if not self._more(max(_FIRST_STEP, waiting)):
                    return _BROKEN
                continue
            if end == len(self._rest) and self._more(_FIRST_STEP):
                continue  # a number may continue
            text = self._rest[self._at : end].encode("utf-8", "surrogatepass")
            self._go(end)
            crowded = holds_more_values(text, self._limits.row_values)
            if crowded:
                return BrokenRecord("too_large")
            is_mended = self._constants and isinstance(value, dict)
            return (
                MendedRecord(value, "nan", ", ".join(dict.fromkeys(self._constants))) if is_mended else value
            )

    def _go(self, end: int) -> None:
        self.line += self._rest.count("\n", self._at, end)
        self._at = end

    def _more(self, wanted: int) -> bool:
        """Read about `wanted` more bytes; return False at the end."""
        parts, size = [self._rest[self._at :]], 0
        while size < wanted and (chunk := next(self._chunks, None)) is not None:
            size += len(chunk)
            parts.append(self._decoder.decode(chunk))
        self._rest, self._at = "".join(parts), 0
        return size > 0


def beginning(file: SourceFile) -> bytes:
    """The first kilobytes in UTF-8, decompressed; b'' if the file is not text."""
    start = b""
    with suppress(NotUsable), file.upload() as upload:
        if upload.other_kind():
            return b""
        for chunk in utf8_chunks(upload, first_encoding(upload)):
            start += chunk
            if len(start) >= _BEGINNING:
                break
    return start[:_BEGINNING].lstrip()


def is_blank(file: SourceFile) -> bool:
    """Whether the file holds nothing but white space and byte order marks."""
    with suppress(NotUsable), file.upload() as upload:
        texts = (chunk.decode("utf-8", "replace") for chunk in utf8_chunks(upload, first_encoding(upload)))
        return not upload.other_kind() and not any(text.replace("\ufeff", "").strip() for text in texts)
    return False


def document(file: SourceFile, limits: Limits) -> bytes:
    """The whole file in UTF-8. Raises NotUsable."""
    content = bytearray()
    with file.upload(limits) as upload:
        for chunk in utf8_chunks(upload, text_encoding(upload)):
            content += chunk
            if len(content) > DOCUMENT_BYTES:
                raise NotUsable("too_large", file=file.name)
    return bytes(content)


def decoded(text: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Kind], file: SourceFile) -> Kind:
    """Decode only the parts of a document that the decoder's type declares. Raises NotUsable."""
    try:
        return decoder.decode(text)
    except UNDECODED:
        raise NotUsable("json_broken", file=file.name) from None


def plain_json(text: bytes) -> tuple[bytes, str]:
    """A document with null for NaN and Infinity, which some tools write, and the names of those it held."""
    with suppress(*UNDECODED):
        msgspec.json.decode(text, type=msgspec.Raw)
        return text, ""
    constants: list[str] = []
    with suppress(*UNDECODED):
        text = json.dumps(json.loads(text, parse_constant=constants.append)).encode()
    return text, ", ".join(dict.fromkeys(constants))


def held_keys(parts: dict[str, msgspec.Raw]) -> list[str]:
    """The keys of an object that hold something; what they hold can be large and is not decoded."""
    return [name for name, raw in parts.items() if bytes(memoryview(raw)[:5]) not in _NOTHING]


def value_of(raw: msgspec.Raw) -> Any:
    """Decode one part of a document; None if it is invalid or too deep."""
    try:
        return msgspec.json.decode(raw)
    except UNDECODED:
        return None
