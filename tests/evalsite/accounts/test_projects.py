"""Projects: rename, archive, restore."""

import pytest
from django.utils import timezone

from evalsite.accounts.models import Project, User
from evalsite.accounts.services import project_rename
from evalsite.archiving import archive, restore
from evalsite.audit import Action
from evalsite.models import AuditEntry
from tests.conftest import ClientOf

SETTINGS = "/p/physics/settings/"


@pytest.mark.parametrize(("name", "status"), [("adam", 200), ("alice", 403), ("rita", 403), ("charlie", 404)])
def test_only_administrators_change_a_project(
    name: str, status: int, cast: dict[str, User], client_of: ClientOf
) -> None:
    client = client_of(cast[name])
    assert client.get(SETTINGS).status_code == status
    assert client.post(SETTINGS + "archive/").status_code == (302 if status == 200 else status)
    assert Project.objects.filter(slug="physics", archived_at=None).exists() == (status != 200)


def test_a_renamed_project_keeps_its_address(client_of: ClientOf, adam: User) -> None:
    client = client_of(adam)
    client.post(SETTINGS, {"name": "Natural science"})
    assert "Natural science" in client.get("/p/physics/").text


def test_an_archived_project_is_out_of_the_lists_and_brought_back(client_of: ClientOf, adam: User) -> None:
    client = client_of(adam)
    client.post(SETTINGS + "archive/")
    assert client.get("/").context["cards"] == []
    assert [p.slug for p in client.get("/").context["archived"]] == ["physics"]
    client.post(SETTINGS + "restore/")
    assert [p.slug for p, _ in client.get("/").context["cards"]] == ["physics"]


def test_an_archived_project_is_closed_to_changes(client_of: ClientOf, alice: User, project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(archived_at=timezone.now())
    assert client_of(alice).get("/p/physics/").status_code == 200
    assert client_of(alice).get("/p/physics/datasets/upload/").status_code == 403


def test_each_change_is_written_down_once(project: Project) -> None:
    assert project_rename(project=project, name="Maths")
    assert [archive(project, Action.PROJECT_ARCHIVED, project) for _ in range(2)] == [True, False]
    assert [restore(project, Action.PROJECT_RESTORED, project) for _ in range(2)] == [True, False]
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == [
        "project.renamed",
        "project.archived",
        "project.restored",
    ]
