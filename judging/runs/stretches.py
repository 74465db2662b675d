"""The first rows of several queries by one statement: Django's own unions take no limits on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

_TOGETHER = 100  # queries in one statement; SQLite takes 500


def rows_of_each(parts: Sequence[QuerySet[Any, Any]], columns: str = "*") -> list[Any]:
    """The rows of all parts, one part after another; `columns` may be an aggregate over each part."""
    compiled = [one for part in parts if (one := _compiled(part)) is not None]
    found: list[Any] = []
    for at in range(0, len(compiled), _TOGETHER):
        together = compiled[at : at + _TOGETHER]
        sql = " UNION ALL ".join(f"SELECT {columns} FROM ({one}) AS part" for one, _ in together)  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(sql, [value for _, values in together for value in values])
            found += cursor.fetchall()
    return found


def _compiled(part: QuerySet[Any, Any]) -> tuple[str, Sequence[Any]] | None:
    """The query's SQL and what is filled in; None where nothing can match."""
    try:
        return part.query.sql_with_params()
    except EmptyResultSet:
        return None
