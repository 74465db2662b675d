"""Streams the values of a JSON file: JSON Lines, one array, or multi-line objects; compressed or not.

Only one value is held in memory, subject to the row limits of an upload.
"""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from datasets.core.decode import Block, Encoding, Unreadable, Upload, blocks, encoding_of, utf8_chunks
from datasets.core.imports.model import NotUsable, SourceFile
from datasets.core.limits import MEBIBYTE, Limits, holds_more_values

_SPACE = re.compile(r"[\s,]*")
_LOOKED_AT = MEBIBYTE
_FIRST_STEP = 64 * 1024


@dataclass(frozen=True, slots=True)
class BrokenJson:
    """A value that cannot be read; `code` is from datasets/import_messages.py."""

    code: str = "json_broken"


def json_records(file: SourceFile, limits: Limits | None = None) -> Iterator[tuple[int, Any]]:
    """Yield each value with the line (from 1) where it starts.

    Values of a top-level array are numbered instead, as they may all be on one line. An invalid value is yielded as
    (line, BrokenJson); JSON Lines then continue, other files end there. Raises NotUsable if the file cannot be decoded
    or decompressed.
    """
    given = limits or Limits()
    with closing(file.upload(given)) as upload:
        encoding = encoding_of(upload)
        try:
            if _is_lines(_beginning(upload, encoding)):
                yield from _lines(upload, encoding)
            else:
                yield from _values(utf8_chunks(upload, encoding), given)
        except Unreadable as trouble:
            raise NotUsable("unreadable", finding=trouble.found.code, file=file.name) from None


def first_records(file: SourceFile, most: int = 20) -> list[Any]:
    """The first complete values, for recognition; [] if the file does not start with JSON. Reads about a megabyte."""
    found: list[Any] = []
    with closing(file.upload()) as upload, suppress(Unreadable):
        if upload.other_kind():
            return []
        start = _beginning(upload, "utf-8" if upload.head()[:2] not in _UTF16 else "utf-16")
        for _line, value in _values(iter([start]), Limits(row_bytes=2 * _LOOKED_AT)):
            if isinstance(value, BrokenJson) or len(found) >= most:
                break
            found.append(value)
    return found


def first_record(file: SourceFile) -> Any:
    """The first value; None if the file does not start with JSON."""
    return next(iter(first_records(file, 1)), None)


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _beginning(upload: Upload, encoding: Encoding) -> bytes:
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
    return not first.lstrip().startswith(b"[") and not isinstance(_value(first), BrokenJson)


def _lines(upload: Upload, encoding: Encoding) -> Iterator[tuple[int, Any]]:
    limits = upload.limits
    for block in blocks(upload, encoding):
        for number, line in enumerate(block.lines, block.first):
            if line.strip() or number in block.oversized:
                yield number, _line_value(number, line, block, limits)


def _line_value(number: int, line: bytes, block: Block, limits: Limits) -> Any:
    if number in block.oversized or holds_more_values(line, limits.row_values):
        return BrokenJson("too_large")
    return _value(line)


def _value(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return BrokenJson()


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
        if isinstance(value, BrokenJson):
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
                return BrokenJson()
            except ValueError:
                waiting = len(self._rest) - self._at
                if waiting > self._limits.row_bytes:
                    return BrokenJson("too_large")
                if not self._more(max(_FIRST_STEP, waiting)):
                    return BrokenJson()
                continue
            if end == len(self._rest) and self._more(_FIRST_STEP):
                continue  # a number may continue
            text = self._rest[self._at : end].encode("utf-8", "surrogatepass")
            self._go(end)
            crowded = holds_more_values(text, self._limits.row_values)
            return BrokenJson("too_large") if crowded else value

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
