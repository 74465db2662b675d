"""Deleting removes an object with all that belongs to it, and nothing else."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ValidationError
from django.db import connection

from datasets.models import Candidate, Dataset, Response, RowEdit, Version, VersionState
from datasets.services import next_number, version_read_as
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from evalsite.tasks import jobs
from judging.deletion import rows
from judging.deletion.kinds import contents
from judging.deletion.models import Deletion
from judging.deletion.services import delete_begin
from judging.engine import chunks, planning, stopping
from judging.engine.candidates import source_of
from judging.engine.write_buffer import WriteBatch, write
from judging.records.models import Judgement, Run, RunCandidate
from tests.judging.deletion.whole import (
    a_run_with_everything,
    a_version_with_file,
    an_evaluation_with_ratings,
    compared,
    counts,
    differences,
    files,
    remove_all,
)
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.make import a_candidate, a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_data_dir(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def gone(kind: str, thing: Project | Dataset | Version | Run, **options: bool) -> None:
    delete_begin(kind=kind, thing=thing, **options)
    remove_all()
    connection.check_constraints()


def test_a_run_goes_with_all_that_belongs_to_it(project: Project, adam: User) -> None:
    version = a_version_with_file(project, "physics")
    other = a_run_with_everything(version, adam)
    before = counts()
    run = a_run_with_everything(version, adam)
    compared(other, run)
    compared(run, other)
    gone("run", run)
    assert counts() == before


def test_an_evaluation_goes_with_its_items_and_ratings(project: Project, adam: User) -> None:
    version = a_version_with_file(project, "physics")
    run = a_judged_run(project)
    an_evaluation_with_ratings(version, adam)
    before = counts()
    for evaluation in (
        an_evaluation_with_ratings(version, adam),
        an_evaluation_with_ratings(run.version, adam, run),
    ):
        gone("evaluation", evaluation.run)
    assert counts() == before


def test_a_version_goes_with_its_rows_files_and_runs(project: Project, adam: User, tmp_path: Path) -> None:
    kept = a_version_with_file(project, "physics")
    before, files_before = counts(), files(tmp_path)
    version = a_version_with_file(project, "physics")
    assert version.dataset_id == kept.dataset_id
    run = a_run_with_everything(version, adam)
    an_evaluation_with_ratings(version, adam, run)
    an_evaluation_with_ratings(version, adam)
    differences(kept, version)
    gone("version", version, with_runs=True)
    hidden = {"Version": 1}  # the empty version 0
    assert counts() == {name: count + hidden.get(name, 0) for name, count in before.items()}
    assert files(tmp_path) == files_before


def test_a_data_set_goes_with_all_of_its_versions(project: Project, adam: User, tmp_path: Path) -> None:
    a_version_with_file(project, "chemistry")
    before, files_before = counts(), files(tmp_path)
    version = a_version_with_file(project, "physics")
    an_evaluation_with_ratings(version, adam)
    version_read_as(version=version, chosen_format="judge_only", user=None)
    Version.objects.filter(state=VersionState.WAITING).update(state=VersionState.CANCELLED)
    gone("dataset", version.dataset, with_runs=True)
    assert counts() == before
    assert files(tmp_path) == files_before


def test_a_project_goes_with_everything_in_it(charlie: User, tmp_path: Path) -> None:
    before, files_before = counts(), files(tmp_path)
    project = a_project("Doomed")
    version = a_version_with_file(project, "physics")
    run = a_run_with_everything(version, charlie)
    an_evaluation_with_ratings(version, charlie, run)
    a_version_with_file(project, "chemistry")
    gone("project", project)
    assert counts() == before
    assert files(tmp_path) == files_before


def test_answers_that_a_run_generated_go_with_it(project: Project) -> None:
    version = a_version(project)
    before = counts()
    run = a_run(version, a_metric(JUDGE_URL), candidates=[], candidate_models=[a_candidate(JUDGE_URL)])
    planning.plan(run.pk)
    assert Candidate.objects.filter(source=source_of(run)).exists()
    stopping.run_cancel(run)
    gone("run", run)
    assert counts() == before


def test_generated_answers_that_an_evaluation_uses_are_kept(project: Project) -> None:
    run = a_run(
        a_version(project), a_metric(JUDGE_URL), candidates=[], candidate_models=[a_candidate(JUDGE_URL)]
    )
    planning.plan(run.pk)
    stopping.run_cancel(run)
    used = Candidate.objects.get(source=source_of(run))
    RunCandidate.objects.create(run=a_judged_run(project), candidate=used)
    gone("run", run)
    assert Response.objects.filter(candidate=used).count() == 3


def test_a_run_at_work_is_kept(project: Project) -> None:
    run = a_run(a_version(project), a_metric(JUDGE_URL), name="busy")
    with pytest.raises(ValidationError, match="Running: “busy”"):
        delete_begin(kind="run", thing=run)
    assert Run.objects.filter(pk=run.pk, name="busy").exists()


@pytest.mark.parametrize("kind", ["version", "dataset"])
def test_what_a_run_uses_is_kept_unless_the_run_may_go_too(project: Project, kind: str) -> None:
    run = a_judged_run(project)
    thing: Any = run.version if kind == "version" else run.version.dataset
    with pytest.raises(ValidationError, match=f"Used by runs or evaluations: “{run.name}”"):
        delete_begin(kind=kind, thing=thing)
    gone(kind, thing, with_runs=True)
    assert not Run.all_objects.exists()


def test_a_version_that_is_being_read_or_made_from_is_kept(project: Project) -> None:
    version = a_version_with_file(project, "physics")
    version_read_as(version=version, chosen_format="judge_only", user=None)
    with pytest.raises(ValidationError, match="Being read: “physics v2”"):
        delete_begin(kind="version", thing=version)


def test_what_is_deleted_is_hidden_before_it_is_removed(project: Project) -> None:
    run = a_judged_run(project)
    name = run.name
    delete_begin(kind="version", thing=run.version, with_runs=True)
    assert (Run.objects.count(), Version.objects.count(), Judgement.objects.count()) == (0, 0, 6)
    assert a_run(a_version(project), a_metric(JUDGE_URL), name=name).name == name


def test_whoever_deletes_second_is_told(project: Project) -> None:
    run = a_judged_run(project)
    delete_begin(kind="run", thing=run)
    with pytest.raises(ValidationError, match="was already deleted"):
        delete_begin(kind="run", thing=run)
    assert AuditEntry.objects.filter(action="run.deleted").count() == 1


def test_no_run_begins_over_a_deleted_version(project: Project) -> None:
    version = a_version(project)
    delete_begin(kind="version", thing=version)
    with pytest.raises(ValidationError, match="This version was deleted"):
        a_run(version, a_metric(JUDGE_URL))


def test_the_number_of_a_deleted_version_is_not_used_again(project: Project) -> None:
    a_version_with_file(project, "physics")
    version = a_version_with_file(project, "physics")
    gone("version", version)
    assert next_number(version.dataset) == 3


def test_a_file_that_another_version_uses_is_kept(project: Project, tmp_path: Path) -> None:
    version = a_version_with_file(project, "physics")
    other = version_read_as(version=version, chosen_format="judge_only", user=None)
    Version.objects.filter(pk=other.pk).update(state=VersionState.READY)
    gone("version", version)
    other.refresh_from_db()
    assert (other.parent_id, other.file_is_kept) == (None, True)
    gone("version", other)
    assert not files(tmp_path)


def test_edits_of_a_deleted_version_are_no_draft_again(project: Project) -> None:
    version, made = a_version_with_file(project, "physics"), a_version_with_file(project, "physics")
    edit = RowEdit.objects.create(version=version, line=1, number=1, before="", text="", new_version=made)
    gone("version", made)
    edit.refresh_from_db()
    assert not edit.is_open


def test_replies_that_arrive_later_are_dropped(project: Project) -> None:
    run = a_run(a_version(project), a_metric(JUDGE_URL))
    planning.plan(run.pk)
    leased = chunks.lease(run.pk, "test:1:1")
    assert leased is not None
    items = chunks.load(leased, "judge_only")
    stopping.run_pause(run)
    gone("run", run)
    write(WriteBatch([chunks.Judged(item, said(7)) for item in items], finished={leased.chunk}), "test:1:1")
    assert not Judgement.objects.exists()


def test_another_worker_goes_on_after_a_stopped_one(project: Project) -> None:
    run = a_judged_run(project, rows=3)
    deletion, stopped = delete_begin(kind="run", thing=run), threading.Event()
    stopped.set()
    jobs.run("remove_deleted", deletion.pk, stopped)
    assert Deletion.objects.exists()
    remove_all()
    assert not Deletion.objects.exists()
    assert not Judgement.objects.exists()


def test_deletions_of_a_dead_worker_are_released(project: Project) -> None:
    deletion = delete_begin(kind="run", thing=a_judged_run(project))
    assert jobs.claim("remove_deleted", deletion.pk, owner="elsewhere:1:1")
    jobs.reconcile()
    remove_all()
    assert not Deletion.objects.exists()


def test_rows_are_deleted_in_batches(project: Project) -> None:
    run = a_judged_run(project, rows=5)
    rests: list[int] = []
    rows.in_batches(
        run.judgements.all(), lambda: rests.append(1), rows.delete_judgements, along="position", batch=4
    )
    assert (len(rests), Judgement.objects.count()) == (2, 0)


def test_the_audit_log_says_what_went_with_it(project: Project, adam: User) -> None:
    run = a_judged_run(project)
    name, judgements = run.name, contents("run", run.pk)["judgements"]
    delete_begin(kind="dataset", thing=run.version.dataset, by=adam, with_runs=True)
    entries = AuditEntry.objects.filter(action__in=("dataset.deleted", "run.deleted")).order_by("pk")
    whole, one = entries
    assert (whole.actor_name, whole.name) == ("adam", run.version.dataset.name)
    assert (whole.detail["judgements"], whole.detail["runs"], judgements) == (6, 1, 6)
    assert (one.name, one.detail) == (name, {"together_with": run.version.dataset.name})
