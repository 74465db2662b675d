"""The first rows of a version as one looks at them before using it: question, reference and answers together."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Length

from datasets import browsing, selectors
from datasets.browsing import EXCERPT, WHOLE, RowFilter, RowLine
from datasets.core.variables import reference_in, response_data
from datasets.models import Response, Row, Version

ROWS, MODELS = 3, 4


@dataclass(frozen=True, slots=True)
class FirstRow:
    """A row; `reference` is '' where there is none, `answers` are (model, beginning of its first answer)."""

    line: RowLine
    reference: str
    answers: list[tuple[str, str]]


def first_rows(version: Version) -> list[FirstRow]:
    """The first rows, good or bad; of a bad or a very long one only its beginning."""
    lines = browsing.rows_page(version, RowFilter(), size=ROWS).rows
    readable = [line.line for line in lines if line.question]
    rows = {row.line: row for row in _short(version).filter(line__in=readable)}
    answers = _answers(list(rows.values()))
    return [_first(line, rows.get(line.line), answers) for line in lines]


def _short(version: Version) -> QuerySet[Row]:
    """The version's rows that are shown whole."""
    rows = Row.objects.filter(version=version).select_related("version")
    return rows.annotate(length=Length("raw")).filter(length__lte=WHOLE)


def _first(line: RowLine, row: Row | None, answers: dict[int, list[tuple[str, str]]]) -> FirstRow:
    if row is None:
        return FirstRow(line, "", [])
    return FirstRow(line, _reference(row)[:EXCERPT], answers.get(row.pk, []))


def _reference(row: Row) -> str:
    reference = reference_in(selectors.row_values(row))
    if reference is None:
        return ""
    return reference if isinstance(reference, str) else json.dumps(reference, ensure_ascii=False)


def _answers(rows: list[Row]) -> dict[int, list[tuple[str, str]]]:
    """By row: whose answers there are, and how each one's first begins."""
    first = Response.uploaded.filter(row__in=rows, number=1).order_by("candidate__name")
    found: dict[int, list[tuple[str, str]]] = {}
    for row, name, raw in first.values_list("row_id", "candidate__name", "raw"):
        if len(found.setdefault(row, [])) < MODELS:
            found[row].append((name, str(response_data(raw)["content"])[:EXCERPT]))
    return found
