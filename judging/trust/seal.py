"""The rows that are in splits, and those of tests whose labels are sealed or may not change any more."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache

from django.db.models import Count, Exists, OuterRef, QuerySet

from datasets.models import Row, Version
from judging.core.licensing import TEST
from judging.records.models import Run
from judging.records.seal import SealedRows
from judging.trust.answers import row_keys
from judging.trust.models import Opening, PartName, Split

_EVERY = tuple(PartName.values)


def sealed_rows(version: Version) -> SealedRows:
    """{criterion: ids of a version's rows} of the tests that were not opened yet."""
    opened = Opening.objects.filter(test__split=OuterRef("pk"))
    rows: dict[str, frozenset[int]] = {}
    for split in _splits(version).filter(~Exists(opened)):
        sealed = _rows_of(split, version, (TEST,))
        rows[split.criterion] = rows.get(split.criterion, frozenset()) | sealed
    return rows


def rows_in_splits(version: Version) -> frozenset[int]:
    """Ids of a version's rows that are in any part of any split."""
    return frozenset[int]().union(*(_rows_of(split, version, _EVERY) for split in _splits(version)))


def rows_closed(run: Run) -> frozenset[int]:
    """Ids of the rows of closed tests that hold an evaluation's ratings: of those closed after it began."""
    names = run.metrics.values("name")
    concerned = Split.objects.filter(dataset__versions=run.version_id, criterion__in=names)
    closed = list(concerned.filter(test__closed_at__gte=run.created_at).values_list("pk", flat=True))
    if not closed:  # without loading the version: each verdict asks
        return frozenset()
    splits = _splits(run.version).filter(pk__in=closed)
    return frozenset[int]().union(*(_rows_of(split, run.version, (TEST,)) for split in splits))


def _splits(version: Version) -> QuerySet[Split]:
    sizes = Split.objects.annotate(size=Count("rows"))  # a further draw adds rows
    return sizes.filter(dataset=version.dataset_id).order_by("pk")


def _rows_of(split: Split, version: Version, parts: Collection[str]) -> frozenset[int]:
    return _rows(version.pk, version.created_at, split.pk, split.created_at, split.size, tuple(parts))  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def _rows(
    version: int, _version_at: datetime, split: int, _split_at: datetime, _size: int, parts: tuple[str, ...]
) -> frozenset[int]:
    """Ids of the rows; versions and drawn rows never change, and the times tell reused numbers apart."""
    of, drawn = Version.objects.get(pk=version), Split.objects.get(pk=split)
    keys = set(drawn.rows.filter(part__in=parts).values_list("key", flat=True))
    lines = [line for line, key in row_keys(of, by_id=drawn.by_id)[0].items() if key in keys]
    return frozenset(Row.objects.filter(version=of, line__in=lines).values_list("pk", flat=True))
