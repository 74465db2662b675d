"""Parquet files: read back here by the format's own rules, field by field."""

from __future__ import annotations

import gzip
import io
import struct
from typing import Any

import pytest

from judging.core import parquet
from judging.core.parquet import Cell, Kind

COLUMNS: list[tuple[str, Kind]] = [("line", "whole"), ("text", "text"), ("score", "number")]


class Thrift:
    """Reads the compact protocol: structs as {number: value}."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def value(self, kind: int) -> Any:
        if kind in (5, 6):
            number = self.varint()
            return number >> 1 ^ -(number & 1)
        if kind == 8:
            return self.take(self.varint()).decode()
        if kind == 9:
            head = self.take(1)[0]
            size = self.varint() if head >> 4 == 15 else head >> 4
            return [self.value(head & 15) for _ in range(size)]
        return self.struct()

    def struct(self) -> dict[int, Any]:
        fields, number = {}, 0
        while head := self.take(1)[0]:
            number += head >> 4
            fields[number] = self.value(head & 15)
        return fields


def written(rows: list[tuple[Cell, ...]], columns: list[tuple[str, Kind]] = COLUMNS) -> bytes:
    file = io.BytesIO()
    parquet.write(file, columns, rows)
    return file.getvalue()


def footer(data: bytes) -> dict[int, Any]:
    assert (data[:4], data[-4:]) == (b"PAR1", b"PAR1")
    (size,) = struct.unpack("<I", data[-8:-4])
    return Thrift(data, len(data) - 8 - size).struct()


def column(data: bytes, chunk: dict[int, Any]) -> list[Any]:
    """The cells of one column in one group."""
    told = chunk[3]
    reader = Thrift(data, told[9])
    page = reader.struct()
    body = gzip.decompress(reader.take(page[3]))
    assert (len(body), page[5][1], reader.at - told[9]) == (page[2], told[5], told[7])
    (size,) = struct.unpack("<I", body[:4])
    levels, there = Thrift(body[4 : 4 + size]), []
    while levels.at < size:
        count = levels.varint()
        there += [levels.take(1)[0]] * (count >> 1)
    values = Thrift(body, 4 + size)
    return [decoded(values, told[1]) if one else None for one in there]


def decoded(values: Thrift, kind: int) -> Any:
    if kind == 6:
        return values.take(struct.unpack("<I", values.take(4))[0]).decode()
    return struct.unpack("<q" if kind == 2 else "<d", values.take(8))[0]


def rows_of(data: bytes) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for group in footer(data)[4]:
        found += zip(*(column(data, chunk) for chunk in group[1]), strict=True)
    return found


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(1, "天空 \n", 0.5)],
        [(None, None, None)],
        [(n, None if n % 3 else f"row {n}", n / 7 if n % 2 else None) for n in range(300)],
        [(2**62, "", -1e300)],
    ],
    ids=["nothing", "one", "empty", "many", "extremes"],
)
def test_cells_are_read_back_as_they_were(rows: list[tuple[Cell, ...]]) -> None:
    assert rows_of(written(rows)) == rows


def test_columns_have_their_names_and_types() -> None:
    schema = footer(written([(1, "a", 1.0)]))[2]
    assert [(one[4], one.get(1), one.get(6)) for one in schema] == [
        ("schema", None, None),
        ("line", 2, None),
        ("text", 6, 0),
        ("score", 5, None),
    ]


def test_long_tables_are_written_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 10)
    rows: list[tuple[Cell, ...]] = [(n, "x", None) for n in range(25)]
    data = written(rows)
    assert [group[3] for group in footer(data)[4]] == [10, 10, 5]
    assert (footer(data)[3], rows_of(data)) == (25, rows)


def test_a_group_ends_where_its_texts_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_CHARACTERS", 100)
    assert len(footer(written([(n, "x" * 60, None) for n in range(4)]))[4]) == 2


def test_more_than_fifteen_columns_are_held() -> None:
    columns: list[tuple[str, Kind]] = [(f"c{n}", "whole") for n in range(40)]
    assert rows_of(written([tuple(range(40))], columns)) == [tuple(range(40))]
