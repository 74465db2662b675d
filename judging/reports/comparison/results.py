"""Comparisons of runs for pages: small ones are computed by the page, large ones by a worker; the result is stored."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import msgspec
from django.db import transaction
from django.utils import timezone

from datasets.importing.worker import do_urgent_work
from evalsite.derived import Part
from evalsite.models import Derived, Job
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.records.models import Run
from judging.reports.comparison.services import CellChange, ComparedItem, changes_between, shared_cells
from judging.reports.comparison.stored import (
    CHANGES,
    ITEMS,
    StoredChange,
    StoredShare,
    delete_comparisons,
    part_of,
    revision_of,
    runs_of,
)
from judging.reports.figures import old_enough

JOB = "compare_runs"
FEW = 4_000  # judgements of both runs; up to this many a page compares them itself, in half a second
MOST_TRIES = 3  # workers that may be killed by it
MAX_AGE = timedelta(days=30)


PackedCell = tuple[StoredChange, bytes]
"""A cell's change and its packed items."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Why the scores of two runs differ: a row of CHANGES, and the job that computes it, if it waits, is being done or
    failed. The last result remains while a newer one is computed."""

    before: Run
    after: Run
    row: Derived
    job: Job | None

    @property
    def pk(self) -> int:
        return self.row.pk

    @property
    def computed_at(self) -> datetime | None:
        """None if there is no result yet."""
        return self.row.computed_at if self.row.layout else None

    @property
    def under_way(self) -> bool:
        return self.job is not None and not self.failed

    @property
    def failed(self) -> bool:
        return self.job is not None and self.job.state == Job.State.FAILED


_decode_changes = msgspec.msgpack.Decoder(list[StoredChange]).decode
_decode_items = msgspec.msgpack.Decoder(list[ComparedItem]).decode


def comparison_of(before: Run, after: Run) -> Comparison:
    """The stored comparison; requests one if there is none or the runs have changed since."""
    comparison = _with_job(before, after, CHANGES.place(after.pk, *part_of(before.pk)))
    few = before.total + after.total <= FEW
    if _due(comparison):
        jobs.request(JOB, comparison.pk, here=few)
    elif not (few and comparison.job):
        return comparison
    if few:
        jobs.run(JOB, comparison.pk)
    return stored_comparison(before, after) or comparison


def stored_comparison(before: Run, after: Run) -> Comparison | None:
    """The stored or unfinished comparison; None if there is none."""
    row = CHANGES.placed(after.pk, *part_of(before.pk))
    return _with_job(before, after, row) if row else None


def _with_job(before: Run, after: Run, row: Derived) -> Comparison:
    return Comparison(before, after, row, jobs.of(JOB, row.pk))


def _due(comparison: Comparison) -> bool:
    row, runs = comparison.row, (comparison.before, comparison.after)
    if comparison.under_way:
        return False
    if (comparison.failed or row.layout) and row.revision == revision_of(runs):
        return False
    rest = all(run.is_idle for run in runs)
    return rest or row.computed_at is None or old_enough(row.computed_at, row.seconds)


def request_again(comparison: Comparison) -> None:
    """Have it computed again, unless that is in progress."""
    jobs.request(JOB, comparison.pk)


def changes_of(comparison: Comparison) -> list[StoredChange] | None:
    """Changes by metric and candidate that both runs have, in the later run's order; None until they are computed."""
    return _decode_changes(comparison.row.value) if comparison.row.layout else None


def items_of(comparison: Comparison, change: StoredChange) -> list[ComparedItem]:
    """The items of one of `changes_of`, largest change first."""
    stored = ITEMS.get(comparison.pk, change.metric, change.candidate)
    return _decode_items(stored.value) if stored else []


def _failed(hold: Hold, row: Derived, error: Exception) -> None:
    """It is computed again only when one of the runs changes, or on request."""
    with transaction.atomic():
        hold.fail(hold.problem(error))
        CHANGES.fail(row, revision_of(runs_of(row)))


@jobs.job(JOB, Derived, failed=_failed, most_tries=MOST_TRIES)
def compare_runs(hold: Hold, row: Derived) -> None:
    """Compare two runs and store the result."""
    began = time.monotonic()
    runs = runs_of(row)
    if len(runs) < 2:
        return
    before, after = runs
    changes = changes_between(before, after, shared_cells(before, after), partial(_progress, hold))
    cells = [_packed(cell) for cell in changes]
    store(hold, row, cells, revision_of(runs), took=time.monotonic() - began)


def _progress(hold: Hold, share: float) -> None:
    if hold.renew_at_times(done=int(1000 * share), total=1000) and hold.in_worker:
        do_urgent_work(hold.stop)


def _packed(cell: CellChange) -> PackedCell:
    change, items = cell.change, cell.items()
    stored = StoredChange(
        metric=cell.metric,
        candidate=cell.candidate,
        before=change.before,
        after=change.after,
        difference=change.difference,
        ci_low=change.ci_low,
        ci_high=change.ci_high,
        items=len(items),
        counts=dict(Counter(item.outcome for item in items)),
        shares=[
            StoredShare(share.cause, share.difference, len(share.items), share.ci_low, share.ci_high)
            for share in change.shares
        ],
        noise_alone=change.noise_alone,
    )
    return stored, msgspec.msgpack.encode(items)


@transaction.atomic
def store(hold: Hold, row: Derived, cells: list[PackedCell], revision: int, took: float) -> None:
    """Store the result. Raises WorkStopped if another worker has the comparison now."""
    hold.finish()
    changes = [change for change, _items in cells]
    if CHANGES.fill(row, msgspec.msgpack.encode(changes), revision, took):
        items: dict[Part, bytes] = {(change.metric, change.candidate): packed for change, packed in cells}
        ITEMS.replace(row.pk, items, revision)


def delete_old() -> None:
    """Delete comparisons that were computed long ago."""
    old = Derived.objects.filter(kind=CHANGES.kind, computed_at__lt=timezone.now() - MAX_AGE)
    old = old.exclude(pk__in=Job.objects.filter(kind=JOB).values("object_id"))
    if pks := list(old.values_list("pk", flat=True)):
        delete_comparisons(pks)
