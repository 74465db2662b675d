"""What is stored of comparisons of two runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from evalsite.derived import Part, Results, of_parts, of_subjects
from evalsite.models import Derived
from judging.records.models import Run

CHANGES = Results("comparison", 6)  # of a run: StoredChange of all cells, by the earlier run
ITEMS = Results("compared_items", 5)  # of a row of CHANGES: services.ComparedItem, by metric and candidate


class StoredShare(msgspec.Struct, frozen=True, array_like=True):
    """Stored core.change.Share; `items`: their number."""

    cause: str
    difference: float
    items: int
    ci_low: float | None
    ci_high: float | None


class StoredChange(msgspec.Struct, frozen=True):
    """Stored core.change.Change; `counts`: items by outcome (OUTCOMES, '' if only one run has a value)."""

    metric: str
    candidate: str
    before: float | None
    after: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    items: int
    counts: dict[str, int]
    shares: list[StoredShare]
    noise_alone: float | None = None


def part_of(before: int) -> Part:
    """The part of the later run's results that is about an earlier one."""
    return (str(before),)


def runs_of(row: Derived) -> list[Run]:
    """The earlier and the later run that a row of CHANGES compares, without those that were deleted."""
    pks = (int(row.part[0]), row.subject)
    runs = Run.objects.in_bulk(pks)
    return [runs[pk] for pk in pks if pk in runs]


def revision_of(runs: Iterable[Run]) -> int:
    """A comparison's revision: the sum of its runs' revisions, which only increase."""
    return sum(run.revision for run in runs)


def changes_of_runs(runs: Collection[int]) -> QuerySet[Derived]:
    """The rows of CHANGES about these runs."""
    return of_subjects([CHANGES], runs) | of_parts(CHANGES, map(part_of, runs))


@transaction.atomic
def delete_comparisons(pks: Sequence[int]) -> None:
    """Delete rows of CHANGES with their items. The rows go first: whoever computes one stores nothing any more."""
    Derived.objects.filter(pk__in=pks).delete()
    of_subjects([ITEMS], pks).delete()
