"""Many rows into a table in the way that costs least: each value is a number, but the last, a text in UTF-8.

SQLite: statements of fifty rows each, as beginning and ending a statement costs as much as a row. The text goes in as
bytes and is only called text there: decoded for Python and encoded for SQLite it would be copied twice for nothing.
PostgreSQL: COPY in its binary format (documentation of COPY, "Binary Format"), where no character needs an escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from typing import Any

from django.db import connection

AT_ONCE = 50
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_SIZES = {"q": 8, "i": 4, "h": 2, "?": 1}


@dataclass(frozen=True, slots=True)
class Target:
    """A table and those of its columns that are given; `kinds` are struct's letters for the numbers among them."""

    table: str
    columns: tuple[str, ...]
    kinds: str


def insert(target: Target, rows: Sequence[tuple[Any, ...]]) -> None:
    """Inside the caller's transaction. Nothing checks here that what the rows refer to exists."""
    if not rows:
        return
    if connection.vendor == "sqlite":
        _insert_sqlite(target, rows)
    else:
        _copy_postgresql(target, rows)


def _insert_sqlite(target: Target, rows: Sequence[tuple[Any, ...]]) -> None:
    # The driver's own cursor: Django's rewrites each statement and looks at each row.
    with connection.cursor() as cursor:
        whole = len(rows) - len(rows) % AT_ONCE
        if whole:
            flat = (chain.from_iterable(rows[at : at + AT_ONCE]) for at in range(0, whole, AT_ONCE))
            cursor.connection.executemany(_statement(target, AT_ONCE), map(tuple, flat))
        if whole < len(rows):
            cursor.connection.executemany(_statement(target, 1), rows[whole:])


def _statement(target: Target, rows: int) -> str:
    one = f"({'?, ' * len(target.kinds)}CAST(? AS TEXT))"
    return f"INSERT INTO {target.table} ({', '.join(target.columns)}) VALUES {', '.join([one] * rows)}"  # noqa: S608 - names of our own


def _copy_postgresql(target: Target, rows: Sequence[tuple[Any, ...]]) -> None:
    head = Struct(">h" + "".join("i" + kind for kind in target.kinds) + "i").pack
    sizes = [_SIZES[kind] for kind in target.kinds]
    fields = len(target.columns)
    parts = [_SIGNATURE]
    for *numbers, text in rows:
        parts.append(head(fields, *chain.from_iterable(zip(sizes, numbers, strict=True)), len(text)))
        parts.append(text)
    parts.append(_END)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {target.table} ({', '.join(target.columns)}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.write(b"".join(parts))
