"""The page that deletes: for administrators, once the name is typed; what is deleted answers 404."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from evalsite.accounts.models import Project, User
from judging.deletion.models import Deletion
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.deletion.whole import an_evaluation_with_ratings
from tests.judging.judged import JUDGE_URL, a_judged_run
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


def address(kind: str, pk: int, slug: str = "physics") -> str:
    return reverse("deletion:delete", args=[slug, kind, pk])


def things(run: Run) -> dict[str, tuple[int, str]]:
    """{kind: (id, name)}."""
    version = run.version
    return {
        "run": (run.pk, run.name),
        "version": (version.pk, f"{version.dataset.name} v1"),
        "dataset": (version.dataset_id, version.dataset.name),
        "project": (run.project_id, run.project.name),
    }


@pytest.mark.parametrize("kind", ["run", "version", "dataset", "project"])
def test_an_administrator_sees_what_goes_with_it_and_deletes_it(
    project: Project, adam: User, client_of: ClientOf, kind: str
) -> None:
    run = a_judged_run(project)
    pk, name = things(run)[kind]
    page = client_of(adam).get(address(kind, pk)).content.decode()
    assert "6 judgements" in page
    sent = {"name": name} | ({"with_runs": "on"} if kind in ("version", "dataset") else {})
    assert client_of(adam).post(address(kind, pk), sent).status_code == 302
    assert Deletion.objects.filter(kind=kind, object_id=pk).exists()
    for part in ("runs:detail", "runs:report", "runs:judgements"):
        assert client_of(adam).get(reverse(part, args=["physics", run.pk])).status_code == 404
    assert client_of(adam).get(address(kind, pk)).status_code == 404


def test_the_name_must_be_typed(project: Project, adam: User, client_of: ClientOf) -> None:
    run = a_judged_run(project)
    answer = client_of(adam).post(address("run", run.pk), {"name": "something else"})
    assert (answer.status_code, Run.objects.count()) == (422, 1)
    assert "This is not the name." in answer.content.decode()
    assert "Nothing was deleted." in answer.content.decode()


def test_a_version_in_use_needs_a_checkbox(project: Project, adam: User, client_of: ClientOf) -> None:
    run = a_judged_run(project)
    pk, name = things(run)["version"]
    answer = client_of(adam).post(address("version", pk), {"name": name})
    assert (answer.status_code, Run.objects.count()) == (422, 1)
    assert f"Used by runs or evaluations: “{run.name}”" in answer.content.decode()


def test_a_run_at_work_has_no_form(project: Project, adam: User, client_of: ClientOf) -> None:
    run = a_run(a_version(project), a_metric(JUDGE_URL), name="busy")
    page = client_of(adam).get(address("run", run.pk)).content.decode()
    assert "Running: “busy”" in page
    assert 'name="name"' not in page


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("rita", 403), ("charlie", 404)])
def test_nobody_else_deletes(
    project: Project, cast: dict[str, User], client_of: ClientOf, who: str, status: int
) -> None:
    run = a_judged_run(project)
    for kind, (pk, name) in things(run).items():
        assert client_of(cast[who]).get(address(kind, pk)).status_code == status
        assert client_of(cast[who]).post(address(kind, pk), {"name": name}).status_code == status
    assert not Deletion.objects.exists()


def test_nothing_of_another_project_is_deleted(project: Project, charlie: User, client_of: ClientOf) -> None:
    for kind, (pk, name) in things(a_judged_run(project)).items():
        answer = client_of(charlie).post(address(kind, pk, "elsewhere"), {"name": name})
        assert answer.status_code == 404


def test_an_evaluation_is_deleted_as_such_and_no_rater_finds_it(
    project: Project, adam: User, rita: User, client_of: ClientOf
) -> None:
    run = an_evaluation_with_ratings(a_version(project), rita, a_judged_run(project)).run
    assert client_of(adam).get(address("run", run.pk)).status_code == 404
    client_of(adam).post(address("evaluation", run.pk), {"name": run.name})
    desk = client_of(rita).get(reverse("desk:page", args=["physics", run.pk]))
    organiser = client_of(adam).get(reverse("people:detail", args=["physics", run.pk]))
    assert (desk.status_code, organiser.status_code) == (404, 404)


def test_an_archived_run_is_hidden_says_what_it_holds_and_is_restored(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run, client = a_judged_run(project), client_of(alice)
    client.post(reverse("runs:archive", args=["physics", run.pk]))
    assert run.name not in client.get(reverse("runs:list", args=["physics"])).content.decode()
    assert run.name in client.get(reverse("runs:list", args=["physics"]), {"archived": "1"}).content.decode()
    page = client.get(reverse("runs:detail", args=["physics", run.pk])).content.decode()
    assert "It still holds: 6 judgements" in page
    client.post(reverse("runs:restore", args=["physics", run.pk]))
    assert run.name in client.get(reverse("runs:list", args=["physics"])).content.decode()


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_reviewers_and_raters_archive_no_run(
    project: Project, cast: dict[str, User], client_of: ClientOf, who: str
) -> None:
    run = a_judged_run(project)
    assert client_of(cast[who]).post(reverse("runs:archive", args=["physics", run.pk])).status_code == 403


def test_an_archived_data_set_and_project_say_what_they_hold(
    project: Project, adam: User, client_of: ClientOf
) -> None:
    run, client = a_judged_run(project), client_of(adam)
    client.post(reverse("datasets:archive", args=["physics", run.version.dataset_id]))
    page = client.get(reverse("datasets:version", args=["physics", run.version.dataset_id, 1]))
    assert "It still holds: 1 version · 3 rows · 1 run · 6 judgements" in " ".join(
        page.content.decode().replace("&nbsp;", " ").split()
    )
    client.post(reverse("accounts:archive_project", args=["physics"]))
    settings = client.get(reverse("accounts:project_settings", args=["physics"])).content.decode()
    assert "It still holds: 1 data set" in settings


@pytest.mark.parametrize("name", ["runs:list", "people:list"])
def test_the_first_page_of_archived_ones_is_of_archived_ones(
    project: Project, alice: User, rita: User, client_of: ClientOf, name: str
) -> None:
    run = a_judged_run(project)
    an_evaluation_with_ratings(run.version, rita, run)
    Run.objects.update(archived_at=timezone.now())
    page = client_of(alice).get(f"{reverse(name, args=['physics'])}?archived=1&before=999").text
    assert 'rel="prev" href="?archived=1"' in page
