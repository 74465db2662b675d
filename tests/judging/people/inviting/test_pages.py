"""Pages: links shown once, groups, evaluations open to all raters, more items than were told."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evalsite.accounts.models import Invitation, Project, Role, User
from judging.people.assignments import raters_add
from judging.people.inviting.links import study_link_create
from judging.people.inviting.models import RaterGroup
from judging.people.inviting.quota_change import quota_change
from judging.people.models import Evaluation, EvaluationRater
from tests.conftest import ClientOf, member
from tests.judging.people.make import make_evaluation, rate_all

GROUPS = "/p/physics/evaluations/groups/"


@pytest.fixture
def evaluation(project: Project) -> Evaluation:
    return make_evaluation(project, rows=4, name="Answers of May")


def address(evaluation: Evaluation, page: str = "") -> str:
    return f"/p/physics/evaluations/{evaluation.run_id}/inviting/{page}"


def test_a_shared_link_is_shown_once(client_of: ClientOf, evaluation: Evaluation, adam: User) -> None:
    client = client_of(adam)
    page = client.post(address(evaluation, "link/"), {"link-most_uses": 30, "link-days": 7}).text
    shown = re.search(r"/join/([\w-]+)/", page)
    assert shown
    again = client.get(address(evaluation)).text
    assert shown[1] not in again
    assert "Shared link, used by 0 of 30" in again


@pytest.mark.parametrize("sent", [("501", "7"), ("0", "7"), ("30", "31"), ("", "")])
def test_limits_of_a_shared_link(
    client_of: ClientOf, evaluation: Evaluation, adam: User, sent: tuple[str, str]
) -> None:
    page = client_of(adam).post(
        address(evaluation, "link/"), {"link-most_uses": sent[0], "link-days": sent[1]}
    )
    assert page.status_code == 422
    assert not Invitation.objects.exists()


def test_a_link_of_another_project_can_not_be_revoked_here(
    client_of: ClientOf, evaluation: Evaluation, charlie: User, adam: User
) -> None:
    other = make_evaluation(Project.objects.get(slug="elsewhere"))
    invitation, _secret = study_link_create(evaluation=other, most_uses=5, days=5, by=charlie)
    page = client_of(adam).post(address(evaluation, f"links/{invitation.pk}/revoke/"))
    assert page.status_code == 404
    assert client_of(charlie).post(address(evaluation, f"links/{invitation.pk}/revoke/")).status_code == 404
    assert Invitation.objects.get().revoked_at is None


def test_a_revoked_link_is_gone_from_the_list(
    client_of: ClientOf, evaluation: Evaluation, adam: User
) -> None:
    invitation, _secret = study_link_create(evaluation=evaluation, most_uses=5, days=5, by=adam)
    client_of(adam).post(address(evaluation, f"links/{invitation.pk}/revoke/"))
    assert "Shared link" not in client_of(adam).get(address(evaluation)).text


def test_a_group_is_added_at_once(
    client_of: ClientOf, evaluation: Evaluation, project: Project, alice: User, rita: User, adam: User
) -> None:
    client = client_of(alice)
    client.post(GROUPS, {"name": "Lab", "users": [rita.pk, adam.pk]})
    group = RaterGroup.objects.get()
    answer = client.post(address(evaluation, "group/"), {"group": group.pk}, follow=True)
    assert "2 raters added." in answer.text
    assert set(evaluation.raters.values_list("user", flat=True)) == {rita.pk, adam.pk}


def test_who_cannot_rate_any_more_is_left_out_of_a_group(
    client_of: ClientOf, evaluation: Evaluation, project: Project, alice: User, rita: User, bob: User
) -> None:
    group = RaterGroup.objects.create(project=project, name="Lab")
    group.users.set([rita, bob])
    answer = client_of(alice).post(address(evaluation, "group/"), {"group": group.pk}, follow=True)
    assert "1 person of this group" in answer.text
    assert list(evaluation.raters.values_list("user", flat=True)) == [rita.pk]


def test_a_group_is_made_of_an_evaluations_raters_changed_and_deleted(
    client_of: ClientOf, evaluation: Evaluation, alice: User, rita: User, adam: User
) -> None:
    raters_add(evaluation=evaluation, users=[rita])
    client = client_of(alice)
    page = client.get(f"{GROUPS}?from={evaluation.run_id}").text
    assert re.search(rf'value="{rita.pk}"[^>]*checked', page)
    client.post(GROUPS, {"name": "Lab", "users": [rita.pk]})
    group = RaterGroup.objects.get()
    client.post(f"{GROUPS}{group.pk}/", {"name": "Lab 2", "users": [adam.pk]})
    assert list(RaterGroup.objects.get().users.all()) == [adam]
    assert client.post(GROUPS, {"name": "Lab 2", "users": [rita.pk]}).status_code == 422
    client.post(f"{GROUPS}{group.pk}/delete/")
    assert not RaterGroup.objects.exists()


def test_another_projects_group_is_not_there(
    client_of: ClientOf, evaluation: Evaluation, alice: User, charlie: User
) -> None:
    group = RaterGroup.objects.create(project=Project.objects.get(slug="elsewhere"), name="Lab")
    assert client_of(alice).get(f"{GROUPS}{group.pk}/").status_code == 404
    assert client_of(alice).post(address(evaluation, "group/"), {"group": group.pk}).status_code == 404


def test_an_evaluation_open_to_all_is_offered_to_who_comes_later(
    client_of: ClientOf, evaluation: Evaluation, project: Project, alice: User
) -> None:
    client_of(alice).post(address(evaluation, "offer/"), {"to_all": "1"})
    client = client_of(member("late", project, Role.RATER))
    page = client.get("/p/physics/rating/").text
    assert "Answers of May" in page
    assert "at most 4 items, about 2 min" in page
    assert "Answers of May" in client.get("/").text
    answer = client.post(f"/p/physics/rating/{evaluation.run_id}/join/")
    assert answer.headers["Location"] == f"/p/physics/desk/{evaluation.run_id}/"
    assert client.get(answer.headers["Location"]).status_code == 200
    assert "Open to you" not in client.get("/p/physics/rating/").text


@pytest.mark.parametrize("change", ["draft", "closed", "not_offered", "pilot", "removed"])
def test_what_is_not_offered_can_not_be_joined(
    client_of: ClientOf, evaluation: Evaluation, rita: User, change: str
) -> None:
    states: dict[str, dict[str, Any]] = {
        "draft": {"draft": True},
        "closed": {"closed_at": timezone.now()},
        "not_offered": {"open_to_all": False},
        "pilot": {"pilot_items": 1, "pilot_below": 1},
        "removed": {},
    }
    Evaluation.objects.update(**{"open_to_all": True, **states[change]})
    if change == "removed":
        EvaluationRater.objects.create(
            evaluation=evaluation, user=rita, pseudonym="R1", left_at=timezone.now()
        )
    client = client_of(rita)
    assert "Answers of May" not in client.get("/p/physics/rating/").text
    page = client.post(f"/p/physics/rating/{evaluation.run_id}/join/", follow=True)
    assert "This evaluation is not offered any more." in page.text
    assert not evaluation.raters.filter(left_at=None).exists()


def test_the_deadline_is_on_the_desk_and_in_the_list(
    client_of: ClientOf, evaluation: Evaluation, rita: User
) -> None:
    raters_add(evaluation=evaluation, users=[rita])
    end = timezone.now() + timedelta(days=2)
    Evaluation.objects.update(ends_at=end)
    stamp = f'datetime="{end.isoformat(timespec="seconds")}"'
    assert stamp in client_of(rita).get("/p/physics/rating/").text
    assert stamp in client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").text


def test_a_raised_number_is_told_on_the_desk_and_can_be_agreed_to(
    client_of: ClientOf, evaluation: Evaluation, rita: User, adam: User
) -> None:
    raters_add(evaluation=evaluation, users=[rita])
    client, desk = client_of(rita), f"/p/physics/desk/{evaluation.run_id}/"
    quota_change(evaluation=evaluation, quota=2, by=adam)
    assert client.get(desk + "more/").headers["Location"] == desk
    quota_change(evaluation=evaluation, quota=3, by=adam)
    assert "now up to 3 items" in client.get(desk).text
    assert "now up to 3 items" in client.get("/p/physics/rating/").text
    assert "at most 2 items. Each rater is now asked to rate up to 3." in client.get(desk + "more/").text
    rate_all(evaluation, rita, "A>B")
    assert evaluation.raters.get().assignments.filter(state="rated").count() == 2
    client.post(desk + "more/")
    rate_all(evaluation, rita, "A>B")
    assert evaluation.raters.get().assignments.filter(state="rated").count() == 3
    assert "now up to" not in client.get(desk).text


def test_the_quota_is_set_and_ratings_that_nobody_covers_are_named(
    client_of: ClientOf, evaluation: Evaluation, rita: User, alice: User
) -> None:
    raters_add(evaluation=evaluation, users=[rita])
    client = client_of(alice)
    asked = client.post(address(evaluation, "quota/"), {"quota-quota": "1"}).text
    assert "From now on, items per rater at most: 1." in asked
    assert Evaluation.objects.get().quota is None
    sent = {"quota-quota": "1", "confirmed": "1"}
    page = client.post(address(evaluation, "quota/"), sent, follow=True).text
    assert "3 ratings exceed all raters" in page
    detail = f"/p/physics/evaluations/{evaluation.run_id}/"
    assert "3 ratings exceed all raters" in client.get(detail).text
    assert client.post(address(evaluation, "quota/"), {"quota-quota": "0"}).status_code == 422
    client.post(address(evaluation, "quota/"), {"quota-quota": "", "confirmed": "1"})
    assert Evaluation.objects.get().quota is None
