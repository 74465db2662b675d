"""Import of ratings files: stored, then imported by a worker in small transactions, so that other writers can proceed.

If a worker dies, the next one continues after the last processed line. If the import fails or is stopped, it is undone,
so that no file stays partially imported.
"""

from __future__ import annotations

import logging
import threading
from itertools import islice

from django.db import transaction
from django.utils import timezone
from django_tasks import task

from datasets import uploads
from datasets.services import store
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.tasks import workers
from judging.core.results_file.rating_lines import read_lines
from judging.core.results_file.records import RefusedLine
from judging.people.assignments import audit, locked
from judging.people.judgements import rating_forget
from judging.people.models import Evaluation, ImportState, Rating, RatingsImport
from judging.people.rating_batch import RatingBatch
from judging.runs.json_text import storable

log = logging.getLogger("judging.people")

MOST_BYTES = 50_000_000
AT_ONCE = 100_000  # bytes; a page imports files up to this size itself
LISTED = 1_000  # rejected lines that are listed; all of them are counted
_BATCH = 100  # lines: other processes can't write to SQLite during a batch
_OPEN = (ImportState.WAITING, ImportState.READING, ImportState.UNDOING)
_Own = workers.OwnedRow[RatingsImport]
STOPPED = "stopped"


def import_begin(
    *, evaluation: Evaluation, file: uploads.Incoming, file_name: str, by: User
) -> RatingsImport:
    """Store a ratings file and start its import; small files are imported at once. Raises ValidationError if it
    can't be stored."""
    stored = store(file)
    with transaction.atomic():
        made = RatingsImport.objects.create(
            evaluation=evaluation,
            file_name=uploads.shown_name(file_name),
            stored_as=stored.stored_as,
            size=stored.size,
            created_by=by,
        )
        if stored.size > AT_ONCE:
            workers.wake(import_ratings, import_id=made.pk)
    if stored.size <= AT_ONCE:
        work(made.pk, workers.owner())
        made.refresh_from_db()
    return made


def import_stop(*, taken: RatingsImport) -> bool:
    """Stop an import and undo it. False if it has ended."""
    under_way = RatingsImport.objects.filter(
        pk=taken.pk, state__in=(ImportState.WAITING, ImportState.READING)
    )
    with transaction.atomic():
        if not under_way.update(state=ImportState.UNDOING, problem=STOPPED, owner=""):
            return False
        workers.wake(import_ratings, import_id=taken.pk)
    return True


@workers.works_on(RatingsImport)
def work(import_id: int, owner: str, stop: threading.Event | None = None) -> None:
    """Import a file, continue its import, or undo it, unless another process is doing so."""
    if not RatingsImport.objects.filter(pk=import_id, state__in=_OPEN, owner="").update(owner=owner):
        return
    parts = ("evaluation__run", "created_by")
    mine = _Own(RatingsImport.objects.select_related(*parts).get(pk=import_id), owner, stop)
    try:
        if mine.row.state != ImportState.UNDOING:
            _read(mine)
        else:
            _undo(mine)
    except workers.WorkStopped:
        pass
    except Exception as error:  # whatever it was, the file must not stay partially imported
        _failed(mine, error)
    finally:
        mine.held.update(owner="")


def _read(mine: _Own) -> None:
    taken = mine.row
    text = files.local(taken.stored_as).read_bytes().decode("utf-8-sig", "replace")
    mine.note(state=ImportState.READING, lines=text.count("\n") + (not text.endswith("\n")))
    lines, done = read_lines(text, list(taken.evaluation.criteria.values())), taken.line
    left = (line for line in lines if line.line > done)
    while batch := list(islice(left, _BATCH)):
        with transaction.atomic():
            found = RatingBatch(locked(taken.evaluation), batch, taken).take()
            codes = [_plain(one) for one in found.wrong[: LISTED - len(taken.bad_lines)]]
            mine.note(
                line=batch[-1].line,
                new=taken.new + found.new,
                there=taken.there + found.there,
                not_current=taken.not_current + found.not_current,
                wrong=taken.wrong + len(found.wrong),
                bad_lines=[*taken.bad_lines, *codes],
            )
        mine.rest()
    with transaction.atomic():
        mine.note(state=ImportState.DONE, line=taken.lines, ended_at=timezone.now())
        if taken.new:
            audit(Action.RATINGS_IMPORTED, taken.evaluation, taken.created_by, ratings=taken.new)
    files.delete(taken.stored_as)


def _plain(bad: RefusedLine) -> list[object]:
    """A rejected line as stored: its quotes may be long, or contain characters that no database accepts."""
    return [bad.line, bad.code, {name: storable(text[:200]) for name, text in bad.params.items()}]


def _failed(mine: _Own, error: Exception) -> None:
    """Store the problem and undo the import."""
    problem = workers.file_problem(error)
    if problem == workers.UNEXPECTED:
        log.error("The ratings %s could not be imported.", mine.row.pk, exc_info=error)
    try:
        if mine.row.state != ImportState.UNDOING:
            mine.note(state=ImportState.UNDOING, problem=problem)
            _undo(mine)
    except workers.WorkStopped:
        pass  # another process continues
    except Exception:  # the reconciler tries again
        log.exception("The import of ratings %s could not be undone yet; retrying.", mine.row.pk)


def _undo(mine: _Own) -> None:
    """Delete the imported ratings that still count. Ratings that their raters have changed since are kept."""
    parts = ("assignment__item", "rater")
    came = mine.row.ratings.select_related(*parts).order_by("-pk")
    while True:
        with transaction.atomic():
            evaluation = locked(mine.row.evaluation)
            batch = list(came[:_BATCH])
            for rating in batch:
                if rating.assignment.rating_id == rating.pk:
                    rating_forget(evaluation, rating)
                else:
                    Rating.objects.filter(pk=rating.pk).update(came_with=None)
            mine.note(new=max(0, mine.row.new - len(batch)))
        if not batch:
            break
        mine.rest()
    mine.note(state=ImportState.UNDONE, ended_at=timezone.now())
    files.delete(mine.row.stored_as)


def reconcile() -> None:
    """Release the imports of dead workers, and wake a worker for all that are pending."""
    waiting = RatingsImport.objects.filter(state__in=_OPEN)
    workers.reconcile_owned(waiting, lambda pk: workers.wake(import_ratings, import_id=pk))


@task(queue_name=workers.DATA)
def import_ratings(import_id: int) -> None:
    """Import a ratings file, or undo its import, unless another process is doing so."""
    work(import_id, workers.owner(), stop=workers.stopping)
