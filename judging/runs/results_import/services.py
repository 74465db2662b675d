"""Results import: a file is stored, checked and, after confirmation, imported as verdicts of a run in batches.

If a worker dies, the next one continues after the last stored batch. A failed import is rolled back completely.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django_tasks import task

from datasets import uploads
from datasets.models import Version
from datasets.services import store
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.storage import files
from evalsite.tasks import workers
from judging.core.results_file.records import NotResults, RefusedLine
from judging.runs.models import COUNTERS, IMPORTED, Run, RunState
from judging.runs.results_import.answers import Answers
from judging.runs.results_import.checking import CheckedPart, VerdictSummary, definitions_of, parts
from judging.runs.results_import.models import ResultsImport, ResultsImportState
from judging.runs.results_import.storing import ImportedVerdicts
from judging.runs.stopping import run_stopped

log = logging.getLogger("judging.results_import")

AT_ONCE = 200_000  # bytes that a request processes synchronously
FEW_ROWS = 20_000
LISTED = 1_000  # refused lines that are stored; the rest are only counted
NAME_TAKEN = "name_taken"
_OPEN = (ResultsImportState.CHECKING, ResultsImportState.IMPORTING)
_NOTHING_READ: dict[str, Any] = {"line": 0, "new": 0, "same": 0, "refused": 0, "codes": {}, "listed": []}


def run_to_extend(project: Project, version: Version, name: str) -> Run | None:
    """The imported run of this name, to add verdicts to; None if the name is free. Raises ValidationError if the name
    belongs to another kind of run or to a run of another version."""
    found = Run.objects.filter(project=project, name=name).first()
    if found is not None and (found.kind != IMPORTED or found.version_id != version.pk):
        raise ValidationError(_("A run with this name already exists. Choose another name."))
    return found


def import_begin(
    *,
    version: Version,
    name: str,
    file: uploads.Incoming,
    file_name: str,
    by: User | None,
    wait: bool = False,
) -> ResultsImport:
    """Store a file and check it, immediately if it is small, else by a worker. With `wait`, the caller calls `work`
    itself. Raises ValidationError."""
    project = version.dataset.project
    run_to_extend(project, version, name)
    stored = store(file)
    made = ResultsImport.objects.create(
        project=project,
        version=version,
        name=name,
        file_name=uploads.shown_name(file_name),
        stored_as=stored.stored_as,
        size=stored.size,
        created_by=by,
        owner=workers.owner() if wait else "",
    )
    if not wait:
        _start(made)
    return made


def import_confirm(taken: ResultsImport, *, wait: bool = False) -> None:
    """Import a file if it is checked, immediately if it is small, else by a worker. With `wait`, the caller calls
    `work` itself."""
    checked = ResultsImport.objects.filter(pk=taken.pk, state=ResultsImportState.CHECKED)
    owner = workers.owner() if wait else ""
    if checked.update(state=ResultsImportState.IMPORTING, owner=owner, **_NOTHING_READ) and not wait:
        _start(taken)


def _start(taken: ResultsImport) -> None:
    if taken.size <= AT_ONCE and taken.version.valid_rows <= FEW_ROWS:
        work(taken.pk, workers.owner())
        taken.refresh_from_db()
    else:
        workers.wake(import_results, import_id=taken.pk)


def import_discard(taken: ResultsImport) -> bool:
    """Delete a checked file without importing it. False if it is in progress or was imported."""
    waits = Q(state=ResultsImportState.CHECKED) | Q(state=ResultsImportState.CHECKING, owner="")
    if not ResultsImport.objects.filter(waits, pk=taken.pk).delete()[0]:
        return False
    files.delete(taken.stored_as)
    return True


@workers.works_on(ResultsImport)
def work(
    import_id: int,
    owner: str,
    stop: threading.Event | None = None,
    refused: list[RefusedLine] | None = None,
) -> None:
    """Check or import a file, or continue doing so, unless another process does. Refused lines are added to `refused`,
    all of them; the import itself stores only the first."""
    waiting = ResultsImport.objects.filter(pk=import_id, state__in=_OPEN, owner__in=("", owner))
    if not waiting.update(owner=owner):
        return
    joined = ("project", "version__dataset", "run", "created_by")
    taken = ResultsImport.objects.select_related(*joined).get(pk=import_id)
    mine = _OwnImport(taken, owner, stop, refused)
    try:
        if taken.state == ResultsImportState.CHECKING:
            _check(mine)
        else:
            _import(mine)
    except workers.WorkStopped:
        pass
    except NotResults as wrong:
        _end(mine, wrong.code, wrong.params)
    except Exception as error:  # after any error, no partial import may remain
        _failed(mine, error)
    finally:
        mine.held.update(owner="")


@task(queue_name=workers.DATA)
def import_results(import_id: int) -> None:
    """Check or import a results file, unless another process does."""
    work(import_id, workers.owner(), stop=workers.stopping)


class _OwnImport(workers.OwnedRow[ResultsImport]):
    """An import owned by this process."""

    def __init__(
        self,
        taken: ResultsImport,
        owner: str,
        stop: threading.Event | None,
        refused: list[RefusedLine] | None,
    ) -> None:
        super().__init__(taken, owner, stop)
        self.refused = refused

    @property
    def path(self) -> Path:
        return files.local(self.row.stored_as)

    def note_part(self, part: CheckedPart) -> None:
        taken = self.row
        if self.refused is not None:
            self.refused += part.refused
        listed = [[one.line, one.code, one.params] for one in part.refused[: LISTED - len(taken.listed)]]
        codes = Counter(taken.codes) + Counter(one.code for one in part.refused)
        self.note(
            line=part.line,
            new=taken.new + len(part.new),
            same=taken.same + part.same,
            refused=taken.refused + len(part.refused),
            codes=codes,
            listed=taken.listed + listed,
        )


def _check(mine: _OwnImport) -> None:
    """Check a file from the beginning, even after a worker died, since checking writes no verdicts."""
    taken = mine.row
    mine.note(**_NOTHING_READ)
    run = run_to_extend(taken.project, taken.version, taken.name)
    definitions, summary = definitions_of(mine.path, run), VerdictSummary()
    for part in parts(mine.path, Answers(taken.version), run, definitions):
        summary.add(part)
        mine.note_part(part)
        mine.rest()
    mine.note(
        last_line=taken.line,
        run=run,
        metrics={
            name: {
                "kind": one.values,
                "scale": [one.min_score, one.max_score] if one.scale_declared else None,
                "verdicts": summary.metrics[name],
            }
            for name, one in definitions.items()
        },
        sources=[[kind, name, count] for (kind, name), count in summary.sources.most_common()],
        models_found=dict(summary.models.most_common()),
        state=ResultsImportState.CHECKED,
    )


def _import(mine: _OwnImport) -> None:
    taken = mine.row
    before = ResultsImport.objects.filter(version=taken.version_id, name=taken.name, pk__lt=taken.pk)
    if before.filter(state=ResultsImportState.IMPORTING).exists():
        raise workers.WorkStopped  # imports into one run are sequential; this one is retried
    run = taken.run or run_to_extend(taken.project, taken.version, taken.name)
    definitions = definitions_of(mine.path, run)
    answers, stored = Answers(taken.version), ImportedVerdicts(run) if run else None
    for part in parts(mine.path, answers, run, definitions):
        if part.line <= taken.line:
            continue  # stored before another worker died
        with transaction.atomic():
            if part.new:
                stored = stored or ImportedVerdicts(_run_made(mine))
                _hold(mine, stored)
                stored.add(answers.with_references(part.new), definitions)
            mine.note_part(part)
        mine.rest()
    with transaction.atomic():
        if taken.new and stored is not None:
            _finish(mine, stored.run)
        mine.note(state=ResultsImportState.DONE, last_line=taken.line, ended_at=timezone.now())
    files.delete(taken.stored_as)


def _run_made(mine: _OwnImport) -> Run:
    taken = mine.row
    run = Run.objects.create(
        project=taken.project,
        name=taken.name,
        version=taken.version,
        kind=IMPORTED,
        bad_rows_left_out=taken.version.bad_rows,
        created_by=taken.created_by,
        started_at=timezone.now(),
    )
    mine.note(run=run, first_position=0)
    return run


def _hold(mine: _OwnImport, stored: ImportedVerdicts) -> None:
    """Lock the run, and remember the position of its first new judgement."""
    stored.run = Run.objects.select_for_update().get(pk=stored.run.pk)
    if mine.row.first_position is None:
        mine.note(run=stored.run, first_position=stored.run.total)


def _finish(mine: _OwnImport, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        state=RunState.FINISHED,
        finished_at=timezone.now(),
        rows=run.judgements.values("row").distinct().count(),
    )
    record(
        Action.RESULTS_IMPORTED,
        project=mine.row.project,
        thing=run,
        by=mine.row.created_by,
        file=mine.row.file_name,
        verdicts=mine.row.new,
    )
    run_stopped(run.pk)


def _failed(mine: _OwnImport, error: Exception) -> None:
    """Store the error and roll back what was imported."""
    problem = NAME_TAKEN if isinstance(error, ValidationError) else workers.file_problem(error)
    if problem == workers.UNEXPECTED:
        log.error("The results %s could not be imported.", mine.row.pk, exc_info=error)
    try:
        _end(mine, problem, {})
    except Exception:  # the reconciler tries again
        log.exception("The import of results %s could not be undone yet; retrying.", mine.row.pk)


def _end(mine: _OwnImport, problem: str, params: dict[str, str]) -> None:
    taken = mine.row
    with transaction.atomic():
        if taken.run is not None and taken.first_position is not None:
            _take_back(taken.run, taken.first_position)
        mine.note(
            state=ResultsImportState.FAILED,
            problem=problem,
            problem_params=params,
            ended_at=timezone.now(),
            new=0,
        )
    files.delete(taken.stored_as)


def _take_back(run: Run, first: int) -> None:
    run.judgements.filter(position__gte=first).delete()
    if first == 0:
        run.delete()
        return
    run.metrics.exclude(pk__in=run.judgements.values("run_metric")).delete()
    states = dict(run.judgements.order_by().values_list("state").annotate(Count("pk")))
    Run.objects.filter(pk=run.pk).update(
        total=first,
        **{counter: states.get(state, 0) for state, counter in COUNTERS.items()},
        revision=run.revision + 1,
    )


def reconcile() -> None:
    """Release imports held by dead workers, and wake workers for all open ones."""
    waiting = ResultsImport.objects.filter(state__in=_OPEN)
    workers.reconcile_owned(waiting, lambda pk: workers.wake(import_results, import_id=pk))
