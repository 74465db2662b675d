"""Read access to data sets: usable versions, and rows with everything that pages and judges need."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast, get_args

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from datasets.core.candidate_numbers import Named, candidate_numbers
from datasets.core.decode import Encoding
from datasets.core.formats import LEGACY, Format
from datasets.core.imports.columns import guess, looks_of
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
_LOOKED_AT_FOR_MODELS = 500
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


def listed_datasets(project: Project, *, archived: bool = False) -> QuerySet[Dataset]:
    """The data sets that have a version, whether or not a run can use it."""
    has_version = Exists(Version.objects.filter(dataset=OuterRef("pk")))
    return Dataset.objects.filter(has_version, project=project, archived_at__isnull=not archived)


def datasets_page(
    project: Project, *, archived: bool = False, before: int | None = None
) -> tuple[list[DatasetLine], int | None]:
    """Data sets ordered by newest version, and where the next page starts (None: no further page)."""
    newest = Version.objects.filter(dataset=OuterRef("pk")).order_by("-number").values("pk")[:1]
    counted = Count("versions", filter=Q(versions__number__gt=0, versions__deleted_at=None))
    datasets = listed_datasets(project, archived=archived)
    datasets = datasets.annotate(newest=Subquery(newest), version_count=counted)
    if before is not None:
        datasets = datasets.filter(newest__lt=before)
    page = list(datasets.order_by("-newest")[: DATASETS_PER_PAGE + 1])
    more = len(page) > DATASETS_PER_PAGE
    page = page[:DATASETS_PER_PAGE]
    versions = Version.objects.in_bulk([dataset.newest for dataset in page])
    lines = [DatasetLine(d, versions[d.newest], d.version_count) for d in page]
    return lines, page[-1].newest if more else None


def numbers_of_candidates(projects: Iterable[int]) -> dict[int, dict[str, int]]:
    """{project: {candidate's name: number of its colour and mark}}, the same on all pages of a project."""
    named: dict[int, list[Named]] = {project: [] for project in projects}
    candidates = Candidate.objects.filter(version__dataset__project__in=list(named)).order_by("pk")
    parts = candidates.values_list("version__dataset__project", "version", "name", "source")
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
    """Whether this version, or one that its rows come from, was uploaded in a legacy format; also if its answers were
    put side by side by the column that names their models."""
    legacy = legacy_versions(version.dataset.project)
    return version.pk in legacy or (version.origin == "import" and version.parent_id in legacy)


def models_in_column(version: Version) -> list[str]:
    """The models that a column of a legacy CSV names, if some of its first rows have the same prompt and other models:
    such a file holds several models' answers below each other. Else empty."""
    if version.format != "legacy_csv":
        return []
    rows = [json.loads(row.raw) for row in sample_rows(version, _LOOKED_AT_FOR_MODELS)]
    columns = guess(list(dict.fromkeys(name for row in rows for name in row)), looks_of(rows))
    if not columns.model:
        return []
    by_prompt: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        by_prompt[str(row.get("prompt"))].add(str(row.get(columns.model) or "").strip())
    models = {model for models in by_prompt.values() if len(models) > 1 for model in models}
    return sorted(models - {""})


def legacy_versions(project: Project) -> dict[int, int]:
    """{version: the legacy version that its rows come from, often itself} for all with a legacy origin."""
    versions = Version.objects.filter(dataset__project=project)
    origins = {pk: pk for pk in versions.filter(format__in=LEGACY).values_list("pk", flat=True)}
    derived = versions.filter(origin__in=KEEPS_ROWS, parent__isnull=False).order_by("pk")
    for pk, parent in derived.values_list("pk", "parent"):  # a parent is older than the versions made from it
        if parent in origins:
            origins[pk] = origins[parent]
    return origins


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
    encodings: tuple[Encoding, ...] = get_args(Encoding)
    return next((name for name in encodings if name == version.encoding), "utf-8")


def responses_of(row: Row) -> list[Response]:
    """The answers to a row with their candidates, by candidate and number."""
    answers = Response.uploaded.filter(row=row).select_related("candidate")
    return list(answers.order_by("candidate__name", "number"))


def _valid(version: Version) -> QuerySet[Row]:
    """The valid rows, with their version, whose format is needed to read them."""
    return version.data_rows.filter(valid=True)
