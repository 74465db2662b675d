"""The row browser: pages by line, filters, and neighbouring matches of a row.

Lines come from the most selective source (findings, the search index, else all rows in order) and are then verified. A
search ends with a full page or after a limited number of rows, so every page costs the same at any position.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.models import Case, CharField, Count, Exists, F, OuterRef, QuerySet, Value, When
from django.db.models.functions import Length, Substr

from datasets.core.findings import CODES
from datasets.core.search_index import Index, IndexRow, SearchFrom, fold
from datasets.core.variables import row_data
from datasets.models import Candidate, Response, Row, Version
from datasets.selectors import drawn_line, format_of
from datasets.versions import row_findings, search
from evalsite.truncation import truncate

ROWS_PER_PAGE = 50
EXCERPT = 300
WHOLE = 100_000  # longer rows are not parsed for lists; only their beginning is shown
CHUNK = 500
SLICE = 250


MOST_ROWS, MOST_CHARACTERS = 1_000, 20_000_000
"""The maximum cost of one search."""

Source = Callable[[SearchFrom, int], list[int]]


@dataclass(frozen=True, slots=True)
class BrowserFilter:
    """The filter of the browser; empty by default."""

    text: str = ""
    model: int | None = None
    finding: str = ""  # a code, or "any"
    field: str = ""
    value: str = ""

    def __bool__(self) -> bool:
        return bool(self.text or self.model or self.finding or self.field)

    @property
    def by_content(self) -> bool:
        """Whether the rows themselves must be read."""
        return bool(self.text or self.field)

    def passes(self, row: IndexRow) -> bool:
        """Whether the row contains the text and has the value in the field."""
        if self.field and (self.field, self.value.strip()) not in row.values:
            return False
        return fold(self.text) in row.text


@dataclass(frozen=True, slots=True)
class RowLine:
    """A row in the list. `question` is '' if the row is invalid or too long to parse."""

    line: int
    valid: bool
    question: str
    beginning: str
    answers: int
    hit: search.Excerpt | None = None  # match of the search text
    findings: list[tuple[str, str]] = field(default_factory=list)  # (code, severity), errors first


@dataclass(frozen=True, slots=True)
class FoundLines:
    """Matching lines in search order. `stopped`: the last line searched if the budget ran out."""

    lines: list[int]
    stopped: int | None = None


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows ordered by line, and the lines to continue from (None: no further page).

    `stopped` is the line where the search ran out of budget before the page was full; it continues there.
    """

    rows: list[RowLine]
    before: int | None
    after: int | None
    stopped: int | None = None


@dataclass(slots=True)
class _RowSearch:
    """One search through rows, and its cost so far."""

    version: Version
    chosen: BrowserFilter
    rows: int = 0
    characters: int = 0

    @property
    def over(self) -> bool:
        return self.rows >= MOST_ROWS or self.characters >= MOST_CHARACTERS

    def passing(self, lines: list[int]) -> Iterator[tuple[int, list[int]]]:
        """Yield (last line searched, matching lines up to it) for lines in search order."""
        size = SLICE if self.chosen.by_content else len(lines)
        for at in range(0, len(lines), size):
            part = lines[at : at + size]
            self.rows += len(part)
            there = self._there(part)
            yield part[-1], self._read(there) if self.chosen.by_content else there

    def _there(self, lines: list[int]) -> list[int]:
        """The lines that are rows with an answer of the chosen model."""
        if not self.chosen:
            return lines
        rows = Row.objects.filter(version=self.version, line__in=lines)
        if self.chosen.model:
            answers = Response.uploaded.filter(row=OuterRef("pk"), candidate=self.chosen.model)
            rows = rows.filter(Exists(answers))
        there = set(rows.values_list("line", flat=True))
        return [line for line in lines if line in there]

    def _read(self, lines: list[int]) -> list[int]:
        passed = set()
        for row in search.texts(self.version, lines, fields=bool(self.chosen.field)):
            self.characters += len(row.text)
            if self.chosen.passes(row):
                passed.add(row.line)
        return [line for line in lines if line in passed]


def find(version: Version, chosen: BrowserFilter, place: SearchFrom, count: int) -> FoundLines:
    """Up to `count` lines that pass the filter, starting at a position, at limited cost."""
    try:
        return _find(version, chosen, place, count)
    except sqlite3.DatabaseError:  # of the index file
        search.build_again(version)
        return _find(version, chosen, place, count)


def _find(version: Version, chosen: BrowserFilter, place: SearchFrom, count: int) -> FoundLines:
    lines_found: list[int] = []
    look, wanted = _RowSearch(version, chosen), count
    with _source(version, chosen) as source:
        while lines := source(place, wanted):
            for last, passed in look.passing(lines):
                lines_found += passed
                if len(lines_found) >= count:
                    return FoundLines(lines_found[:count])
                if look.over and (last != lines[-1] or len(lines) == wanted):
                    return FoundLines(lines_found, last)
            if len(lines) < wanted:
                break
            place, wanted = SearchFrom(lines[-1], place.forwards), CHUNK
    return FoundLines(lines_found)


@contextmanager
def _source(version: Version, chosen: BrowserFilter) -> Iterator[Source]:
    """A source of candidate lines that includes all matching ones."""
    if chosen.finding:
        yield partial(_lines_with, version, chosen.finding)
        return
    index = search.open_index(version) if chosen else None
    try:
        yield (index and _indexed(version, chosen, index)) or partial(_all_lines, version)
    finally:
        if index:
            index.close()


def _indexed(version: Version, chosen: BrowserFilter, index: Index) -> Source | None:
    """The index, if it covers the filter: a text, a field's value, or a rare model."""
    question = index.question(fold(chosen.text)) if chosen.text else None
    if question is not None:
        return partial(index.with_text, question)
    if chosen.field:
        return partial(index.with_value, chosen.field, chosen.value.strip())
    rare = Candidate.uploaded.filter(version=version, rows__lt=version.valid_rows / search.SPARSE)
    name = rare.filter(pk=chosen.model or 0).values_list("name", flat=True).first()
    return partial(index.with_model, name) if name else None


def _all_lines(version: Version, place: SearchFrom, limit: int) -> list[int]:
    rows = Row.objects.filter(version=version)
    if place.forwards:
        rows = rows.filter(line__gt=place.line).order_by("line")
    else:
        rows = rows.filter(line__lt=place.line).order_by("-line")
    return list(rows.values_list("line", flat=True)[:limit])


def _lines_with(version: Version, code: str, place: SearchFrom, limit: int) -> list[int]:
    """Lines with a finding of one code, or of any."""
    lines_found: list[int] = []
    for lines in row_findings.line_blocks(version, place.line, "" if code == "any" else code, place.forwards):
        lines_found += [
            line for line in lines if (line > place.line if place.forwards else line < place.line)
        ]
        if len(lines_found) >= limit:
            break
    return lines_found[:limit]


def rows_page(
    version: Version,
    chosen: BrowserFilter,
    *,
    after: int | None = None,
    before: int | None = None,
    size: int = ROWS_PER_PAGE,
) -> RowPage:
    """The rows after a line, or the last ones before a line; by default from the start."""
    place = SearchFrom(before, forwards=False) if before is not None else SearchFrom(after or 0)
    result = find(version, chosen, place, size + 1)
    more = len(result.lines) > size
    lines = sorted(result.lines[:size])
    onward = result.stopped or (result.lines[size - 1] if more else None)
    rows = _lines(version, lines, chosen.text)
    if before is not None:
        return RowPage(rows, onward, lines[-1] if lines else place.line - 1, result.stopped)
    first = (lines[0] if lines else place.line + 1) if after else None
    return RowPage(rows, first, onward, result.stopped)


def _light(rows: QuerySet[Row]) -> QuerySet[Any, Any]:
    """Rows with their text, truncated for very long ones."""
    text = Case(
        When(length__lte=WHOLE, then=F("raw")),
        default=Substr("raw", Value(1), Value(EXCERPT + 1)),
        output_field=CharField(),
    )
    return rows.annotate(length=Length("raw")).values("pk", "line", "valid", "length", text=text)


def _lines(version: Version, lines: list[int], wanted: str) -> list[RowLine]:
    rows = list(_light(Row.objects.filter(version=version, line__in=lines)).order_by("line"))
    codes = row_findings.codes_at(version, lines)
    hits = search.hits(version, lines, wanted) if wanted else {}
    counted = Response.uploaded.filter(row__in=[row["pk"] for row in rows]).values("row")
    answers = dict(counted.annotate(count=Count("pk")).values_list("row", "count"))
    return [
        RowLine(
            line=row["line"],
            valid=row["valid"],
            question=_question(version, row),
            beginning=truncate(row["text"], EXCERPT),
            answers=answers.get(row["pk"], 0),
            hit=hits.get(row["line"]),
            findings=sorted(
                ((code, CODES[code].severity) for code in codes.get(row["line"], ())),
                key=lambda code_and_severity: (code_and_severity[1], code_and_severity[0]),
            ),
        )
        for row in rows
    ]


def _question(version: Version, row: dict[str, Any]) -> str:
    if not row["valid"] or row["length"] > WHOLE:
        return ""
    return truncate(str(row_data(row["text"], format_of(version))["question"] or ""), EXCERPT)


def random_line(version: Version, chosen: BrowserFilter) -> int | None:
    """A line within the filter close to a random one; None if the budget ran out first."""
    drawn = drawn_line(version)
    if drawn is None:
        return None
    for place in (SearchFrom(drawn - 1), SearchFrom(drawn, forwards=False)):
        nearest = find(version, chosen, place, 1)
        if nearest.lines:
            return nearest.lines[0]
    return None


def neighbours(version: Version, chosen: BrowserFilter, line: int) -> tuple[FoundLines, FoundLines]:
    """The previous and the next matching line, or how far the search got."""
    previous = find(version, chosen, SearchFrom(line, forwards=False), 1)
    return previous, find(version, chosen, SearchFrom(line), 1)
