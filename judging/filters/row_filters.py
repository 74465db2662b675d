"""Filter conditions on the rows of judgements: text in the question, values of custom fields.

For a rare text or value, the version's search index lists candidate rows, which are then checked. Without an index, or
if many rows match, the rows are checked for some judgements at a time (search.py), each once.
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
from judging.filters.page_limits import LIMITS
from judging.records.models import Run
from judging.records.row_fields import EVERY_ROW, computed_value

_KEPT_SECONDS = 600


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
        return any(map(self._matches_value, values))

    def _matches_value(self, text: str) -> bool:
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


def passing_rows(run: Run, row_filter: RowFilter, rows: Iterable[tuple[int, str]]) -> list[int]:
    """Ids of the matching rows out of (id, JSON) pairs."""
    form = cast(Format, run.version.format)
    return [pk for pk, raw in rows if row_filter.passes(raw, form)]


def all_passing_rows(run: Run, row_filter: RowFilter) -> list[int]:
    """Ids of all matching rows; checks the rows listed by the index, or else all rows of the version."""
    rows = Row.objects.filter(version=run.version_id, valid=True)
    lines = indexed_lines(run, row_filter)
    if lines is not None:
        rows = rows.filter(line__in=lines)
    return passing_rows(run, row_filter, rows.values_list("pk", "raw").iterator())


def indexed_lines(run: Run, row_filter: RowFilter, most: int = LIMITS.lines) -> list[int] | None:
    """Lines of at most `most` rows that include all matches; None if there are more, which reading in order finds soon
    enough, or no index exists."""
    if not run.by_workers or not (row_filter.question or row_filter.equals or row_filter.answer):
        return None
    # A page needs this several times, and the rows of a version never change.
    digest = sha256(repr((row_filter, most)).encode()).hexdigest()
    key = f"lines:{run.version_id}:{run.version.created_at.timestamp()}:{digest}"
    cached: tuple[list[int] | None] | None = cache.get(key)
    if cached is not None:
        return cached[0]
    index = search.open_index(run.version)
    if index is None:
        return None
    try:
        lines = _shortest_lookup(row_filter, index, most)
        cache.set(key, (lines,), _KEPT_SECONDS)
        return lines
    except sqlite3.DatabaseError:  # in the index, which is a separate file
        search.build_again(run.version)
        return None
    finally:
        index.close()


def _shortest_lookup(row_filter: RowFilter, index: Index, most: int) -> list[int] | None:
    lookups = []
    if (
        row_filter.equals
        and row_filter.field not in EVERY_ROW
        and len(row_filter.equals.strip()) <= LONGEST_VALUE
    ):
        lookups.append(index.with_value(row_filter.field, row_filter.equals.strip(), SearchFrom(), most + 1))
    for text in (row_filter.question, row_filter.answer):
        query = index.question(fold(text)) if text else None
        if query is not None:
            lookups.append(index.with_text(query, SearchFrom(), most + 1))
    lines = min(lookups, key=len, default=None)
    return lines if lines is not None and len(lines) <= most else None


def id_subquery(ids: Sequence[int]) -> RawSQL:
    """Ids as a subquery with a single parameter, however many there are."""
    if connection.vendor == "postgresql":
        return RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(list(ids))])
