"""An interrupted import continues; a failed one leaves nothing behind."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import Version
from evalsite.accounts.models import Project
from evalsite.storage import files
from evalsite.tasks import jobs
from judging.records.models import Judgement, Run
from judging.transfer.results_import import checking
from judging.transfer.results_import.models import ResultsImport
from judging.transfer.results_import.services import import_begin, import_confirm
from tests.judging.importing import imported, results_file, verdict
from tests.make import a_version
from tests.working import StopsAfter

pytestmark = pytest.mark.django_db
ROWS = 30


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project, rows=ROWS)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "BATCH", 10)


def begun(version: Version, folder: Path, *, name: str = "elsewhere") -> ResultsImport:
    """A checked and confirmed import with one verdict per row and model."""
    lines = [verdict(line, model) for line in range(1, ROWS + 1) for model in ("alpha", "beta")]
    text = results_file(folder, lines).read_bytes()
    taken = import_begin(
        version=version, name=name, file=BytesIO(text), file_name="r.jsonl", by=None, wait=True
    )
    jobs.run("import_results", taken.pk)
    import_confirm(taken, wait=True)
    return taken


def positions(run: Run) -> list[int]:
    return list(run.judgements.order_by("position").values_list("position", flat=True))


def test_a_worker_that_is_stopped_loses_nothing(
    version: Version, tmp_path: Path, small_batches: None
) -> None:
    taken = begun(version, tmp_path)
    jobs.run("import_results", taken.pk, StopsAfter(3))
    assert Run.objects.get().total == 30
    jobs.run("import_results", taken.pk)
    run = Run.objects.get()
    assert (run.total, run.scored, run.rows, run.state) == (60, 60, ROWS, "finished")
    assert positions(run) == list(range(60))
    assert ResultsImport.objects.get().new == 60


def test_an_import_of_a_dead_process_is_resumed(version: Version, tmp_path: Path) -> None:
    taken = begun(version, tmp_path)
    assert jobs.claim("import_results", taken.pk, owner="elsewhere:1:1")
    jobs.reconcile()
    jobs.run("import_results", taken.pk)
    assert Run.objects.get().total == 60


def test_while_it_is_imported_no_worker_plans_the_run(
    version: Version, tmp_path: Path, small_batches: None
) -> None:
    from judging.engine.chunks import has_waiting_work
    from judging.engine.run_worker import runs_to_work_on

    jobs.run("import_results", begun(version, tmp_path).pk, StopsAfter(2))
    assert Run.objects.get().state == "planning"
    assert not has_waiting_work()
    assert runs_to_work_on("", None) == set()


def test_a_file_that_is_gone_takes_its_run_with_it(
    version: Version, tmp_path: Path, small_batches: None
) -> None:
    taken = begun(version, tmp_path)
    jobs.run("import_results", taken.pk, StopsAfter(2))
    files.delete(taken.stored_as)
    jobs.run("import_results", taken.pk)
    taken.refresh_from_db()
    assert (taken.state, taken.problem) == ("failed", "gone")
    assert not Run.objects.exists()
    assert not Judgement.objects.exists()


def test_what_was_there_before_stays_when_a_further_file_fails(
    version: Version, tmp_path: Path, small_batches: None
) -> None:
    run = imported(
        version, tmp_path, *(verdict(1, repeat=2), verdict(2, value=None, state="error", repeat=2))
    )
    taken = begun(version, tmp_path)
    jobs.run("import_results", taken.pk, StopsAfter(3))
    assert Run.objects.get().total == 32
    files.delete(taken.stored_as)
    jobs.run("import_results", taken.pk)
    run.refresh_from_db()
    assert (run.total, run.scored, run.errors, run.judgements.count()) == (2, 1, 1, 2)


def test_another_import_of_the_same_name_waits_for_the_first(
    version: Version, tmp_path: Path, small_batches: None
) -> None:
    first, second = begun(version, tmp_path), begun(version, tmp_path)
    jobs.run("import_results", first.pk, StopsAfter(2))
    jobs.run("import_results", second.pk)
    assert ResultsImport.objects.get(pk=second.pk).state == "importing"
    for one in (first, second):
        jobs.run("import_results", one.pk)
    assert Run.objects.get().total == 60
    assert ResultsImport.objects.get(pk=second.pk).same == 60


def test_the_number_of_queries_does_not_grow_with_the_lines_of_a_batch(
    version: Version, tmp_path: Path
) -> None:
    counts = []
    for lines in (2, 12):
        with CaptureQueriesContext(connection) as queries:
            imported(version, tmp_path, *(verdict(line) for line in range(1, lines + 1)), name=f"of {lines}")
        counts.append(len(queries))
    assert counts[0] == counts[1]
