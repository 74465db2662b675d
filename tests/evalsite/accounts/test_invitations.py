"""Invitation links: created, opened with and without an account, used once, revoked, expired."""

import re
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from evalsite.accounts.invitations import (
    NoInvitation,
    invitation_accept,
    invitation_create,
    invitation_revoke,
)
from evalsite.accounts.models import Invitation, Membership, Project, User
from tests.conftest import ClientOf, person

PEOPLE = "/p/physics/people/"
NEW = "a quite good password"
JOINING = {"username": "dora", "first_name": "Dora", "password1": NEW, "password2": NEW}


@pytest.fixture
def secret(adam: User, project: Project) -> str:
    return invitation_create(project=project, roles=["rater"], note="Dora", days=7, by=adam)[1]


def roles_of(user: User) -> set[str]:
    return set(Membership.objects.filter(user=user, project__slug="physics").values_list("role", flat=True))


def test_the_link_is_shown_once_and_kept_nowhere(client_of: ClientOf, adam: User) -> None:
    client = client_of(adam)
    page = client.post(
        PEOPLE + "invite/", {"invite-note": "Dora", "invite-days": "7", "invite-roles": ["rater"]}
    )
    shown = re.search(r"/join/([\w-]+)/", page.text)
    assert shown
    assert page.headers["Cache-Control"] == "private, no-store"
    assert shown[1] not in client.get(PEOPLE).text
    assert shown[1] not in str(Invitation.objects.values().get())


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("bob", 403), ("rita", 403), ("charlie", 404)])
def test_only_administrators_invite(
    name: str, status: int, cast: dict[str, User], client_of: ClientOf
) -> None:
    wanted = {"invite-note": "x", "invite-days": "7", "invite-roles": ["admin"]}
    assert client_of(cast[name]).post(PEOPLE + "invite/", wanted).status_code == status
    assert not Invitation.objects.exists()


def test_someone_without_an_account_makes_one_and_is_in(client: Client, secret: str) -> None:
    answer = client.post(f"/join/{secret}/", JOINING)
    assert answer.headers["Location"] == "/p/physics/"
    assert roles_of(User.objects.get(username="dora")) == {"rater"}
    assert client.get("/p/physics/").status_code == 200


def test_someone_with_an_account_keeps_the_roles_held(client_of: ClientOf, alice: User, secret: str) -> None:
    client_of(alice).post(f"/join/{secret}/")
    assert roles_of(alice) == {"analyst", "rater"}


def test_looking_at_the_link_uses_nothing_up(client: Client, secret: str) -> None:
    assert "You're invited to Physics" in client.get(f"/join/{secret}/").text
    assert Invitation.objects.get().used_at is None


def test_a_link_lets_in_one_person(client: Client, client_of: ClientOf, charlie: User, secret: str) -> None:
    client.post(f"/join/{secret}/", JOINING)
    page = client_of(charlie).post(f"/join/{secret}/")
    assert page.status_code == 404
    assert roles_of(charlie) == set()


def test_a_second_click_of_the_same_person_leads_to_the_project(
    client_of: ClientOf, charlie: User, secret: str
) -> None:
    client = client_of(charlie)
    client.post(f"/join/{secret}/")
    assert client.post(f"/join/{secret}/").headers["Location"] == "/p/physics/"
    assert Membership.objects.filter(user=charlie, project__slug="physics").count() == 1


def test_a_revoked_link_admits_nobody_and_names_nothing(client: Client, secret: str) -> None:
    invitation_revoke(invitation=Invitation.objects.get())
    page = client.get(f"/join/{secret}/")
    assert page.status_code == 404
    assert "Physics" not in page.text


def test_a_link_ends_by_itself(client: Client, secret: str) -> None:
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.post(f"/join/{secret}/", JOINING).status_code == 404
    assert not User.objects.filter(username="dora").exists()


@pytest.mark.parametrize("secret", ["x", "%00", "'--", "..%2f..", "a" * 3000, "\u8bc4"])
def test_a_made_up_link_lets_nobody_in(client: Client, db: None, secret: str) -> None:
    assert client.get(f"/join/{secret}/").status_code == 404


def test_a_weak_password_is_refused_and_the_link_stays_good(client: Client, secret: str) -> None:
    page = client.post(f"/join/{secret}/", {**JOINING, "password1": "1234", "password2": "1234"})
    assert page.status_code == 422
    assert Invitation.objects.get().used_at is None


def test_a_taken_name_is_refused_whatever_its_case(client: Client, alice: User, secret: str) -> None:
    assert client.post(f"/join/{secret}/", {**JOINING, "username": "ALICE"}).status_code == 422


def test_an_invitation_of_another_project_can_not_be_revoked(
    client_of: ClientOf, charlie: User, secret: str
) -> None:
    pk = Invitation.objects.get().pk
    assert client_of(charlie).post(f"/p/elsewhere/people/invitations/{pk}/revoke/").status_code == 404
    assert Invitation.objects.get().revoked_at is None


def test_joining_asks_for_the_forms_token(alice: User, secret: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(f"/join/{secret}/").status_code == 403


def test_an_archived_project_lets_nobody_in(client: Client, secret: str, project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(archived_at=timezone.now())
    assert client.get(f"/join/{secret}/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_open_a_link_at_once_one_gets_in(adam: User, project: Project) -> None:
    _made, secret = invitation_create(project=project, roles=["rater"], note="x", days=1, by=adam)
    people = [person(f"guest{n}") for n in range(4)]
    start, got_in = threading.Barrier(len(people)), list[User]()

    def accept(user: User) -> None:
        start.wait()
        try:
            invitation_accept(secret=secret, user=user)
            got_in.append(user)
        except NoInvitation:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=accept, args=(user,)) for user in people]
    [thread.start() for thread in threads]  # type: ignore[func-returns-value]
    [thread.join() for thread in threads]  # type: ignore[func-returns-value]
    assert len(got_in) == 1
    assert Membership.objects.filter(user__in=people).count() == 1
