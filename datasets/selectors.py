"""Read access to data sets: usable versions, and rows with everything that pages and judges need."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast, get_args

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from datasets.core.candidate_numbers import Named, candidate_numbers
from datasets.core.decode import Encoding
from datasets.core.formats import LEGACY, Format
from datasets.core.variables import reference_data, row_data
from datasets.models import (
    UPLOADED,
    WHOLE_OR_AGREED,
    Candidate,
    Dataset,
    Response,
    Row,
    Version,
    VersionState,
)
from evalsite.accounts.models import Project

DATASETS_PER_PAGE = 50
KEEPS_ROWS = ("attach", "run", "repair", "edit")
"""Origins of versions that contain the rows of their parent: with more answers, repaired, or edited."""


@dataclass(frozen=True, slots=True)
class DatasetLine:
    """A data set in the list, with its newest version and number of versions."""

    dataset: Dataset
    version: Version
    versions: int


def usable_versions(project: Project) -> QuerySet[Version]:
    """Versions that a run may use (see Version.usable) in data sets that are not archived, newest first."""
    ready = Version.objects.filter(state=VersionState.READY, valid_rows__gt=0, dataset__archived_at=None)
    return ready.filter(WHOLE_OR_AGREED, dataset__project=project).select_related("dataset").order_by("-pk")


def datasets_page(
    project: Project, *, archived: bool = False, before: int | None = None
) -> tuple[list[DatasetLine], int | None]:
    """Data sets ordered by newest version, and where the next page starts (None: no further page)."""
    newest = Version.objects.filter(dataset=OuterRef("pk")).order_by("-number").values("pk")[:1]
    found = Dataset.objects.filter(project=project, archived_at__isnull=not archived)
    counted = Count("versions", filter=Q(versions__number__gt=0))
    found = found.annotate(newest=Subquery(newest), version_count=counted).filter(newest__isnull=False)
    if before is not None:
        found = found.filter(newest__lt=before)
    page = list(found.order_by("-newest")[: DATASETS_PER_PAGE + 1])
    more = len(page) > DATASETS_PER_PAGE
    page = page[:DATASETS_PER_PAGE]
    versions = Version.objects.in_bulk([dataset.newest for dataset in page])
    lines = [DatasetLine(d, versions[d.newest], d.version_count) for d in page]
    return lines, page[-1].newest if more else None


def numbers_of_candidates(projects: Iterable[int]) -> dict[int, dict[str, int]]:
    """{project: {candidate's name: number of its colour and mark}}, the same on all pages of a project."""
    named: dict[int, list[Named]] = {project: [] for project in projects}
    found = Candidate.objects.filter(version__dataset__project__in=list(named)).order_by("pk")
    parts = found.values_list("version__dataset__project", "version", "name", "source")
    for project, version, name, source in parts:
        named[project].append(Named(version, name, source == UPLOADED))
    return {project: candidate_numbers(each) for project, each in named.items()}


def versions_of(dataset: Dataset) -> QuerySet[Version]:
    """All versions of a data set, newest first."""
    return Version.objects.filter(dataset=dataset, number__gt=0).order_by("-number")


def other_ready_versions(version: Version) -> QuerySet[Version]:
    """The versions that this one can be compared with, newest first."""
    return versions_of(version.dataset).filter(state=VersionState.READY).exclude(pk=version.pk)


def first_upload(version: Version) -> Version:
    """The original upload that this version was made from; often itself."""
    others = Version.objects.filter(dataset=version.dataset_id).in_bulk() if version.parent_id else {}
    while version.parent_id in others:
        version = others[version.parent_id]
    return version


def began_as_legacy(version: Version) -> bool:
    """Whether this version, or one that its rows come from, was uploaded in a legacy format."""
    return version.pk in legacy_versions(version.dataset.project)


def legacy_versions(project: Project) -> dict[int, int]:
    """{version: the legacy version that its rows come from, often itself} for all with a legacy origin."""
    known = Version.objects.filter(dataset__project=project)
    found = {pk: pk for pk in known.filter(format__in=LEGACY).values_list("pk", flat=True)}
    made = known.filter(origin__in=KEEPS_ROWS, parent__isnull=False).order_by("pk")
    for pk, parent in made.values_list("pk", "parent"):  # a parent is older than the versions made from it
        if parent in found:
            found[pk] = found[parent]
    return found


def candidates_of(version: Version) -> list[Candidate]:
    """The models with answers in the version, by name."""
    return list(Candidate.uploaded.filter(version=version, responses__gt=0).order_by("name"))


def sample_rows(version: Version, count: int = 5) -> list[Row]:
    """The first `count` valid rows."""
    return list(_valid(version).order_by("line")[:count])


def row_for(version: Version, line: int) -> Row | None:
    """The row at a physical line of the upload, valid or not."""
    return version.data_rows.filter(line=line).first()


def next_row(version: Version, line: int) -> Row | None:
    """The first valid row after `line`."""
    return _valid(version).filter(line__gt=line).order_by("line").first()


def previous_row(version: Version, line: int) -> Row | None:
    """The last valid row before `line`."""
    return _valid(version).filter(line__lt=line).order_by("-line").first()


def line_after(version: Version, line: int, **only: bool) -> int | None:
    """The line of the next row, optionally only of rows with these field values."""
    rows = Row.objects.filter(version=version, line__gt=line, **only).order_by("line")
    return rows.values_list("line", flat=True).first()


def random_row(version: Version) -> Row | None:
    """A random valid row; lines are drawn, so a row after a gap is slightly more likely."""
    drawn = drawn_line(version)
    return None if drawn is None else next_row(version, drawn - 1) or previous_row(version, drawn)


def drawn_line(version: Version) -> int | None:
    """A random number from the first to the last line with a row; None if there are no rows."""
    lines = Row.objects.filter(version=version).order_by("line").values_list("line", flat=True)
    first, last = lines.first(), lines.last()  # both by one aggregate would read every line on SQLite
    return None if first is None or last is None else random.randint(first, last)


def row_values(row: Row) -> dict[str, Any]:
    """`data` of a valid row, as templates see it: its fields with the computed question, gt and history."""
    return row_data(row.raw, format_of(row.version))


def exact_reference(row: Row, decode: Callable[[str], Any]) -> dict[str, Any]:
    """A valid row's `ref_answer` or `gt`, parsed with `decode`, which determines the type of numbers."""
    return reference_data(row.raw, format_of(row.version), decode)


def format_of(version: Version) -> Format:
    """The format of a version that has valid rows."""
    return cast(Format, version.format)


def encoding_of(version: Version) -> Encoding:
    """The encoding that was detected when the version's file was read."""
    known: tuple[Encoding, ...] = get_args(Encoding)
    return next((name for name in known if name == version.encoding), "utf-8")


def responses_of(row: Row) -> list[Response]:
    """The answers to a row with their candidates, by candidate and number."""
    answers = Response.uploaded.filter(row=row).select_related("candidate")
    return list(answers.order_by("candidate__name", "number"))


def _valid(version: Version) -> QuerySet[Row]:
    """The valid rows, with their version, whose format is needed to read them."""
    return version.data_rows.filter(valid=True)
