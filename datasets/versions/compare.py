"""Differences between two versions: computed by a worker and stored, because versions never change.

The transaction that stores the counts makes the result ready, and an interrupted comparison starts over.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from django.db import connection, transaction

from datasets.core.formats import format_called
from datasets.importing import worker
from datasets.models import Difference, DifferenceRow, Version
from datasets.versions import temp_files
from datasets.versions.row_match import Matcher, digests
from datasets.versions.row_writer import whole_rows
from evalsite.models import Job
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold

BATCH = 1000
PER_PAGE = 20
JOB = "compare_versions"
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
    difference, _made = Difference.objects.get_or_create(old=old, new=new)
    if not difference.ready:
        jobs.request(JOB, difference.pk)
    return difference


def job_of(difference: Difference) -> Job | None:
    """The job that computes it, if it waits, is being done or failed."""
    return None if difference.ready else jobs.of(JOB, difference.pk)


@jobs.job(JOB, Difference)
def compare_versions(hold: Hold, difference: Difference) -> None:
    """Compute the differences; `done` counts the rows read of both versions."""
    _clear(difference)
    with (
        temp_files.work_folder(JOB, difference.pk) as folder,
        closing(Matcher(folder / "rows.sqlite3")) as matcher,
    ):
        rows_read = _read(hold, "old", difference.old, matcher)
        _read(hold, "new", difference.new, matcher, rows_read)
        matcher.match()
        counts = _write(hold, matcher)
        with transaction.atomic():
            hold.finish()
            differences = Difference.objects.filter(pk=difference.pk)
            differences.update(ready=True, by_id=matcher.by_id, same=matcher.same, **counts)


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
        hold.renew(done=rows_read)
        hold.check()
        worker.do_urgent_work(hold.stop)
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
    matches = DifferenceRow.objects.filter(difference=difference)
    if kind:
        matches = matches.filter(kind=kind)
    backwards = before is not None
    matches = matches.filter(position__lt=before) if backwards else matches.filter(position__gt=after or 0)
    rows = list(matches.order_by("-position" if backwards else "position")[: PER_PAGE + 1])
    more, rows = len(rows) > PER_PAGE, rows[:PER_PAGE]
    has_before, has_after = (more, True) if backwards else (bool(after), more)
    if backwards:
        rows.reverse()
    return ChangesPage(
        rows,
        before=rows[0].position if rows and has_before else None,
        after=rows[-1].position if rows and has_after else None,
    )
