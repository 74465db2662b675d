import re
import threading
from contextlib import suppress

import pytest
from django.db import connection

from evalsite.accounts.members import LastAdministrator, members_of, roles_set
from evalsite.accounts.models import Membership, Project, Role, User
from tests.conftest import ClientOf, person

PEOPLE = "/p/physics/people/"


def roles_of(user: User, project: Project) -> set[str]:
    return set(Membership.objects.filter(user=user, project=project).values_list("role", flat=True))


@pytest.mark.parametrize(
    ("name", "status"), [("adam", 200), ("olga", 200), ("alice", 403), ("rita", 403), ("charlie", 404)]
)
def test_only_administrators_look_after_people(
    name: str, status: int, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert client_of(cast[name]).get(PEOPLE).status_code == status


def test_someone_with_an_account_is_added(
    client_of: ClientOf, adam: User, charlie: User, project: Project
) -> None:
    client_of(adam).post(PEOPLE + "add/", {"add-username": "charlie", "add-roles": ["rater", "reviewer"]})
    assert roles_of(charlie, project) == {"rater", "reviewer"}


def test_adding_a_member_again_keeps_the_roles_held(
    client_of: ClientOf, adam: User, alice: User, project: Project
) -> None:
    client_of(adam).post(PEOPLE + "add/", {"add-username": "alice", "add-roles": ["rater"]})
    assert roles_of(alice, project) == {"analyst", "rater"}


def test_a_name_that_nobody_has_is_reported(client_of: ClientOf, adam: User) -> None:
    page = client_of(adam).post(PEOPLE + "add/", {"add-username": "nobody", "add-roles": ["rater"]})
    assert page.status_code == 422
    assert "No user named nobody" in page.text


def test_a_new_account_signs_in_with_the_password_shown(client_of: ClientOf, adam: User) -> None:
    page = client_of(adam).post(
        PEOPLE + "new/", {"new-username": "dora", "new-name": "Dora", "new-roles": ["analyst"]}
    )
    shown = re.search(r'<code id="one-time">(.+?)</code>', page.text)
    assert shown
    assert User.objects.get(username="dora").check_password(shown[1])
    assert page.headers["Cache-Control"] == "private, no-store"


def test_the_password_is_shown_only_once(client_of: ClientOf, adam: User) -> None:
    client = client_of(adam)
    client.post(PEOPLE + "new/", {"new-username": "dora", "new-roles": ["analyst"]})
    assert "one-time" not in client.get(PEOPLE).text


def test_a_taken_name_is_refused_whatever_its_case(client_of: ClientOf, adam: User, alice: User) -> None:
    page = client_of(adam).post(PEOPLE + "new/", {"new-username": "Alice", "new-roles": ["analyst"]})
    assert page.status_code == 422
    assert not User.objects.filter(username="Alice").exists()


def test_roles_are_changed(client_of: ClientOf, adam: User, rita: User, project: Project) -> None:
    client_of(adam).post(f"{PEOPLE}{rita.pk}/roles/", {"roles": ["analyst"]})
    assert roles_of(rita, project) == {"analyst"}


def test_a_member_without_any_role_must_be_removed_on_purpose(
    client_of: ClientOf, adam: User, rita: User, project: Project
) -> None:
    client_of(adam).post(f"{PEOPLE}{rita.pk}/roles/", {})
    assert roles_of(rita, project) == {"rater"}


def test_who_is_removed_keeps_the_account(
    client_of: ClientOf, adam: User, rita: User, project: Project
) -> None:
    client_of(adam).post(f"{PEOPLE}{rita.pk}/remove/")
    assert roles_of(rita, project) == set()
    assert User.objects.filter(pk=rita.pk, is_active=True).exists()


def test_the_last_administrator_cannot_go(adam: User, project: Project) -> None:
    with pytest.raises(LastAdministrator):
        roles_set(project=project, user=adam, roles=[Role.ANALYST])
    assert roles_of(adam, project) == {"admin"}


def test_members_of_other_projects_are_out_of_reach(client_of: ClientOf, adam: User, charlie: User) -> None:
    assert client_of(adam).post(f"{PEOPLE}{charlie.pk}/remove/").status_code == 404


def test_a_member_appears_once_with_all_roles_in_order(alice: User, project: Project) -> None:
    Membership.objects.create(user=alice, project=project, role=Role.REVIEWER)
    assert [m.roles for m in members_of(project)] == [("analyst", "reviewer")]


def test_only_superusers_create_projects(client_of: ClientOf, adam: User, olga: User) -> None:
    assert client_of(adam).post("/projects/new/", {"name": "Law"}).status_code == 403
    assert client_of(olga).post("/projects/new/", {"name": "Law"}).headers["Location"] == "/p/law/"


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_remove_each_other_at_once_leave_one(project: Project) -> None:
    pair = [person("ada"), person("ben")]
    for user in pair:
        Membership.objects.create(user=user, project=project, role=Role.ADMIN)
    start = threading.Barrier(2)

    def remove(user: User) -> None:
        start.wait()
        with suppress(LastAdministrator):
            roles_set(project=project, user=user, roles=[])
        connection.close()

    threads = [threading.Thread(target=remove, args=(user,)) for user in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Membership.objects.filter(project=project, role=Role.ADMIN).count() == 1
