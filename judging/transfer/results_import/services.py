"""Results import: a file is stored, checked and, after confirmation, imported as verdicts of a run in batches.

If a worker dies, the next one continues after the last stored batch. A failed import is rolled back completely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets import uploads
from datasets.core.imports.model import LeftOut, NotUsable
from datasets.core.imports.reasons import is_record
from datasets.core.texts import Text, gettext_noop
from datasets.messages import not_usable_sentence, translated
from datasets.models import Version
from datasets.services import store, version_lock
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.models import Job
from evalsite.storage import files
from evalsite.tasks import jobs
from evalsite.tasks.jobs import AWAY, GONE, UNEXPECTED, Hold, WorkStopped
from judging.core.results_file.records import NOT_RESULTS, NotResults, RefusedLine
from judging.engine.stopping import run_stopped
from judging.records.models import COUNTERS, IMPORTED, Run, RunState
from judging.transfer.results_import.answers import Answers
from judging.transfer.results_import.checking import CheckedPart, VerdictSummary, definitions_of, parts
from judging.transfer.results_import.conversion import results_file
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.transfer.results_import.storing import ImportedVerdicts, settle_orders

JOB = "import_results"
AT_ONCE = 200_000  # bytes that a request processes synchronously
FEW_ROWS = 20_000
LISTED = 1_000  # refused lines that are stored; the rest are only counted
NAME_TAKEN = "name_taken"
REFUSED = "refused"
LEFT_OUT = {"left_out": "1"}  # params of a line that is not in the verdicts of another tool's file
FILE_PROBLEMS: dict[str, Text] = {
    **NOT_RESULTS,
    GONE: gettext_noop("The uploaded file is no longer there. Upload it again."),
    AWAY: gettext_noop("The file storage is not responding. Try again in a minute."),
    REFUSED: gettext_noop("Some lines don't fit, and all or nothing was asked for. Nothing was imported."),
    NAME_TAKEN: gettext_noop("A run with this name already exists. Choose another name."),
    UNEXPECTED: gettext_noop("An unexpected error occurred. Administrators can find it in the server log."),
}
"""Why a file was not imported, by code."""
_NOTHING_READ: dict[str, Any] = {"line": 0, "new": 0, "same": 0, "refused": 0, "codes": {}, "listed": []}


def run_to_extend(project: Project, version: Version, name: str) -> Run | None:
    """The imported run of this name, to add verdicts to; None if the name is free. Raises ValidationError if the name
    belongs to another kind of run or to a run of another version."""
    run = Run.objects.filter(project=project, name=name).first()
    if run is not None and (run.kind != IMPORTED or run.version_id != version.pk):
        raise ValidationError(_("A run with this name already exists. Choose another name."))
    return run


def import_begin(
    *,
    version: Version,
    name: str,
    file: uploads.Incoming,
    file_name: str,
    by: User | None,
    wait: bool = False,
    check: bool = True,
    strict: bool = False,
) -> ResultsImport:
    """Store a file and check it, immediately if it is small, else by a worker; without `check`, import what fits, or
    all or nothing if it is `strict`. With `wait`, the caller runs the job itself. Raises ValidationError."""
    project = version.dataset.project
    run_to_extend(project, version, name)
    stored = store(file)
    results_import = ResultsImport.objects.create(
        project=project,
        version=version,
        name=name,
        file_name=uploads.shown_name(file_name),
        stored_as=stored.stored_as,
        size=stored.size,
        state=ResultsImportState.CHECKING if check or strict else ResultsImportState.IMPORTING,
        strict=strict,
        confirmed=strict and not check,
        created_by=by,
    )
    _start(results_import, wait=wait)
    return results_import


def import_confirm(results_import: ResultsImport, *, wait: bool = False) -> None:
    """Import a file if it is checked, immediately if it is small, else by a worker. With `wait`, the caller runs the
    job itself."""
    checked = ResultsImport.objects.filter(pk=results_import.pk, state=ResultsImportState.CHECKED)
    if checked.update(state=ResultsImportState.IMPORTING, **_NOTHING_READ):
        _start(results_import, wait=wait)


def _start(results_import: ResultsImport, *, wait: bool = False) -> None:
    few = results_import.size <= AT_ONCE and results_import.version.valid_rows <= FEW_ROWS
    jobs.request(JOB, results_import.pk, here=wait or few)
    if few and not wait:
        jobs.run(JOB, results_import.pk)
        results_import.refresh_from_db()


def import_discard(results_import: ResultsImport) -> bool:
    """Delete a checked file without importing it. False if it is in progress or was imported."""
    begun = jobs.ids(JOB, Job.State.WORKING)
    waits = Q(state=ResultsImportState.CHECKED) | Q(state=ResultsImportState.CHECKING) & ~Q(pk__in=begun)
    if not ResultsImport.objects.filter(waits, pk=results_import.pk).delete()[0]:
        return False
    jobs.cancel(JOB, results_import.pk)
    files.delete(results_import.stored_as)
    return True


def _failed(hold: Hold, results_import: ResultsImport, error: Exception) -> None:
    """Store the error and roll back what was imported."""
    if isinstance(error, NotResults | NotUsable):
        _end(hold, results_import, error.code, error.params)
    else:
        _end(
            hold,
            results_import,
            NAME_TAKEN if isinstance(error, ValidationError) else hold.problem(error),
            {},
        )


@jobs.job(JOB, ResultsImport, failed=_failed)
def import_results(
    hold: Hold,
    results_import: ResultsImport,
    refused: list[RefusedLine] | None = None,
    warnings: list[LeftOut] | None = None,
) -> None:
    """Check or import a file, or continue doing so. All refused lines are added to `refused`, of which the import
    itself stores only the first; what was taken from another tool's file with a warning is added to `warnings`."""
    task = _Import(hold, results_import, refused, warnings)
    if results_import.state == ResultsImportState.CHECKING:
        _check(task)
    elif results_import.state == ResultsImportState.IMPORTING:
        _import(task)


@dataclass(frozen=True, slots=True)
class _Import:
    """An import that this process works on."""

    hold: Hold
    row: ResultsImport
    refused: list[RefusedLine] | None
    warnings: list[LeftOut] | None

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """The results file, or another tool's file as one; what is left out of that counts as refused."""
        row = self.row
        with results_file(files.local(row.stored_as), row.file_name, row.version) as (path, left_out):
            if self.warnings is not None:
                self.warnings[:] = [entry for entry in left_out if not is_record(entry.code)]
            lines = [
                RefusedLine(entry.place.line or 0, entry.code, LEFT_OUT)
                for entry in left_out
                if is_record(entry.code)
            ]
            if row.line == 0:
                self.hold.store(row, **_NOTHING_READ)
                self.hold.store(row, **self._with_refused(lines))
            yield path

    def store_part(self, part: CheckedPart) -> None:
        results_import = self.row
        self.hold.store(
            results_import,
            line=part.line,
            new=results_import.new + len(part.new),
            same=results_import.same + part.same,
            **self._with_refused(part.refused),
        )

    def _with_refused(self, lines: Sequence[RefusedLine]) -> dict[str, Any]:
        """The fields about refused lines, with these added."""
        row = self.row
        if self.refused is not None:
            self.refused.extend(lines)
        listed = [[entry.line, entry.code, entry.params] for entry in lines[: LISTED - len(row.listed)]]
        return {
            "refused": row.refused + len(lines),
            "codes": Counter(row.codes) + Counter(entry.code for entry in lines),
            "listed": row.listed + listed,
        }


def _check(task: _Import) -> None:
    """Check a file from the beginning, even after a worker died, since checking writes no verdicts."""
    results_import = task.row
    task.hold.store(results_import, **_NOTHING_READ)
    run = run_to_extend(results_import.project, results_import.version, results_import.name)
    with task.opened() as path:
        definitions, summary = definitions_of(path, run), VerdictSummary()
        for part in parts(path, Answers(results_import.version), run, definitions):
            summary.add(part)
            task.store_part(part)
            task.hold.pause()
    task.hold.store(
        results_import,
        last_line=results_import.line,
        run=run,
        metrics={
            name: {
                "kind": definition.gives,
                "scale": [definition.min_score, definition.max_score] if definition.scale_declared else None,
                "verdicts": summary.metrics[name],
            }
            for name, definition in definitions.items()
        },
        sources=[[kind, name, count] for (kind, name), count in summary.sources.most_common()],
        models_found=dict(summary.models.most_common()),
        state=ResultsImportState.CHECKED,
    )
    if results_import.strict and results_import.refused:
        _end(task.hold, results_import, REFUSED, {})
    elif results_import.confirmed:
        task.hold.store(results_import, state=ResultsImportState.IMPORTING, **_NOTHING_READ)
        _import(task)


def _import(task: _Import) -> None:
    results_import = task.row
    before = ResultsImport.objects.filter(
        version=results_import.version_id, name=results_import.name, pk__lt=results_import.pk
    )
    if before.filter(state=ResultsImportState.IMPORTING).exists():
        raise WorkStopped  # imports into one run are sequential; this one is retried
    run = results_import.run or run_to_extend(
        results_import.project, results_import.version, results_import.name
    )
    answers, stored = Answers(results_import.version), ImportedVerdicts(run) if run else None
    with task.opened() as path:
        definitions = definitions_of(path, run)
        for part in parts(path, answers, run, definitions):
            if part.line <= results_import.line:
                continue  # stored before another worker died
            with transaction.atomic():
                if part.new:
                    stored = stored or ImportedVerdicts(_create_run(task))
                    _hold(task, stored)
                    stored.add(answers.with_references(part.new), definitions)
                task.store_part(part)
            task.hold.pause()
    with transaction.atomic():
        if results_import.new and stored is not None:
            _finish(task, stored.run)
        task.hold.store(
            results_import,
            state=ResultsImportState.DONE,
            last_line=results_import.line,
            ended_at=timezone.now(),
        )
        task.hold.finish()
    files.delete(results_import.stored_as)


def _create_run(task: _Import) -> Run:
    results_import = task.row
    version_lock(results_import.version)
    run = Run.objects.create(
        project=results_import.project,
        name=results_import.name,
        version=results_import.version,
        kind=IMPORTED,
        bad_rows_left_out=results_import.version.bad_rows,
        created_by=results_import.created_by,
        started_at=timezone.now(),
    )
    task.hold.store(results_import, run=run, first_position=0)
    return run


def _hold(task: _Import, stored: ImportedVerdicts) -> None:
    """Lock the run, and remember the position of its first new judgement."""
    stored.run = Run.objects.select_for_update().get(pk=stored.run.pk)
    if task.row.first_position is None:
        task.hold.store(task.row, run=stored.run, first_position=stored.run.total)


def _finish(task: _Import, run: Run) -> None:
    settle_orders(run)
    Run.objects.filter(pk=run.pk).update(
        state=RunState.FINISHED,
        finished_at=timezone.now(),
        rows=run.judgements.values("row").distinct().count(),
    )
    record(
        Action.RESULTS_IMPORTED,
        project=task.row.project,
        thing=run,
        by=task.row.created_by,
        file=task.row.file_name,
        verdicts=task.row.new,
    )
    run_stopped(run.pk)


def _end(hold: Hold, results_import: ResultsImport, problem: str, params: dict[str, str]) -> None:
    with transaction.atomic():
        if results_import.run is not None and results_import.first_position is not None:
            _roll_back(results_import.run, results_import.first_position)
        hold.store(
            results_import,
            state=ResultsImportState.FAILED,
            problem=problem,
            problem_params=params,
            ended_at=timezone.now(),
            new=0,
        )
        hold.finish()
    files.delete(results_import.stored_as)


def _roll_back(run: Run, first: int) -> None:
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


def file_problem(code: str, params: dict[str, str]) -> str:
    """Why a file was not imported; '' without a problem."""
    if code in FILE_PROBLEMS:
        return translated(FILE_PROBLEMS[code], params)
    return not_usable_sentence(code, params) if code else ""
