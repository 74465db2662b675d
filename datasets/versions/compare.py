"""Differences between two versions: computed by a worker and stored, because versions never change.

Only the holder of the lease writes; the transaction that stores the counts makes the result ready, and an interrupted
comparison starts over.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from django.db import connection, transaction
from django_tasks import task

from datasets.core.formats import format_called
from datasets.importing import worker
from datasets.importing.leases import Hold, Leases
from datasets.models import Difference, DifferenceRow, DifferenceState, Version
from datasets.versions import temp_files
from datasets.versions.row_match import ChangedRow, Matcher, digests
from datasets.versions.row_writer import whole_rows
from evalsite.tasks import workers

log = logging.getLogger("datasets.versions.compare")

BATCH = 1000
PER_PAGE = 20
WORK = "differences"
COMPARING = Leases(Difference, DifferenceState.WAITING, DifferenceState.COMPARING, begun=("rows_read",))
UNFINISHED = (DifferenceState.WAITING, DifferenceState.COMPARING)
_INSERT = """
INSERT INTO datasets_differencerow (difference_id, position, kind, old_line, new_line) VALUES (%s, %s, %s, %s, %s)
"""
_CLEAR = """
DELETE FROM datasets_differencerow WHERE id IN (
    SELECT id FROM datasets_differencerow WHERE difference_id = %s ORDER BY position LIMIT %s)
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
    return COMPARING.work(difference_id, owner, stop, lambda hold: _Comparison(hold).run(), _failed)


def _failed(error: Exception) -> dict[str, Any]:
    log.error("Comparing two versions failed.", exc_info=error)
    return {"state": DifferenceState.FAILED}


def reconcile(now: datetime | None = None) -> None:
    """Restart comparisons whose worker is gone, and wake a worker for all waiting ones."""
    COMPARING.free_lost(now)
    for pk in COMPARING.ids_waiting():
        workers.wake(compare_versions, difference_id=pk)
    if temp_files.folders(WORK):
        temp_files.sweep(WORK, COMPARING.ids_busy())


class _Comparison:
    """One worker's pass through both versions."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.difference = Difference.objects.get(pk=hold.pk)
        self.rows_read = 0

    def run(self) -> None:
        clear(self.difference.pk)
        with temp_files.work_folder(WORK, self.difference.pk) as folder:
            matcher = Matcher(folder / "rows.sqlite3")
            try:
                self._read("old", self.difference.old, matcher)
                self._read("new", self.difference.new, matcher)
                matcher.match()
                self._write(matcher)
            finally:
                matcher.close()

    def _read(self, side: Literal["old", "new"], version: Version, matcher: Matcher) -> None:
        fmt = format_called(version.format)
        rows = whole_rows(version, only_valid=False)
        while part := list(islice(rows, BATCH)):
            matcher.add(side, [(row.line, digests(row.raw, fmt, row.answers)) for row in part])
            self.rows_read += len(part)
            self.hold.renew(rows_read=self.rows_read)
            worker.give_way(self.hold.owner, self.hold.stop)

    def _write(self, matcher: Matcher) -> None:
        counts: Counter[str] = Counter()
        changes = matcher.changes()
        written = 0
        while part := list(islice(changes, BATCH)):
            with transaction.atomic():
                self.hold.renew(rows_read=self.rows_read)
                self._insert(part, written + 1)
            counts.update(change.kind for change in part)
            written += len(part)
        figures = {kind: counts[kind] for kind in ("added", "removed", "changed")}
        self.hold.end(DifferenceState.READY, by_id=matcher.by_id, same=matcher.same, **figures)

    def _insert(self, changes: list[ChangedRow], position: int) -> None:
        values = [
            (self.difference.pk, number, change.kind, change.old_line, change.new_line)
            for number, change in enumerate(changes, position)
        ]
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, values)


def clear(difference_id: int) -> None:
    """Delete the rows of an interrupted comparison, in batches."""
    deleted = 1
    while deleted:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_CLEAR, [difference_id, BATCH])
            deleted = cursor.rowcount


def page(
    difference: Difference, *, kind: str = "", after: int | None = None, before: int | None = None
) -> ChangesPage:
    """A page of changes after or before a position, optionally of one kind."""
    found = DifferenceRow.objects.filter(difference=difference)
    if kind:
        found = found.filter(kind=kind)
    if before is not None:
        rows = list(found.filter(position__lt=before).order_by("-position")[: PER_PAGE + 1])
    else:
        rows = list(found.filter(position__gt=after or 0).order_by("position")[: PER_PAGE + 1])
    more, rows = len(rows) > PER_PAGE, rows[:PER_PAGE]
    if before is not None:
        rows.reverse()
    has_before, has_after = (more, True) if before is not None else (bool(after), more)
    return ChangesPage(
        rows,
        before=rows[0].position if rows and has_before else None,
        after=rows[-1].position if rows and has_after else None,
    )
