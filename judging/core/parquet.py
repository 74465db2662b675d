"""Tables as Parquet files, so far as this site needs them: flat columns of texts, whole numbers and numbers, any of
them empty. Written group by group, so that memory holds one group; a page of each column is gzipped.

Format: github.com/apache/parquet-format, README.md and src/main/thrift/parquet.thrift; the headers are Thrift's
compact protocol (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, Any, Literal

Kind = Literal["text", "whole", "number"]
Cell = str | int | float | None

GROUP_ROWS = 10_000
GROUP_CHARACTERS = 16 * 2**20
_MAGIC = b"PAR1"
_TYPES: dict[Kind, int] = {"whole": 2, "number": 5, "text": 6}  # INT64, DOUBLE, BYTE_ARRAY
_OPTIONAL, _UTF8, _PLAIN, _RLE, _GZIP, _DATA_PAGE = 1, 0, 0, 3, 2, 0
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12

Encoded = tuple[int, bytes]  # a Thrift value: its type and its bytes


def write(file: IO[bytes], columns: Sequence[tuple[str, Kind]], rows: Iterable[Sequence[Cell]]) -> None:
    """Write `rows`, each with a cell for each of `columns`; a text must be encodable as UTF-8."""
    file.write(_MAGIC)
    at, total, groups = len(_MAGIC), 0, []
    for group in _groups(rows):
        chunks, began = [], at
        for (name, kind), cells in zip(columns, zip(*group, strict=True), strict=True):
            page, unpacked = _page(kind, cells)
            file.write(page)
            chunks.append(_chunk(name, kind, len(cells), at, len(page), unpacked))
            at += len(page)
        groups.append(_struct({1: _list(_STRUCT, chunks), 2: _i64(at - began), 3: _i64(len(group))})[1])
        total += len(group)
    footer = _struct({1: _i32(1), 2: _schema(columns), 3: _i64(total), 4: _list(_STRUCT, groups)})[1]
    file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)


def _groups(rows: Iterable[Sequence[Cell]]) -> Iterator[list[Sequence[Cell]]]:
    group: list[Sequence[Cell]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str))
        if len(group) == GROUP_ROWS or size > GROUP_CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _page(kind: Kind, cells: Sequence[Cell]) -> tuple[bytes, int]:
    """A column's cells in one data page with its header: which are there, then those; and its size unpacked."""
    there = b"".join(
        _varint(len(list(run)) << 1) + bytes([is_there])
        for is_there, run in groupby(cell is not None for cell in cells)
    )
    encode = _ENCODERS[kind]
    values = b"".join(encode(cell) for cell in cells if cell is not None)
    body = struct.pack("<I", len(there)) + there + values
    packed = gzip.compress(body, 6, mtime=0)
    header = {1: _i32(len(cells)), 2: _i32(_PLAIN), 3: _i32(_RLE), 4: _i32(_RLE)}
    told = {1: _i32(_DATA_PAGE), 2: _i32(len(body)), 3: _i32(len(packed)), 5: _struct(header)}
    head = _struct(told)[1]
    return head + packed, len(head) + len(body)


def _text(cell: Any) -> bytes:
    encoded = str(cell).encode()
    return struct.pack("<I", len(encoded)) + encoded


_ENCODERS: dict[Kind, Callable[[Any], bytes]] = {
    "text": _text,
    "whole": lambda cell: struct.pack("<q", cell),
    "number": lambda cell: struct.pack("<d", cell),
}


def _schema(columns: Sequence[tuple[str, Kind]]) -> Encoded:
    root = _struct({4: _binary("schema"), 5: _i32(len(columns))})[1]
    leaves = []
    for name, kind in columns:
        fields = {1: _i32(_TYPES[kind]), 3: _i32(_OPTIONAL), 4: _binary(name)}
        leaves.append(_struct(fields | ({6: _i32(_UTF8)} if kind == "text" else {}))[1])
    return _list(_STRUCT, [root, *leaves])


def _chunk(name: str, kind: Kind, cells: int, at: int, size: int, unpacked: int) -> bytes:
    told = {
        1: _i32(_TYPES[kind]),
        2: _list(_I32, [_i32(_PLAIN)[1], _i32(_RLE)[1]]),
        3: _list(_BINARY, [_binary(name)[1]]),
        4: _i32(_GZIP),
        5: _i64(cells),
        6: _i64(unpacked),
        7: _i64(size),
        9: _i64(at),
    }
    return _struct({2: _i64(at), 3: _struct(told)})[1]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _i32(number: int) -> Encoded:
    return _I32, _varint(number << 1)  # zigzag; nothing here is negative


def _i64(number: int) -> Encoded:
    return _I64, _varint(number << 1)


def _binary(text: str) -> Encoded:
    encoded = text.encode()
    return _BINARY, _varint(len(encoded)) + encoded


def _list(kind: int, items: Sequence[bytes]) -> Encoded:
    size = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + _varint(len(items))
    return _LIST, size + b"".join(items)


def _struct(fields: dict[int, Encoded]) -> Encoded:
    """Fields by number, ascending, each less than 16 beyond the one before."""
    out, last = bytearray(), 0
    for number, (kind, encoded) in fields.items():
        out += bytes([(number - last) << 4 | kind]) + encoded
        last = number
    return _STRUCT, bytes(out) + b"\0"
