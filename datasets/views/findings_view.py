"""Findings for display: grouped, with messages in the user's language."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.db.models import F, Window
from django.db.models.functions import RowNumber, Substr
from django.utils.translation import gettext as _

from datasets.core.findings import CODES, HEADER_CODES, Finding
from datasets.core.lines import pieces_at
from datasets.messages import message
from datasets.models import Row, StoredFinding, Version
from datasets.selectors import encoding_of
from datasets.uploads import limits_of_kept
from datasets.versions import parts
from datasets.versions.parts import PartLine
from datasets.versions.repair_offers import RepairOffer, RepairSample
from datasets.versions.row_findings import as_finding
from datasets.versions.search import Excerpt

SHOWN_PER_GROUP = 5
FINDINGS_PER_PAGE = 100
BEFORE, AFTER = 40, 60  # characters of a row shown around a finding
NEAR = 4_000  # characters of each row fetched in one query

Place = tuple[int, int]
"""A line and a column."""


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with the text around it.

    `place` is the line in its source file if the version was joined from several; `sample` shows what the repair would
    do to the row.
    """

    finding: Finding
    around: Excerpt | None = None
    place: PartLine | None = None
    sample: RepairSample | None = None

    @property
    def sentence(self) -> str:
        return message(self.finding)

    @property
    def in_row(self) -> bool:
        """Whether the finding is in a row; a CSV header is not one."""
        return self.finding.line is not None and self.finding.code not in HEADER_CODES


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The number of findings of one code, and the first of them."""

    code: str
    severity: str
    count: int
    first: list[FindingView]

    @property
    def title(self) -> str:
        """The common message; invalid JSON has many causes, of which the first findings may show only some."""
        sentences = {view.sentence for view in self.first}
        if self.code == "json.invalid" and len(sentences) != 1:
            return _("Invalid JSON")
        return self.first[0].sentence if self.first else self.code


def with_samples(group: FindingGroup, offer: RepairOffer | None) -> tuple[FindingGroup, RepairOffer | None]:
    """The group and its offer, with samples moved to the first findings of the same row."""
    if offer is None:
        return group, None
    samples = {sample.line: sample for sample in offer.samples}
    first = [replace(view, sample=samples.pop(view.finding.line or 0, None)) for view in group.first]
    return replace(group, first=first), replace(offer, samples=list(samples.values()))


def finding_view(text: str, finding: Finding) -> FindingView:
    """A finding of a row with known text, for display."""
    return FindingView(finding, _excerpt(text, finding.column) if finding.column else None)


def finding_views(version: Version, findings: Sequence[Finding]) -> list[FindingView]:
    """Findings for display; excerpts only for invalid rows, as valid rows are not stored verbatim."""
    places = {(finding.line, finding.column) for finding in findings if finding.line and finding.column}
    # In multi-line JSON, no line is a row; few findings name one.
    from_file = version.is_spread and version.file_is_kept
    around = _around_in_file(version, places) if from_file else _around_in_rows(version, places)
    part = parts.places(version)
    return [
        FindingView(finding, around.get((finding.line or 0, finding.column or 0)), part(finding.line))
        for finding in findings
    ]


def _around_in_file(version: Version, places: Collection[Place]) -> dict[Place, Excerpt]:
    starts = {(line, column): (line, max(column - BEFORE, 1)) for line, column in places}
    texts = pieces_at(version.path, encoding_of(version), starts.values(), BEFORE + AFTER, limits_of_kept())
    return {
        place: _excerpt(texts.get(start, ""), place[1], first=start[1]) for place, start in starts.items()
    }


def _around_in_rows(version: Version, places: Collection[Place]) -> dict[Place, Excerpt]:
    bad = Row.objects.filter(version=version, line__in={line for line, _ in places}, valid=False)
    begin = {line: (pk, text) for line, pk, text in bad.values_list("line", "pk", Substr("raw", 1, NEAR))}
    return {(line, column): _around_in_row(*begin[line], column) for line, column in places if line in begin}


def _around_in_row(pk: int, beginning: str, column: int) -> Excerpt:
    """The excerpt for a finding; one far into a long row needs a separate query."""
    start = max(column - BEFORE, 1)
    if start + BEFORE + AFTER <= NEAR:
        return _excerpt(beginning, column)
    text = Row.objects.filter(pk=pk).values_list(Substr("raw", start, BEFORE + AFTER), flat=True)[0]
    return _excerpt(text, column, first=start)


def _excerpt(text: str, column: int, first: int = 1) -> Excerpt:
    """The excerpt for `column` of a row, whose text from column `first` on is `text`."""
    start = max(column - BEFORE, 1)
    near = text[start - first :][: BEFORE + AFTER]
    near = "".join(sign if sign.isprintable() else " " for sign in near)
    at = column - start
    return Excerpt(("…" if start > 1 else "") + near[:at], near[at : at + 1] or " ", near[at + 1 :])


def groups(version: Version) -> list[FindingGroup]:
    """All codes with their complete count and first findings; errors first, then by count."""
    numbered = StoredFinding.objects.filter(version=version).annotate(
        rank=Window(RowNumber(), partition_by=F("code"), order_by=[F("line"), F("pk")])
    )
    first: dict[str, list[FindingView]] = {}
    first_stored = numbered.filter(rank__lte=SHOWN_PER_GROUP).order_by("code", "rank")
    for view in finding_views(version, [as_finding(row) for row in first_stored]):
        first.setdefault(view.finding.code, []).append(view)
    by_code = [
        FindingGroup(code, CODES[code].severity, count, first.get(code, []))
        for code, count in version.counts.items()
    ]
    return sorted(by_code, key=lambda group: (group.severity, -group.count, group.code))


def page(version: Version, code: str, *, after: int = 0) -> tuple[list[FindingView], int | None]:
    """Findings of one code ordered by line, and where the next page starts (None: no further page).

    They were inserted in this order, so ids are ordered like lines.
    """
    stored = StoredFinding.objects.filter(version=version, code=code, pk__gt=after).order_by("pk")
    rows = list(stored[: FINDINGS_PER_PAGE + 1])
    more = len(rows) > FINDINGS_PER_PAGE
    rows = rows[:FINDINGS_PER_PAGE]
    return finding_views(version, [as_finding(row) for row in rows]), rows[-1].pk if more else None
