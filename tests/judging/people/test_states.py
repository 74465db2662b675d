"""A study is prepared as a draft, opens and closes by hand or by its dates, is paused, and begins with a pilot."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError

from evalsite import clock
from evalsite.accounts.models import Project, Role, User
from evalsite.models import AuditEntry
from judging.people import assignments, services, states
from judging.people.gold import gold_add, gold_of_item
from judging.people.models import Assignment, Evaluation
from judging.people.ratings import DeskRefused
from judging.people.selectors import rating_tasks
from judging.people.states import Schedule, schedule_change, schedules_apply
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, make_evaluation, progress_of, rate_all

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def reloaded(evaluation: Evaluation) -> Evaluation:
    return Evaluation.objects.select_related("run__version").get(pk=evaluation.pk)


def held(evaluation: Evaluation, user: User, count: int = 50) -> list[Assignment]:
    return assignments.claim(evaluation=evaluation, user=user, count=count)


def test_raters_see_nothing_of_a_draft(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], draft=True, name="Hidden round")
    client, desk = client_of(rita), f"/p/physics/desk/{evaluation.run_id}/"
    assert client.get(desk).status_code == 404
    assert client.get(f"{desk}items/", headers={"Accept": "application/json"}).status_code == 404
    assert held(evaluation, rita) == []
    assert rating_tasks(rita, Project.objects.all()) == []
    pages = [client.get(address).text for address in ("/", "/p/physics/rating/", "/search/?q=Hidden")]
    assert not [page for page in pages if "Hidden round" in page]
    client_of(alice).post(f"/p/physics/evaluations/{evaluation.run_id}/open/")
    assert client.get(desk).status_code == 200
    assert AuditEntry.objects.filter(action="evaluation.opened").count() == 1
    assert not states.study_open(evaluation=evaluation, by=alice)


def test_gold_is_prepared_in_a_draft(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=3, draft=True)
    item = evaluation.items.get(number=1)
    gold_add(evaluation=evaluation, gold=[gold_of_item(evaluation, item, {"preference": "A>B"})])
    assert evaluation.items.exclude(gold="").count() == 1


def test_a_pause_frees_what_is_held_and_keeps_what_was_typed(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    first = held(evaluation, rita)[0]
    assert states.study_pause(evaluation=evaluation, by=alice)
    assert not states.study_pause(evaluation=evaluation, by=alice)
    with pytest.raises(DeskRefused) as refused:
        give(first, "A>B")
    assert refused.value.code == "paused"
    first.refresh_from_db()
    assert (first.state, bool(first.draft)) == ("released", True)
    assert "Rating is paused" in client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").text
    assert states.study_resume(evaluation=evaluation, by=alice)
    assert first in held(evaluation, rita)


def test_a_study_opens_and_closes_by_its_dates(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2, draft=True)
    start = clock.now() + DAY
    schedule_change(evaluation=evaluation, schedule=Schedule(start, start + DAY), by=alice)
    assert reloaded(evaluation).state == "draft"
    with clock.moved_to(start):
        assert reloaded(evaluation).state == "open"
        assert len(held(evaluation, rita)) == 2  # no worker is needed for it
        assert len(rating_tasks(rita, Project.objects.all())) == 1
        schedules_apply()
        assert not reloaded(evaluation).draft
    with clock.moved_to(start + DAY):
        assert reloaded(evaluation).state == "closed"
        assert held(evaluation, rita) == []
        assert rating_tasks(rita, Project.objects.all()) == []
        schedules_apply()
        schedules_apply()
        assert reloaded(evaluation).closed_at is not None
        assert AuditEntry.objects.filter(action="evaluation.closed").count() == 1
        assert services.evaluation_reopen(evaluation=evaluation, by=alice)
    assert (reloaded(evaluation).state, reloaded(evaluation).ends_at) == ("open", None)


def test_impossible_dates_and_pilots_are_refused(project: Project, rita: User, alice: User) -> None:
    evaluation, now = make_evaluation(project, [rita], rows=3, draft=True), clock.now()
    for schedule, field in (
        (Schedule(None, now - DAY), "ends_at"),
        (Schedule(now + 2 * DAY, now + DAY), "ends_at"),
        (Schedule(pilot_items=3, pilot_raters=[evaluation.raters.get().pk]), "pilot_items"),
        (Schedule(pilot_items=2), "pilot_raters"),
    ):
        with pytest.raises(ValidationError) as refused:
            schedule_change(evaluation=evaluation, schedule=schedule, by=alice)
        assert list(refused.value.message_dict) == [field]


@pytest.fixture
def piloted(project: Project, rita: User, alice: User) -> Evaluation:
    """Six items, of which two are rated first by Rita alone, though Ravi rates too."""
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], rows=6, draft=True)
    pilot = [evaluation.raters.get(user=rita).pk]
    schedule_change(evaluation=evaluation, schedule=Schedule(pilot_items=2, pilot_raters=pilot), by=alice)
    states.study_open(evaluation=evaluation, by=alice)
    return reloaded(evaluation)


def test_a_pilot_gives_the_first_items_to_its_raters_alone(
    piloted: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    ravi = User.objects.get(username="ravi")
    assert held(piloted, ravi) == []
    assert client_of(ravi).get(f"/p/physics/desk/{piloted.run_id}/").status_code == 404
    assert rating_tasks(ravi, Project.objects.all()) == []
    assert progress_of(piloted, rita).left == 2
    rate_all(piloted, rita, "A=B")
    rated = piloted.items.filter(rated=1).values_list("rank", flat=True)
    assert sorted(rated) == [0, 1]
    client_of(alice).post(f"/p/physics/evaluations/{piloted.run_id}/end-pilot/")
    rate_all(reloaded(piloted), ravi, "A=B")
    assert piloted.items.filter(rated=1).count() == 6


def test_an_item_of_the_pilot_that_becomes_gold_is_replaced(piloted: Evaluation, rita: User) -> None:
    item = piloted.items.get(rank=0)
    gold_add(evaluation=piloted, gold=[gold_of_item(piloted, item, {"preference": "A>B"})])
    ranks = [assignment.item.rank for assignment in held(reloaded(piloted), rita)]
    assert sorted(ranks) == [1, 2]


def test_dates_and_pilot_are_set_on_their_page(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], rows=3, draft=True), client_of(alice)
    address = f"/p/physics/evaluations/{evaluation.run_id}/schedule/"
    wrong = client.post(address, {"starts_at": "2031-01-02T10:00", "ends_at": "2031-01-01T10:00"})
    assert wrong.status_code == 422
    assert "The end must be later than the start." in wrong.text
    assert "2031-01-02T10:00" in wrong.text
    pilot = {"pilot_items": 1, "pilot_raters": [evaluation.raters.get().pk]}
    assert client.post(address, {"ends_at": "2031-01-01T10:00", **pilot}).status_code == 302
    stored = reloaded(evaluation)
    assert (stored.ends_at is not None, stored.pilot_items, stored.pilot_below) == (True, 1, 1)
    page = client.get(f"/p/physics/evaluations/{evaluation.run_id}/").text
    assert "Pilot" in page
    assert ">Open</button>" in page


def test_another_end_of_a_running_study_is_stored_once_its_effects_are_confirmed(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], rows=3), client_of(alice)
    address = f"/p/physics/evaluations/{evaluation.run_id}/schedule/"
    sent = {"ends_at": "2031-01-01T10:00"}
    page = client.post(address, sent).text
    assert "It closes by itself at" in page
    assert "0 ratings so far are kept" in page
    assert reloaded(evaluation).ends_at is None
    client.post(address, sent | {"confirmed": "1"})
    assert reloaded(evaluation).ends_at is not None
