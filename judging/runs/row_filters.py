"""What filters ask of the rows that judgements are about: a text in the question, a custom field's value.

The search index of a version names the rows that may hold a rare text or value; what it names is looked at. Without it,
or for what many rows hold, the rows of some judgements at a time are looked at (review/places.py), each once.
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
"""So many rows are looked at one by one wherever they stand; what more rows hold is met soon enough on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """What is asked of a row; '' and None mean anything. One of the field's values `equals` a text, or contains `part`,
    or is a number from `low` to `high`. `answer` is a text in one of its answers, which only the index knows here."""

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
        """Does a row hold it? `raw` is its JSON, `form` its version's format."""
        return self._has_field(raw, form) and self._has_question(raw, form)

    def _has_question(self, raw: str, form: Format) -> bool:
        if not self.question:
            return True
        # Decoding costs far more than a look: most rows are done with here, unless their JSON is written in escapes.
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
    """The ids of those of the rows (id, JSON) that hold what is asked."""
    form = cast(Format, run.version.format)
    return [pk for pk, raw in rows if asked.passes(raw, form)]


def all_passing_rows(run: Run, asked: RowFilter) -> list[int]:
    """The ids of all rows that hold what is asked: those that the index names, or all of the version, are looked at."""
    rows = Row.objects.filter(version=run.version_id, valid=True)
    lines = known_lines(run, asked)
    if lines is not None:
        rows = rows.filter(line__in=lines)
    return passing_rows(run, asked, rows.values_list("pk", "raw").iterator())


def known_lines(run: Run, asked: RowFilter) -> list[int] | None:
    """The lines of a few rows among which are all that hold what is asked; None where they are many, or where
    there is no index."""
    if not run.by_workers or not (asked.question or asked.equals or asked.answer):
        return None
    # A page asks several times, and the rows of a version never change.
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
    except sqlite3.DatabaseError:  # of the index, which is a file of its own
        search.build_again(run.version)
        return None
    finally:
        index.close()


def _fewest(asked: RowFilter, index: Index) -> list[int] | None:
    found = []
    if asked.equals and asked.field not in EVERY_ROW and len(asked.equals.strip()) <= LONGEST_VALUE:
        found.append(index.with_value(asked.field, asked.equals.strip(), SearchFrom(), MOST_LINES + 1))
    for text in (asked.question, asked.answer):
        wanted = index.question(fold(text)) if text else None
        if wanted is not None:
            found.append(index.with_text(wanted, SearchFrom(), MOST_LINES + 1))
    lines = min(found, key=len, default=None)
    return lines if lines is not None and len(lines) <= MOST_LINES else None


def these(ids: Sequence[int]) -> RawSQL:
    """Ids as a subquery: however many, they are one parameter."""
    if connection.vendor == "postgresql":
        return RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(list(ids))])
