"""Reads JSON of other tools: the values of a file one by one, or a whole document up to a limit; compressed or not.

The values are those of JSON Lines, of one array, or multi-line objects. Only one is held in memory, subject to the row
limits of an upload.
"""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from datasets.core.decode import Block, Encoding, Upload, blocks, encoding_of, marked_encoding, utf8_chunks
from datasets.core.imports.model import BrokenRecord, NotUsable, SourceFile
from datasets.core.limits import MEBIBYTE, Limits, holds_more_values

DOCUMENT_BYTES = 512 * MEBIBYTE
"""Larger documents are rejected, as the whole document is held in memory."""
UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError)
_BEGINNING = 64 * 1024
_LOOKED_AT = MEBIBYTE
_FIRST_STEP = 64 * 1024
_SPACE = re.compile(r"[\s,]*")
_BROKEN = BrokenRecord("json_broken")

Kind = TypeVar("Kind")


def value_at(value: Any, *keys: str) -> Any:
    """The value under these keys, one inside the other; None if one is missing or not in an object."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def object_at(value: Any, *keys: str) -> dict[str, Any]:
    """The object under these keys; {} if there is none."""
    found = value_at(value, *keys)
    return found if isinstance(found, dict) else {}


def list_at(value: Any, *keys: str) -> list[Any]:
    """The list under these keys; [] if there is none."""
    found = value_at(value, *keys)
    return found if isinstance(found, list) else []


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
        encoding = encoding_of(upload)
        if _is_lines(_start(upload, encoding)):
            yield from _lines(upload, encoding)
        else:
            yield from _values(utf8_chunks(upload, encoding), upload.limits)


def first_records(file: SourceFile, most: int = 20) -> list[Any]:
    """The first complete values, for recognition; [] if the file does not start with JSON. Reads about a megabyte."""
    found: list[Any] = []
    with suppress(NotUsable), file.upload() as upload:
        if upload.other_kind():
            return []
        start = _start(upload, marked_encoding(upload.head()))
        for _line, value in _values(iter([start]), Limits(row_bytes=2 * _LOOKED_AT)):
            if isinstance(value, BrokenRecord) or len(found) >= most:
                break
            found.append(value)
    return found


def first_record(file: SourceFile) -> Any:
    """The first value; None if the file does not start with JSON."""
    return next(iter(first_records(file, 1)), None)


def _start(upload: Upload, encoding: Encoding) -> bytes:
    """About the first megabyte as UTF-8."""
    start = bytearray()
    for chunk in utf8_chunks(upload, encoding):
        start += chunk
        if len(start) >= _LOOKED_AT:
            break
    return bytes(start)


def _is_lines(start: bytes) -> bool:
    """Whether the first non-blank line is a complete value other than a list."""
    first = next((line for line in start.split(b"\n") if line.strip()), b"")
    return not first.lstrip().startswith(b"[") and not isinstance(_value(first), BrokenRecord)


def _lines(upload: Upload, encoding: Encoding) -> Iterator[tuple[int, Any]]:
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
        return msgspec.json.decode(line)
    except UNDECODED:
        return _BROKEN


def _values(chunks: Iterator[bytes], limits: Limits) -> Iterator[tuple[int, Any]]:
    """Values in sequence or inside an array, separated by commas and white space."""
    text = _Text(chunks, limits)
    text.skip()
    in_array = text.take("[")
    number = 0
    while text.skip():
        if in_array and text.take("]"):
            in_array = False
            continue
        number += 1
        line, value = text.line, text.value()
        yield number if in_array else line, value
        if isinstance(value, BrokenRecord):
            return


class _Text:
    """A text decoded from chunks; holds only the part not yet consumed."""

    def __init__(self, chunks: Iterator[bytes], limits: Limits) -> None:
        self._chunks, self._limits = chunks, limits
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest, self._at, self.line = "", 0, 1
        self._decode = json.JSONDecoder(parse_constant=_no_constant).raw_decode

    def skip(self) -> bool:
        """Skip white space and commas; return False at the end."""
        while True:
            found = _SPACE.match(self._rest, self._at)
            self._go(found.end() if found else self._at)
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
            return BrokenRecord("too_large") if crowded else value

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


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def beginning(file: SourceFile) -> bytes:
    """The first kilobytes, decompressed; b'' if the file is not text."""
    found = b""
    with suppress(NotUsable), file.upload() as upload:
        if upload.other_kind():
            return b""
        for chunk in upload.chunks():
            found += chunk
            if len(found) >= _BEGINNING:
                break
    return found[:_BEGINNING].removeprefix(codecs.BOM_UTF8).lstrip()


def document(file: SourceFile, limits: Limits) -> bytes:
    """The whole file in UTF-8. Raises NotUsable."""
    found = bytearray()
    with file.upload(limits) as upload:
        for chunk in utf8_chunks(upload, encoding_of(upload)):
            found += chunk
            if len(found) > DOCUMENT_BYTES:
                raise NotUsable("too_large", file=file.name)
    return bytes(found)


def decoded(text: bytes, decoder: msgspec.json.Decoder[Kind], file: SourceFile) -> Kind:
    """Decode only the parts of a document that the decoder's type declares. Raises NotUsable."""
    try:
        return decoder.decode(text)
    except UNDECODED:
        raise NotUsable("json_broken", file=file.name) from None


def value_of(raw: msgspec.Raw) -> Any:
    """Decode one part of a document; None if it is invalid or too deep."""
    try:
        return msgspec.json.decode(raw)
    except UNDECODED:
        return None
