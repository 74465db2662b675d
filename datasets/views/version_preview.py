"""Preview of a version: its first rows with references and answers, and its fields with examples."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Length

from datasets import selectors
from datasets.core.rules import JSON_TYPES
from datasets.core.search_index import decoded
from datasets.core.variables import reference_in, response_data
from datasets.messages import TYPES
from datasets.models import Response, Row, Version
from datasets.views import row_browser
from datasets.views.row_browser import EXCERPT, WHOLE, BrowserFilter, RowLine
from evalsite.truncation import truncate

ROWS, MODELS = 3, 4
LOOKED_AT, EXAMPLES, EXAMPLE = 50, 3, 60  # rows read for examples, examples per field, characters per example


@dataclass(frozen=True, slots=True)
class FirstRow:
    """A row; `reference` is '' if there is none, `answers` are (model, beginning of its first answer)."""

    line: RowLine
    reference: str
    answers: list[tuple[str, str]]
    more: int  # number of further models with answers


def first_rows(version: Version) -> list[FirstRow]:
    """The first rows, valid or not; invalid and very long ones only with their beginning."""
    lines = row_browser.rows_page(version, BrowserFilter(), size=ROWS).rows
    short = version.data_rows.filter(line__in=[line.line for line in lines if line.question])
    short = short.annotate(length=Length("raw")).filter(length__lte=WHOLE)
    rows = {row.line: row for row in short}
    answers = _answers(list(rows.values()))
    return [_first(line, rows.get(line.line), answers) for line in lines]


def _first(line: RowLine, row: Row | None, answers: dict[int, list[tuple[str, str]]]) -> FirstRow:
    if row is None:
        return FirstRow(line, "", [], 0)
    first_answers = answers.get(row.pk, [])
    reference = reference_in(selectors.row_values(row))
    text = "" if reference is None else truncate(_as_text(reference), EXCERPT)
    return FirstRow(line, text, first_answers[:MODELS], max(len(first_answers) - MODELS, 0))


def _answers(rows: list[Row]) -> dict[int, list[tuple[str, str]]]:
    """{row: [(model, beginning of its first answer)]}."""
    first = Response.uploaded.filter(row__in=rows, number=1).order_by("candidate__name")
    first_answers: dict[int, list[tuple[str, str]]] = {}
    for row, name, raw in first.values_list("row_id", "candidate__name", "raw"):
        first_answers.setdefault(row, []).append(
            (name, truncate(str(response_data(raw)["content"]), EXCERPT))
        )
    return first_answers


@dataclass(frozen=True, slots=True)
class FieldSeen:
    """A field with its number of rows, and the types and values in the first rows."""

    name: str
    rows: int
    types: list[str]
    examples: list[str]


def fields_seen(version: Version) -> list[FieldSeen]:
    """The fields of a version by name; types and examples come from the first rows."""
    valid_rows = (
        Row.objects.filter(version=version, valid=True).order_by("line").annotate(length=Length("raw"))
    )
    first = [
        decoded(raw, True)
        for raw, length in valid_rows.values_list("raw", "length")[:LOOKED_AT]
        if length <= WHOLE
    ]
    seen = []
    for name, rows in sorted(version.fields_found.items()):
        values = [row[name] for row in first if isinstance(row, dict) and name in row]
        types = list(dict.fromkeys(JSON_TYPES[type(value)] for value in values))
        texts = dict.fromkeys(_example(value) for value in values if value is not None)
        seen.append(FieldSeen(name, rows, [str(TYPES[kind]) for kind in types], list(texts)[:EXAMPLES]))
    return seen


def _example(value: Any) -> str:
    return truncate(_as_text(value), EXAMPLE)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
