"""Comparisons of runs for pages: small ones are computed by the page, large ones by a worker; the result is stored.

Only the worker that holds the comparison writes it; if that worker is gone, another one starts over.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import timedelta

import msgspec
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django_tasks import task

from datasets.importing.worker import give_way
from evalsite.tasks import workers
from judging.comparison.models import ComparedCell, Comparison
from judging.comparison.services import CellChange, ComparedItem, changes_between, shared_cells
from judging.reports.figures import old_enough
from judging.runs.models import Run

State = Comparison.State
LAYOUT = 1  # of KeptChange and ComparedItem; increase it when they change
FEW = 4_000  # judgements of both runs; up to this many a page compares them itself, in half a second
MOST_TRIES = 3  # attempts; workers may have been killed by it
KEPT = timedelta(days=30)
_NOTED_EVERY = 0.5  # seconds
_OF_WORK = ["state", "share", "layout", "made_at"]


class KeptShare(msgspec.Struct, frozen=True, array_like=True):
    """Stored core.change.Share; `items`: their number."""

    cause: str
    difference: float
    items: int


class KeptChange(msgspec.Struct, frozen=True):
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
    shares: list[KeptShare]


_decode_change = msgspec.msgpack.Decoder(KeptChange).decode
_decode_items = msgspec.msgpack.Decoder(list[ComparedItem]).decode


def comparison_of(before: Run, after: Run) -> Comparison:
    """The stored comparison; wakes a worker if there is none or the runs have changed since."""
    found, _made = Comparison.objects.get_or_create(before=before, after=after)
    found.before, found.after = before, after
    if _due(found, before, after):
        ask(found)
    if found.state == State.WAITING:
        if before.total + after.total <= FEW:
            work_out(found.pk)
            found.refresh_from_db(fields=_OF_WORK)
        else:
            workers.wake(compare_runs, comparison_id=found.pk)
    return found


def _due(found: Comparison, before: Run, after: Run) -> bool:
    if found.under_way:
        return False
    known = found.state == State.FAILED or found.layout == LAYOUT
    if known and (found.before_revision, found.after_revision) == (before.revision, after.revision):
        return False
    rest = before.rests and after.rests
    return rest or found.made_at is None or old_enough(found.made_at, found.took)


def ask(found: Comparison) -> None:
    """Request recomputation, unless it is in progress."""
    ended = Comparison.objects.filter(pk=found.pk, state__in=(State.READY, State.FAILED))
    ended.update(state=State.WAITING, share=0, tries=0)
    found.refresh_from_db(fields=_OF_WORK)


def changes_of(found: Comparison) -> list[KeptChange] | None:
    """Changes by metric and candidate that both runs have, in the later run's order; None until they are computed."""
    if found.layout != LAYOUT:
        return None
    packed = found.cells.order_by("number").values_list("change", flat=True)
    return [_decode_change(one) for one in packed]


def items_of(found: Comparison, number: int) -> list[ComparedItem]:
    """The items of entry `number` of `changes_of`, largest change first."""
    return _decode_items(found.cells.values_list("items", flat=True).get(number=number))


@task(queue_name=workers.DATA)
def compare_runs(comparison_id: int) -> None:
    """Task: compare two runs, unless another worker does."""
    work_out(comparison_id, stop=workers.stopping)


@workers.works_on(Comparison)
def work_out(comparison_id: int, stop: threading.Event | None = None) -> None:
    """Process a pending comparison, which ends as ready or failed. `stop`: set when other work has priority."""
    waiting = Comparison.objects.filter(pk=comparison_id, state=State.WAITING)
    if not waiting.update(state=State.WORKING, owner=workers.owner(), tries=F("tries") + 1):
        return
    found = Comparison.objects.select_related("before__version", "after__version").get(pk=comparison_id)
    began = time.monotonic()
    try:
        cells = _cells(found, _Progress(found, stop))
        keep(found, cells, took=time.monotonic() - began)
    except Exception as error:  # no error may leave the comparison half done
        if workers.may_retry(error, f"Comparison {comparison_id}"):
            _give_back(found)  # changes nothing if another worker holds it now
        else:
            _end(found, State.FAILED)  # retried only when one of the runs changes, or on request


class _Progress:
    """Reports progress regularly, and lets other pending work go first."""

    def __init__(self, comparison: Comparison, stop: threading.Event | None) -> None:
        self.comparison, self.stop = comparison, stop
        self.noted = time.monotonic()

    def __call__(self, share: float) -> None:
        if self.stop and self.stop.is_set():
            raise workers.WorkStopped
        if time.monotonic() - self.noted < _NOTED_EVERY:
            return
        if not _held(self.comparison).update(share=share):
            raise workers.WorkStopped
        if self.stop:
            give_way(self.comparison.owner, self.stop)
        self.noted = time.monotonic()


def _held(found: Comparison) -> QuerySet[Comparison]:
    return Comparison.objects.filter(pk=found.pk, state=State.WORKING, owner=found.owner)


def _cells(found: Comparison, progress: _Progress) -> list[ComparedCell]:
    shared = shared_cells(found.before, found.after)
    changes = changes_between(found.before, found.after, shared, progress)
    return [_cell(found, number, one) for number, one in enumerate(changes)]


def _cell(found: Comparison, number: int, cell: CellChange) -> ComparedCell:
    change, items = cell.change, cell.items()
    kept = KeptChange(
        metric=cell.metric,
        candidate=cell.candidate,
        before=change.before,
        after=change.after,
        difference=change.difference,
        ci_low=change.ci_low,
        ci_high=change.ci_high,
        items=len(items),
        counts=dict(Counter(one.outcome for one in items)),
        shares=[KeptShare(one.cause, one.difference, len(one.items)) for one in change.shares],
    )
    packed = msgspec.msgpack.encode(items)
    return ComparedCell(comparison=found, number=number, change=msgspec.msgpack.encode(kept), items=packed)


@transaction.atomic
def keep(found: Comparison, cells: list[ComparedCell], took: float) -> None:
    """Store the result. Raises WorkStopped if another worker holds the comparison now."""
    if not _end(found, State.READY, layout=LAYOUT, took=took):
        raise workers.WorkStopped
    found.cells.all().delete()
    ComparedCell.objects.bulk_create(cells, batch_size=10)


def _end(found: Comparison, state: str, **more: object) -> int:
    """Set the final state with the runs' revisions at the start. Returns 0 if another worker holds it now."""
    return _held(found).update(
        state=state,
        owner="",
        before_revision=found.before.revision,
        after_revision=found.after.revision,
        made_at=timezone.now(),
        **more,
    )


def _give_back(found: Comparison) -> None:
    """Release it, so that another worker starts over."""
    _held(found).update(state=State.WAITING, owner="", share=0, tries=F("tries") - 1)


def reconcile() -> None:
    """Restart comparisons whose process is gone, wake a worker for pending ones, and delete old ones."""
    for found in Comparison.objects.filter(state=State.WORKING).select_related("before", "after"):
        if not workers.is_held(found.owner, Comparison, found.pk):
            if found.tries < MOST_TRIES:
                _held(found).update(state=State.WAITING, owner="", share=0)
            else:
                _end(found, State.FAILED)
    for pk in Comparison.objects.filter(state=State.WAITING).values_list("pk", flat=True):
        workers.wake(compare_runs, comparison_id=pk)
    ended = Comparison.objects.filter(state__in=(State.READY, State.FAILED))
    ended.filter(made_at__lt=timezone.now() - KEPT).delete()
