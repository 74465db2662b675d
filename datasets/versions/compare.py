"""Differences between two versions: computed by a worker and stored, because versions never change.

Only the holder of the lease writes; the transaction that stores the counts makes the result ready, and an interrupted
comparison starts over.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from django.db import connection, transaction
from django_tasks import task

from datasets.core.formats import format_called
from datasets.importing import worker
from datasets.importing.leases import Hold, Leases
from datasets.models import Difference, DifferenceRow, DifferenceState, Version
from datasets.versions import temp_files
from datasets.versions.row_match import Matcher, digests
from datasets.versions.row_writer import whole_rows
from evalsite.tasks import workers

log = logging.getLogger("datasets.versions.compare")

BATCH = 1000
PER_PAGE = 20
WORK = "differences"
COMPARING = Leases(Difference, DifferenceState.WAITING, DifferenceState.COMPARING, begun=("rows_read",))
UNFINISHED = (DifferenceState.WAITING, DifferenceState.COMPARING)
# Plain SQL, as for the rows of an import: bulk_create takes six times as long, and every row may differ.
_INSERT = """
INSERT INTO datasets_differencerow (difference_id, position, kind, old_line, new_line) VALUES (%s, %s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """A page of changes ordered by line, with the positions of the adjacent pages (None: no further page)."""

    rows: list[DifferenceRow]
    before: int | None
    after: int | None


def difference_ask(*, old: Version, new: Version) -> Difference:
    """The comparison of two versions of a data set; has a worker compute it if it is missing or failed."""
    with transaction.atomic():
        difference, _made = Difference.objects.get_or_create(old=old, new=new)
        failed = Difference.objects.filter(pk=difference.pk, state=DifferenceState.FAILED)
        failed.update(state=DifferenceState.WAITING, rows_read=0)
        difference.refresh_from_db()
        if difference.state == DifferenceState.WAITING:
            workers.wake(compare_versions, difference_id=difference.pk)
    return difference


@task(queue_name=workers.DATA)
def compare_versions(difference_id: int) -> None:
    """Compare two versions, unless another worker does."""
    run_comparison(difference_id, workers.owner(), stop=workers.stopping)


@workers.works_on(Difference)
def run_comparison(difference_id: int, owner: str, stop: threading.Event | None = None) -> bool:
    """Compute a waiting comparison; it is then ready or failed. False if done by another worker."""
    return COMPARING.work(difference_id, owner, stop, _compare, _failed)


def _failed(error: Exception) -> dict[str, Any]:
    log.error("Comparing two versions failed.", exc_info=error)
    return {"state": DifferenceState.FAILED}


def reconcile() -> None:
    """Restart comparisons whose worker is gone, and wake a worker for all waiting ones."""
    COMPARING.reconcile(lambda pk: workers.wake(compare_versions, difference_id=pk))
    temp_files.sweep(WORK, COMPARING.ids_busy)


def _compare(hold: Hold) -> None:
    difference = Difference.objects.select_related("old", "new").get(pk=hold.pk)
    _clear(difference)
    with (
        temp_files.work_folder(WORK, difference.pk) as folder,
        closing(Matcher(folder / "rows.sqlite3")) as matcher,
    ):
        rows_read = _read(hold, "old", difference.old, matcher)
        _read(hold, "new", difference.new, matcher, rows_read)
        matcher.match()
        counts = _write(hold, matcher)
        hold.end(DifferenceState.READY, by_id=matcher.by_id, same=matcher.same, **counts)


def _clear(difference: Difference) -> None:
    """Delete the rows of an interrupted comparison, in batches."""
    rows = DifferenceRow.objects.filter(difference=difference).order_by("position")
    while DifferenceRow.objects.filter(pk__in=rows.values("pk")[:BATCH]).delete()[0]:
        pass


def _read(
    hold: Hold, side: Literal["old", "new"], version: Version, matcher: Matcher, rows_read: int = 0
) -> int:
    """Add a version's rows to the matcher; return the number of rows read so far."""
    fmt = format_called(version.format)
    rows = whole_rows(version, only_valid=False)
    while part := list(islice(rows, BATCH)):
        matcher.add(side, [(row.line, digests(row.raw, fmt, row.answers)) for row in part])
        rows_read += len(part)
        hold.renew(rows_read=rows_read)
        worker.give_way(hold.owner, hold.stop)
    return rows_read


def _write(hold: Hold, matcher: Matcher) -> Counter[str]:
    """Store the rows that differ; return how many there are of each kind."""
    counts = Counter({"added": 0, "removed": 0, "changed": 0})
    rows = (
        (hold.pk, position, change.kind, change.old_line, change.new_line)
        for position, change in enumerate(matcher.changes(), 1)
    )
    while part := list(islice(rows, BATCH)):
        with transaction.atomic(), connection.cursor() as cursor:
            hold.renew()
            cursor.executemany(_INSERT, part)
        counts.update(kind for _pk, _position, kind, *_lines in part)
    return counts


def page(
    difference: Difference, *, kind: str = "", after: int | None = None, before: int | None = None
) -> ChangesPage:
    """A page of changes after or before a position, optionally of one kind."""
    found = DifferenceRow.objects.filter(difference=difference)
    if kind:
        found = found.filter(kind=kind)
    backwards = before is not None
    found = found.filter(position__lt=before) if backwards else found.filter(position__gt=after or 0)
    rows = list(found.order_by("-position" if backwards else "position")[: PER_PAGE + 1])
    more, rows = len(rows) > PER_PAGE, rows[:PER_PAGE]
    has_before, has_after = (more, True) if backwards else (bool(after), more)
    if backwards:
        rows.reverse()
    return ChangesPage(
        rows,
        before=rows[0].position if rows and has_before else None,
        after=rows[-1].position if rows and has_after else None,
    )
