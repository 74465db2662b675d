"""Filter conditions on the rows of judgements: text in the question, values of custom fields.

For a rare text or value, the version's search index lists candidate rows, which are then checked. Without an index, or
if many rows match, the rows are checked for some judgements at a time (review/places.py), each once.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

from django.core.cache import cache
from django.db import connection
from django.db.models.expressions import RawSQL

from datasets.core.formats import Format
from datasets.core.search_index import LONGEST_VALUE, Index, SearchFrom, decoded, field_values, fold
from datasets.core.variables import row_data
from datasets.models import Row
from datasets.versions import search
from judging.runs.models import Run
from judging.runs.row_fields import EVERY_ROW, computed_value

_KEPT_SECONDS = 600
MOST_LINES = 200
"""Up to this many rows from the index are checked individually; more frequent matches are found soon enough by reading
in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Conditions on a row; '' and None match anything. A value of the field `equals` a text, contains `part`, or is a
    number from `low` to `high`. `answer`: text in one of the row's answers, used only for index lookups."""

    question: str = ""
    field: str = ""
    equals: str = ""
    part: str = ""
    low: float | None = None
    high: float | None = None
    answer: str = ""

    def __bool__(self) -> bool:
        return bool(self.question or self.field)

    def passes(self, raw: str, form: Format) -> bool:
        """Whether a row matches. `raw`: its JSON; `form`: its version's format."""
        return self._has_field(raw, form) and self._has_question(raw, form)

    def _has_question(self, raw: str, form: Format) -> bool:
        if not self.question:
            return True
        # Decoding is expensive, so most rows are excluded by a search in the raw JSON, unless it has escapes.
        quoted = json.dumps(self.question, ensure_ascii=False)[1:-1]
        if "\\u" not in raw and fold(quoted) not in fold(raw):
            return False
        return fold(self.question) in fold(row_data(raw, form)["question"] or "")

    def _has_field(self, raw: str, form: Format) -> bool:
        if not self.field:
            return True
        values = [text for name, text in field_values(decoded(raw, True), form) if name == self.field]
        if not values and self.field in EVERY_ROW:
            values = [computed_value(row_data(raw, form), self.field) or ""]
        return any(map(self._is_meant, values))

    def _is_meant(self, text: str) -> bool:
        if self.equals and text != self.equals.strip():
            return False
        if fold(self.part) not in fold(text):
            return False
        if self.low is None and self.high is None:
            return True
        number = _number(text)
        if number is None:
            return False
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def passing_rows(run: Run, asked: RowFilter, rows: Iterable[tuple[int, str]]) -> list[int]:
    """Ids of the matching rows out of (id, JSON) pairs."""
    form = cast(Format, run.version.format)
    return [pk for pk, raw in rows if asked.passes(raw, form)]


def all_passing_rows(run: Run, asked: RowFilter) -> list[int]:
    """Ids of all matching rows; checks the rows listed by the index, or else all rows of the version."""
    rows = Row.objects.filter(version=run.version_id, valid=True)
    lines = known_lines(run, asked)
    if lines is not None:
        rows = rows.filter(line__in=lines)
    return passing_rows(run, asked, rows.values_list("pk", "raw").iterator())


def known_lines(run: Run, asked: RowFilter) -> list[int] | None:
    """Lines of a few rows that include all matches; None if there are many or no index exists."""
    if not run.by_workers or not (asked.question or asked.equals or asked.answer):
        return None
    # A page needs this several times, and the rows of a version never change.
    key = f"lines:{run.version_id}:{run.version.created_at.timestamp()}:{sha256(repr(asked).encode()).hexdigest()}"
    kept: tuple[list[int] | None] | None = cache.get(key)
    if kept is not None:
        return kept[0]
    index = search.open_index(run.version)
    if index is None:
        return None
    try:
        found = _fewest(asked, index)
        cache.set(key, (found,), _KEPT_SECONDS)
        return found
    except sqlite3.DatabaseError:  # in the index, which is a separate file
        search.build_again(run.version)
        return None
    finally:
        index.close()


def _fewest(asked: RowFilter, index: Index) -> list[int] | None:
    found = []
    if asked.equals and asked.field not in EVERY_ROW and len(asked.equals.strip()) <= LONGEST_VALUE:
        found.append(index.with_value(asked.field, asked.equals.strip(), SearchFrom(), MOST_LINES + 1))
    for text in (asked.question, asked.answer):
        query = index.question(fold(text)) if text else None
        if query is not None:
            found.append(index.with_text(query, SearchFrom(), MOST_LINES + 1))
    lines = min(found, key=len, default=None)
    return lines if lines is not None and len(lines) <= MOST_LINES else None


def these(ids: Sequence[int]) -> RawSQL:
    """Ids as a subquery with a single parameter, however many there are."""
    if connection.vendor == "postgresql":
        return RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(list(ids))])
