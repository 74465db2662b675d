"""Links that make raters of an evaluation: what they let in, and what they never do."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from evalsite.accounts.invitations import ACCOUNTS_AN_HOUR
from evalsite.accounts.models import Invitation, InvitationUse, Membership, Project, User
from evalsite.models import AuditEntry
from judging.people.assignments import rater_leave
from judging.people.inviting.links import people_needed, person_links_create, study_link_create
from judging.people.models import Evaluation, EvaluationRater
from judging.people.services import evaluation_close
from tests.conftest import ClientOf, person
from tests.judging.people.make import make_evaluation

NEW = "a quite good password"


def joining(name: str) -> dict[str, str]:
    return {"username": name, "first_name": "", "password1": NEW, "password2": NEW}


@pytest.fixture
def evaluation(project: Project) -> Evaluation:
    return make_evaluation(project, rows=3, name="Answers of May")


@pytest.fixture
def secret(evaluation: Evaluation, adam: User) -> str:
    """Of a link for two people."""
    return study_link_create(evaluation=evaluation, most_uses=2, days=7, by=adam)[1]


def link() -> Invitation:
    return Invitation.objects.get()


def roles_of(name: str) -> set[tuple[str, str]]:
    return set(Membership.objects.filter(user__username=name).values_list("project__slug", "role"))


def raters(evaluation: Evaluation) -> set[str]:
    return set(evaluation.raters.filter(left_at=None).values_list("user__username", flat=True))


def test_several_people_join_by_one_link(evaluation: Evaluation, secret: str) -> None:
    for name in ("dora", "emil"):
        answer = Client().post(f"/join/{secret}/", joining(name))
        assert answer.headers["Location"] == f"/p/physics/desk/{evaluation.run_id}/"
    assert raters(evaluation) == {"dora", "emil"}
    assert link().uses == 2


def test_the_page_says_what_one_is_invited_to(client: Client, evaluation: Evaluation, secret: str) -> None:
    Evaluation.objects.update(ends_at=timezone.now() + timedelta(days=3))
    page = client.get(f"/join/{secret}/").text
    assert "You're invited to Answers of May" in page
    assert "at most 3 items, about 2 min" in page
    assert "Deadline" in page


def test_a_link_that_was_used_as_often_as_it_may_lets_nobody_in(
    client: Client, evaluation: Evaluation, secret: str
) -> None:
    Invitation.objects.update(most_uses=500, uses=499)
    client.post(f"/join/{secret}/", joining("dora"))
    page = Client().post(f"/join/{secret}/", joining("emil"))
    assert page.status_code == 404
    assert raters(evaluation) == {"dora"}
    assert not User.objects.filter(username="emil").exists()
    assert (link().uses, link().used_at is not None) == (500, True)


def test_the_same_person_counts_once(client_of: ClientOf, charlie: User, secret: str) -> None:
    client = client_of(charlie)
    first, second = (client.post(f"/join/{secret}/") for _ in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    assert link().uses == 1


@pytest.mark.parametrize("end", ["expires_at", "revoked_at"])
def test_a_shared_link_ends(client: Client, evaluation: Evaluation, secret: str, end: str) -> None:
    Invitation.objects.update(**{end: timezone.now() - timedelta(seconds=1)})
    assert client.get(f"/join/{secret}/").status_code == 404
    assert client.post(f"/join/{secret}/", joining("dora")).status_code == 404
    assert raters(evaluation) == set()


def test_a_shared_link_never_gives_more_than_the_role_rater(client: Client, secret: str) -> None:
    Invitation.objects.update(roles=["admin"])
    client.post(f"/join/{secret}/", joining("dora"))
    assert roles_of("dora") == {("physics", "rater")}


def test_a_shared_link_joins_its_own_evaluation_only(
    client: Client, project: Project, evaluation: Evaluation, secret: str
) -> None:
    other = make_evaluation(project)
    elsewhere = make_evaluation(Project.objects.create(name="Law", slug="law"))
    client.post(f"/join/{secret}/", joining("dora"))
    assert (raters(evaluation), raters(other), raters(elsewhere)) == ({"dora"}, set(), set())
    assert client.get(f"/p/physics/desk/{other.run_id}/").status_code == 404
    assert client.get("/p/law/").status_code == 404


def test_limits_of_links_hold_whatever_is_asked(evaluation: Evaluation, adam: User) -> None:
    made, _secret = study_link_create(evaluation=evaluation, most_uses=9_999, days=365, by=adam)
    assert made.most_uses == 500
    assert made.expires_at <= timezone.now() + timedelta(days=30)


def test_accounts_from_one_address_are_limited_by_the_hour(
    client: Client, evaluation: Evaluation, secret: str, settings: LazySettings
) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    Invitation.objects.update(most_uses=100)
    for number in range(ACCOUNTS_AN_HOUR):
        assert Client().post(f"/join/{secret}/", joining(f"r{number}")).status_code == 302
    page = Client().post(f"/join/{secret}/", joining("late"))
    assert page.status_code == 429
    assert 3500 < int(page.headers["Retry-After"]) <= 3600
    assert "minutes with the same link" in page.text
    assert not User.objects.filter(username="late").exists()
    assert link().uses == ACCOUNTS_AN_HOUR
    assert Client(REMOTE_ADDR="10.9.9.9").post(f"/join/{secret}/", joining("far")).status_code == 302
    InvitationUse.objects.update(at=timezone.now() - timedelta(hours=1))
    assert Client().post(f"/join/{secret}/", joining("late")).status_code == 302


def test_who_has_an_account_is_not_limited(client_of: ClientOf, charlie: User, secret: str) -> None:
    uses = [
        InvitationUse(invitation=link(), user=person(f"r{number}"), address="127.0.0.1")
        for number in range(ACCOUNTS_AN_HOUR)
    ]
    InvitationUse.objects.bulk_create(uses)
    assert client_of(charlie).post(f"/join/{secret}/").status_code == 302


def test_each_use_is_in_the_audit_log(client: Client, evaluation: Evaluation, secret: str) -> None:
    client.post(f"/join/{secret}/", joining("dora"))
    Client().post(f"/join/{secret}/", joining("emil"))
    entries = AuditEntry.objects.filter(action="invitation.used").order_by("pk")
    assert [(entry.actor_name, entry.detail["uses"], entry.detail["most"]) for entry in entries] == [
        ("dora", 1, 2),
        ("emil", 2, 2),
    ]
    assert {entry.detail["evaluation"] for entry in entries} == {"Answers of May"}


def test_who_was_removed_does_not_come_back_by_a_link(
    client_of: ClientOf, evaluation: Evaluation, rita: User, adam: User, secret: str
) -> None:
    client_of(rita).post(f"/join/{secret}/")
    rater_leave(rater=EvaluationRater.objects.get(), by=adam)
    other = study_link_create(evaluation=evaluation, most_uses=2, days=7, by=adam)[1]
    assert client_of(rita).post(f"/join/{other}/").status_code == 404
    assert raters(evaluation) == set()


def test_a_closed_evaluation_takes_nobody(
    client: Client, evaluation: Evaluation, adam: User, secret: str
) -> None:
    evaluation_close(evaluation=evaluation, by=adam)
    assert client.get(f"/join/{secret}/").status_code == 404
    assert client.post(f"/join/{secret}/", joining("dora")).status_code == 404
    assert not User.objects.filter(username="dora").exists()


def test_a_deleted_evaluations_link_joins_not_even_the_project(
    client: Client, evaluation: Evaluation, secret: str
) -> None:
    evaluation.run.deleted_at = timezone.now()
    evaluation.run.save()
    assert client.post(f"/join/{secret}/", joining("dora")).status_code == 404
    link().study_link.delete()
    assert client.post(f"/join/{secret}/", joining("dora")).status_code == 404


def test_a_draft_can_be_joined_before_it_opens(client: Client, evaluation: Evaluation, secret: str) -> None:
    Evaluation.objects.update(draft=True)
    answer = client.post(f"/join/{secret}/", joining("dora"))
    assert answer.headers["Location"] == "/p/physics/rating/"
    assert "It appears here once it opens." in client.get("/p/physics/rating/").text
    assert raters(evaluation) == {"dora"}


def test_with_single_sign_on_a_shared_link_asks_for_no_password(
    client: Client, secret: str, settings: LazySettings
) -> None:
    from dataclasses import replace

    settings.CONFIG = replace(settings.CONFIG, oidc_issuer="https://id.example", oidc_name="Our school")
    page = client.get(f"/join/{secret}/").text
    assert "Sign in with Our school" in page
    assert f"/sign-in/sso/?next=/join/{secret}/" in page
    assert "password1" not in page
    client.post(f"/join/{secret}/", joining("dora"))
    assert not User.objects.filter(username="dora").exists()


def test_addresses_are_forgotten_within_a_day(client: Client, secret: str) -> None:
    from evalsite.accounts.services import delete_expired

    client.post(f"/join/{secret}/", joining("dora"))
    assert InvitationUse.objects.get().address == "127.0.0.1"
    InvitationUse.objects.update(at=timezone.now() - timedelta(days=2))
    delete_expired()
    assert InvitationUse.objects.get().address == ""


def test_a_persons_link_works_once_and_a_newer_one_replaces_it(
    client: Client, evaluation: Evaluation, adam: User
) -> None:
    def create() -> Any:
        return person_links_create(evaluation=evaluation, notes=["Dora"], days=7, by=adam)[0]

    first, second = create(), create()
    assert client.post(f"/join/{first.secret}/", joining("dora")).status_code == 404
    assert client.post(f"/join/{second.secret}/", joining("dora")).status_code == 302
    assert Client().post(f"/join/{second.secret}/", joining("emil")).status_code == 404
    assert raters(evaluation) == {"dora"}


def test_as_many_people_are_proposed_as_seats_are_free(project: Project) -> None:
    evaluation = make_evaluation(project, rows=6, overlap=3)
    assert people_needed(evaluation) == 18
    evaluation.quota = 4
    assert people_needed(evaluation) == 5


def test_a_rater_by_link_sees_nothing_but_the_desk(
    client: Client, evaluation: Evaluation, secret: str
) -> None:
    client.post(f"/join/{secret}/", joining("dora"))
    assert client.get(f"/p/physics/desk/{evaluation.run_id}/").status_code == 200
    assert client.get(f"/p/physics/evaluations/{evaluation.run_id}/").status_code == 403
    assert client.get("/p/physics/people/").status_code == 403
