"""Many rows into a table in the way that costs least: each value is a number, but the last, a text in UTF-8.

SQLite: statements of some rows each, as beginning and ending a statement costs as much as a row. The text goes in as
bytes and is only called text there: decoded for Python and encoded for SQLite it would be copied twice for nothing.
PostgreSQL: COPY in its binary format (documentation of COPY, "Binary Format"), where no character needs an escape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from django.db import connection

AT_ONCE = (250, 25, 1)
"""Rows in a statement, as many as there are; SQLite takes 32,766 values in one."""
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_SIZES = {"q": 8, "i": 4, "h": 2, "?": 1}

Flat = list[Any]
"""The values of all rows one after the other."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table and those of its columns that are given; `kinds` are struct's letters for the numbers among them."""

    table: str
    columns: tuple[str, ...]
    kinds: str


def sending(*given: tuple[Target, Flat]) -> Callable[[], None]:
    """What sends the rows within the transaction that the caller has begun; it may be called in another thread.

    Nothing checks that what the rows refer to exists. Until it is done nobody else may use the connection.
    """
    driver = connection.connection  # Django's own cursor rewrites each statement and looks at each row
    if connection.vendor == "sqlite":
        statements = [made for target, flat in given for made in _statements(target, flat)]
        return lambda: _insert(driver, statements)
    copies = [(_copy_statement(target), _copy_data(target, flat)) for target, flat in given if flat]
    return lambda: _copy(driver, copies)


def _insert(driver: Any, statements: list[tuple[str, Iterator[tuple[Any, ...]]]]) -> None:
    for statement, values in statements:
        driver.executemany(statement, values)


def _statements(target: Target, flat: Flat) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
    """(statement, values of each of its executions): as many rows at once as go."""
    start = 0
    one = f"({'?, ' * len(target.kinds)}CAST(? AS TEXT))"
    insert = f"INSERT INTO {target.table} ({', '.join(target.columns)}) VALUES "  # noqa: S608 - names of our own
    for rows in AT_ONCE:
        values = rows * len(target.columns)
        places = range(start, len(flat) - values + 1, values)
        if places:
            yield insert + ", ".join([one] * rows), _slices(flat, places)
        start += values * len(places)


def _slices(flat: Flat, places: range) -> Iterator[tuple[Any, ...]]:
    return (tuple(flat[at : at + places.step]) for at in places)


def _copy(driver: Any, copies: list[tuple[str, bytes]]) -> None:
    with driver.cursor() as cursor:
        for statement, data in copies:
            with cursor.copy(statement) as copy:
                copy.write(data)


def _copy_statement(target: Target) -> str:
    return f"COPY {target.table} ({', '.join(target.columns)}) FROM STDIN (FORMAT BINARY)"


def _copy_data(target: Target, flat: Flat) -> bytes:
    """Of each row the number of its fields, then each one's length in bytes and its value.

    All that comes before the texts is made column by column.
    """
    width = len(target.columns)
    texts = flat[width - 1 :: width]
    heads = np.empty(len(texts), _head_type(target.kinds))
    heads["fields"], heads["length"] = width, np.fromiter(map(len, texts), np.int32, len(texts))
    for column, kind in enumerate(target.kinds):
        heads[f"size{column}"] = _SIZES[kind]
        heads[f"value{column}"] = flat[column::width]
    packed, size = heads.tobytes(), heads.itemsize
    starts = range(0, len(packed), size)
    parts = chain.from_iterable(
        (packed[at : at + size], text) for at, text in zip(starts, texts, strict=True)
    )
    return b"".join(chain((_SIGNATURE,), parts, (_END,)))


def _head_type(kinds: str) -> np.dtype[np.void]:
    numbers = [
        field for n, kind in enumerate(kinds) for field in ((f"size{n}", ">i4"), (f"value{n}", f">{kind}"))
    ]
    return np.dtype([("fields", ">i2"), *numbers, ("length", ">i4")])
