"""The row browser: pages by line, filters, and where one is between the rows that match."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Length, Substr

from datasets.core.variables import row_data
from datasets.models import Finding, Response, Row, Version
from datasets.selectors import findings_on, format_of

ROWS_PER_PAGE = 50
EXCERPT = 300
WHOLE = 100_000  # a row longer than this is not read for a list; its beginning is shown


@dataclass(frozen=True, slots=True)
class RowFilter:
    """What the browser is narrowed to; nothing by default."""

    text: str = ""
    model: int | None = None
    finding: str = ""  # a code, or "any"

    def __bool__(self) -> bool:
        return bool(self.text or self.model or self.finding)


@dataclass(frozen=True, slots=True)
class RowLine:
    """A row as the list shows it. `question` is '' where the row is bad or too long to look into."""

    line: int
    valid: bool
    question: str
    beginning: str
    answers: int
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows in the order of lines, and the lines to go on from (None: there is nothing further)."""

    rows: list[RowLine]
    before: int | None
    after: int | None


def matching(version: Version, chosen: RowFilter) -> QuerySet[Row]:
    """The version's rows that pass the filter, without order."""
    rows = Row.objects.filter(version=version)
    if chosen.finding:
        found = Finding.objects.filter(version=version, line__isnull=False)
        if chosen.finding != "any":
            found = found.filter(code=chosen.finding)
        rows = rows.filter(line__in=found.values("line"))
    if chosen.model:
        rows = rows.filter(Exists(Response.objects.filter(row=OuterRef("pk"), candidate=chosen.model)))
    if chosen.text:
        in_answers = Response.objects.filter(_contains(chosen.text), row=OuterRef("pk"))
        rows = rows.filter(_contains(chosen.text) | Exists(in_answers))
    return rows


def _contains(text: str) -> Q:
    """Stored JSON holds a text as it is or escaped, as its author's program wrote it: Chinese often as \\uXXXX."""
    spellings = {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}
    spellings |= {spelling.replace("/", "\\/") for spelling in spellings}
    found = Q()
    for spelling in sorted(spellings):
        found |= Q(raw__icontains=spelling)
    return found


def rows_page(
    version: Version,
    chosen: RowFilter,
    *,
    after: int | None = None,
    before: int | None = None,
    size: int = ROWS_PER_PAGE,
) -> RowPage:
    """The rows after a line, or the last ones before a line; from the beginning if neither is given."""
    rows = matching(version, chosen)
    backwards = before is not None
    if before is not None:
        rows = rows.filter(line__lt=before).order_by("-line")
    else:
        rows = rows.filter(line__gt=after or 0).order_by("line")
    found = list(_light(rows)[: size + 1])
    more = len(found) > size
    found = found[:size]
    if backwards:
        found.reverse()
    has_before, has_after = (more, True) if backwards else (bool(after), more)
    return RowPage(
        _lines(version, found),
        before=found[0]["line"] if found and has_before else None,
        after=found[-1]["line"] if found and has_after else None,
    )


def _light(rows: QuerySet[Row]) -> QuerySet[Any, Any]:
    """Rows with their text, of very long ones only the beginning."""
    text = Case(
        When(length__lte=WHOLE, then=F("raw")),
        default=Substr("raw", Value(1), Value(EXCERPT)),
        output_field=CharField(),
    )
    return rows.annotate(length=Length("raw")).values("pk", "line", "valid", "length", text=text)


def _lines(version: Version, rows: list[dict[str, Any]]) -> list[RowLine]:
    findings = findings_on(version, [row["line"] for row in rows])
    counted = Response.objects.filter(row__in=[row["pk"] for row in rows]).values("row")
    answers = dict(counted.annotate(count=Count("pk")).values_list("row", "count"))
    return [
        RowLine(
            line=row["line"],
            valid=row["valid"],
            question=_question(version, row),
            beginning=row["text"][:EXCERPT],
            answers=answers.get(row["pk"], 0),
            findings=findings.get(row["line"], []),
        )
        for row in rows
    ]


def _question(version: Version, row: dict[str, Any]) -> str:
    if not row["valid"] or row["length"] > WHOLE:
        return ""
    return str(row_data(row["text"], format_of(version))["question"] or "")[:EXCERPT]


def neighbours(version: Version, chosen: RowFilter, line: int) -> tuple[int | None, int | None]:
    """The lines of the previous and the next row within the filter."""
    rows = matching(version, chosen).values_list("line", flat=True)
    previous = rows.filter(line__lt=line).order_by("-line").first()
    return previous, rows.filter(line__gt=line).order_by("line").first()
