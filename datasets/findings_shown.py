"""Findings as pages show them: grouped, with the sentence in the reader's language."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from datasets.core.findings import CODES
from datasets.core.findings import Finding as Found
from datasets.messages import message
from datasets.models import Finding, Version

SHOWN_PER_GROUP = 5
FINDINGS_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class Shown:
    """One finding with its sentence. `line` is None where it concerns the whole version."""

    line: int | None
    column: int | None
    path: str
    code: str
    severity: str
    repair: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one code: how many there are, and the first of them."""

    code: str
    severity: str
    count: int
    first: list[Shown]


def found_of(finding: Finding) -> Found:
    """A stored finding as the core made it."""
    return Found(
        finding.line,
        finding.column,
        finding.path or None,
        finding.code,
        CODES[finding.code].severity,
        finding.repair or None,
        finding.params,
    )


def shown(finding: Finding) -> Shown:
    """A stored finding, put into words."""
    return Shown(
        finding.line,
        finding.column,
        finding.path,
        finding.code,
        finding.severity,
        finding.repair,
        message(found_of(finding)),
    )


def groups(version: Version) -> list[Group]:
    """Every code that was found with its complete count and its first findings; errors first, then by number."""
    numbered = Finding.objects.filter(version=version).annotate(
        rank=Window(RowNumber(), partition_by=F("code"), order_by=[F("line"), F("pk")])
    )
    first: dict[str, list[Shown]] = {}
    for finding in numbered.filter(rank__lte=SHOWN_PER_GROUP).order_by("code", "rank"):
        first.setdefault(finding.code, []).append(shown(finding))
    found = [
        Group(code, CODES[code].severity, count, first.get(code, []))
        for code, count in version.counts.items()
    ]
    return sorted(found, key=lambda group: (group.severity, -group.count, group.code))


def page(version: Version, code: str, *, after: int = 0) -> tuple[list[Shown], int | None]:
    """Findings of one code in the order of lines, and where the next page begins (None: nowhere).

    They were written in this order, so that ids go with lines.
    """
    kept = Finding.objects.filter(version=version, code=code, pk__gt=after).order_by("pk")
    found = list(kept[: FINDINGS_PER_PAGE + 1])
    more = len(found) > FINDINGS_PER_PAGE
    found = found[:FINDINGS_PER_PAGE]
    return [shown(finding) for finding in found], found[-1].pk if more else None
