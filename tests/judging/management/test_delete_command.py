"""`manage.py delete` prints what goes with an object, and deletes it with --yes."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from datasets.models import Dataset, Version
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.records.models import Judgement, Run
from tests.judging.deletion.whole import an_evaluation_with_ratings
from tests.judging.judged import JUDGE_URL, a_judged_run
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db


def deleted(kind: str, name: str, **options: bool) -> tuple[dict[str, Any], int, str]:
    """Run the command with --json; return its document, exit status and error message."""
    out = StringIO()
    try:
        call_command("delete", kind, name, json=True, stdout=out, **options)
    except CommandError as error:
        return json.loads(out.getvalue() or "{}"), error.returncode, str(error)
    return json.loads(out.getvalue()), 0, ""


def test_nothing_changes_without_yes(project: Project) -> None:
    run = a_judged_run(project)
    document, status, said = deleted("run", run.name)
    assert (document, status) == ({"deleted": None, "with": {"judgements": 6}}, 1)
    assert said == "Nothing was deleted. Add --yes to delete it."
    assert Run.objects.filter(pk=run.pk, name=run.name).exists()
    assert not AuditEntry.objects.filter(action="run.deleted").exists()


@pytest.mark.parametrize("by_number", [False, True])
def test_a_run_is_deleted_by_name_or_number(project: Project, by_number: bool) -> None:
    run = a_judged_run(project)
    document, status, _said = deleted("run", str(run.pk) if by_number else run.name, yes=True)
    assert (document, status) == ({"deleted": run.name, "with": {"judgements": 6}}, 0)
    assert not Run.all_objects.exists()
    assert not Judgement.objects.exists()
    assert AuditEntry.objects.filter(action="run.deleted", name=run.name).count() == 1


def test_a_run_at_work_is_refused(project: Project) -> None:
    a_run(a_version(project), a_metric(JUDGE_URL), name="busy")
    document, status, said = deleted("run", "busy", yes=True)
    assert (document["deleted"], status) == (None, 1)
    assert said.startswith("Running: “busy”")


@pytest.mark.parametrize("name", ["{}:1", "{} v1", "{}@1", "{}/1", "{}"])
def test_a_version_has_the_name_of_its_data_set_and_a_number(project: Project, name: str) -> None:
    version = a_version(project)
    document, status, _said = deleted("version", name.format(version.dataset.name), yes=True)
    assert (document["deleted"], status) == (f"{version.dataset.name} v1", 0)
    assert not Version.all_objects.exists()


@pytest.mark.parametrize("kind", ["version", "dataset"])
def test_what_a_run_uses_is_refused_without_with_runs(project: Project, kind: str) -> None:
    run = a_judged_run(project)
    name = run.version.dataset.name
    document, status, said = deleted(kind, name, yes=True)
    assert (document["deleted"], document["with"]["runs"], status) == (None, 1, 1)
    assert "--with-runs" in said
    document, status, _said = deleted(kind, name, yes=True, with_runs=True)
    assert (document["with"]["judgements"], status) == (6, 0)
    assert not Run.all_objects.exists()


def test_an_evaluation_and_a_project_are_deleted(project: Project, rita: User) -> None:
    run = an_evaluation_with_ratings(a_version(project), rita, a_judged_run(project)).run
    document, status, _said = deleted("evaluation", run.name, yes=True)
    assert (document["deleted"], document["with"]["ratings"] > 0, status) == (run.name, True, 0)
    document, status, _said = deleted("project", project.slug, yes=True)
    assert (document["with"]["runs"], document["with"]["datasets"], status) == (1, 2, 0)
    assert not Project.all_objects.filter(pk=project.pk).exists()


def test_it_says_if_there_is_none_or_several(project: Project) -> None:
    names = []
    for one in (project, a_project("Chemistry")):
        names.append(a_version(one).dataset)
    Dataset.objects.update(name="same")
    assert deleted("dataset", "nobody", yes=True)[1:] == (
        2,
        "There is no dataset called nobody in this DATA_DIR.",
    )
    numbers = ", ".join(str(one.pk) for one in names)
    assert (
        deleted("dataset", "same", yes=True)[2]
        == f"Several are called same. Name one by its number: {numbers}."
    )
    assert deleted("dataset", str(names[0].pk), yes=True)[1] == 0


def test_words_are_printed_without_json(project: Project) -> None:
    run, out = a_judged_run(project), StringIO()
    call_command("delete", "run", run.name, yes=True, stdout=out)
    assert out.getvalue() == f"run {run.name}\n  6 judgements\nDeleted.\n"
