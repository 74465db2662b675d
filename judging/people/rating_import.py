"""Import of ratings files: stored, then imported by a worker in small transactions, so that other writers can proceed.

If a worker dies, the next one continues after the last processed line. If the import fails or is stopped, it is undone,
so that no file stays partially imported.
"""

from __future__ import annotations

from itertools import islice

from django.db import transaction

from datasets import uploads
from datasets.services import store
from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.results_file.rating_lines import read_lines
from judging.core.results_file.records import RefusedLine
from judging.people.assignments import audit, locked
from judging.people.import_models import ImportState, RatingsImport
from judging.people.judgements import rating_forget
from judging.people.models import Evaluation, Rating
from judging.people.rating_batch import RatingBatch
from judging.records.json_text import storable

JOB = "import_ratings"
MOST_BYTES = 50_000_000
AT_ONCE = 100_000  # bytes; a page imports files up to this size itself
LISTED = 1_000  # rejected lines that are listed; all of them are counted
_BATCH = 100  # lines: other processes can't write to SQLite during a batch
STOPPED = "stopped"


def import_begin(
    *, evaluation: Evaluation, file: uploads.Incoming, file_name: str, by: User
) -> RatingsImport:
    """Store a ratings file and start its import; small files are imported at once. Raises ValidationError if it
    can't be stored."""
    stored = store(file)
    with transaction.atomic():
        ratings_import = RatingsImport.objects.create(
            evaluation=evaluation,
            file_name=uploads.shown_name(file_name),
            stored_as=stored.stored_as,
            size=stored.size,
            created_by=by,
        )
        jobs.request(JOB, ratings_import.pk, here=stored.size <= AT_ONCE)
    if stored.size <= AT_ONCE:
        jobs.run(JOB, ratings_import.pk)
        ratings_import.refresh_from_db()
    return ratings_import


def import_stop(*, ratings_import: RatingsImport) -> bool:
    """Stop an import and undo it. False if it has ended."""
    under_way = RatingsImport.objects.filter(
        pk=ratings_import.pk, state__in=(ImportState.WAITING, ImportState.READING)
    )
    with transaction.atomic():
        jobs.request(
            JOB, ratings_import.pk, restart=True
        )  # first, as its worker renews the job before it stores anything
        if not under_way.update(state=ImportState.UNDOING, problem=STOPPED):
            transaction.set_rollback(True)
            return False
    return True


def _failed(hold: Hold, ratings_import: RatingsImport, error: Exception) -> None:
    """Store the problem and undo the import."""
    if ratings_import.state != ImportState.UNDOING:
        hold.store(ratings_import, state=ImportState.UNDOING, problem=hold.problem(error))
        _undo(hold, ratings_import)
    else:  # the reconciler tries again
        hold.problem(error)


@jobs.job(JOB, RatingsImport, failed=_failed)
def import_ratings(hold: Hold, ratings_import: RatingsImport) -> None:
    """Import a file, continue its import, or undo it."""
    if ratings_import.state in (ImportState.WAITING, ImportState.READING):
        _read(hold, ratings_import)
    elif ratings_import.state == ImportState.UNDOING:
        _undo(hold, ratings_import)


def _read(hold: Hold, ratings_import: RatingsImport) -> None:
    text = files.local(ratings_import.stored_as).read_bytes().decode("utf-8-sig", "replace")
    hold.store(ratings_import, state=ImportState.READING, lines=text.count("\n") + (not text.endswith("\n")))
    lines, done = read_lines(text, list(ratings_import.evaluation.criteria.values())), ratings_import.line
    left = (line for line in lines if line.line > done)
    while batch := list(islice(left, _BATCH)):
        with transaction.atomic():
            imported = RatingBatch(locked(ratings_import.evaluation), batch, ratings_import).import_lines()
            codes = [_plain(line) for line in imported.wrong[: LISTED - len(ratings_import.bad_lines)]]
            hold.store(
                ratings_import,
                line=batch[-1].line,
                new=ratings_import.new + imported.new,
                already_imported=ratings_import.already_imported + imported.existing,
                not_current=ratings_import.not_current + imported.not_current,
                invalid=ratings_import.invalid + len(imported.wrong),
                bad_lines=[*ratings_import.bad_lines, *codes],
            )
        hold.pause()
    with transaction.atomic():
        hold.store(ratings_import, state=ImportState.DONE, line=ratings_import.lines, ended_at=clock.now())
        hold.finish()
        if ratings_import.new:
            audit(
                Action.RATINGS_IMPORTED,
                ratings_import.evaluation,
                ratings_import.created_by,
                ratings=ratings_import.new,
            )
    files.delete(ratings_import.stored_as)


def _plain(bad: RefusedLine) -> list[object]:
    """A rejected line as stored: its quotes may be long, or contain characters that no database accepts."""
    return [bad.line, bad.code, {name: storable(text[:200]) for name, text in bad.params.items()}]


def _undo(hold: Hold, ratings_import: RatingsImport) -> None:
    """Delete the imported ratings that still count. Ratings that their raters have changed since are kept."""
    parts = ("assignment__item", "rater")
    came = ratings_import.ratings.select_related(*parts).order_by("-pk")
    while True:
        with transaction.atomic():
            evaluation = locked(ratings_import.evaluation)
            batch = list(came[:_BATCH])
            for rating in batch:
                if rating.assignment.rating_id == rating.pk:
                    rating_forget(evaluation, rating)
                else:
                    Rating.objects.filter(pk=rating.pk).update(ratings_import=None)
            hold.store(ratings_import, new=max(0, ratings_import.new - len(batch)))
        if not batch:
            break
        hold.pause()
    with transaction.atomic():
        hold.store(ratings_import, state=ImportState.UNDONE, ended_at=clock.now())
        hold.finish()
    files.delete(ratings_import.stored_as)
