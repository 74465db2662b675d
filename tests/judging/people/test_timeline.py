"""A study's list and progress for its organisers: what needs attention, ratings by day, what is missing, the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite import clock
from evalsite.accounts.models import Project, Role, User
from evalsite.models import Derived, Job
from judging.core.people.forecast import Pace, behind, forecast_end, pace_begun
from judging.core.people.order_change import order_changes
from judging.people import assignments, ratings
from judging.people.attention import Attention, attention_of, paces_of
from judging.people.inviting.quota_change import quota_change
from judging.people.models import Assignment, Evaluation, EvaluationRater
from judging.people.progress import overall
from judging.people.questions.services import question_ask
from judging.people.rater_figures import rater_figures
from judging.people.selectors import evaluations_page, items_page
from judging.people.set_aside import rater_set_aside
from judging.people.timeline import missing_of, timeline_of
from tests.api import Api
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, lines_of, make_evaluation, rate_all
from tests.working import do_jobs

NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


def test_the_pace_is_of_the_last_seven_days() -> None:
    assert pace_begun(NOON - timedelta(days=30), NOON) == NOON - timedelta(days=7)
    assert pace_begun(NOON - timedelta(days=2), NOON) == NOON - timedelta(days=2)


def test_the_rest_is_done_at_the_measured_pace() -> None:
    pace = Pace(100, NOON - timedelta(days=2))
    assert pace.a_day(NOON) == 50
    assert forecast_end(25, pace, NOON) == NOON + timedelta(hours=12)
    assert forecast_end(25, Pace(0, NOON), NOON) is None
    assert forecast_end(25, None, NOON) is None
    assert Pace(10, NOON).a_day(NOON) == 240


def test_only_an_end_after_the_date_is_behind() -> None:
    assert behind(NOON, NOON - timedelta(hours=1))
    assert not behind(NOON, NOON)
    assert not behind(None, NOON)
    assert not behind(NOON, None)


def test_a_strict_rater_of_one_candidate_changes_the_order() -> None:
    ratings = [(1, 7, 4.0), (2, 8, 2.0), (1, 8, 4.6)]
    assert order_changes(ratings, {2: -1.6, 1: 0.1}) == {2: True, 1: False}


def test_a_rater_who_rates_all_candidates_alike_changes_nothing() -> None:
    ratings = [(1, 7, 4.0), (1, 8, 3.0), (2, 7, 2.0), (2, 8, 1.0)]
    assert order_changes(ratings, {2: -2.0}) == {2: False}


@pytest.fixture
def evaluation(project: Project, rita: User, ravi: User) -> Evaluation:
    """Two raters an item, four items; Rita has rated all, Ravi one."""
    evaluation = make_evaluation(
        project, [rita, ravi], rows=4, side_by_side=False, models=["alpha"], overlap=2
    )
    rate_all(evaluation, rita, 5)
    give(assignments.claim(evaluation=evaluation, user=ravi, count=1)[0], 3, seconds=90)
    return evaluation


@pytest.mark.django_db
def test_missing_ratings_are_counted_by_item(evaluation: Evaluation) -> None:
    assert missing_of(evaluation) == [(1, 3)]


@pytest.mark.django_db
def test_days_are_those_of_the_site(evaluation: Evaluation, settings: LazySettings) -> None:
    settings.TIME_ZONE = "Asia/Shanghai"
    Assignment.objects.update(rated_at=datetime(2026, 5, 1, 12, tzinfo=UTC))
    first = Assignment.objects.filter(rater__pseudonym="R1").first()
    assert first is not None
    Assignment.objects.filter(pk=first.pk).update(rated_at=datetime(2026, 5, 1, 17, tzinfo=UTC))
    days = [(str(day.day), day.items, day.rated) for day in timeline_of(evaluation).days]
    assert days == [("2026-05-02", 1, 1), ("2026-05-01", 4, 4)]


@pytest.mark.django_db
@pytest.mark.parametrize("ago", [0, 20, 100])
def test_thirty_days_up_to_the_last_rating_are_listed(evaluation: Evaluation, ago: int) -> None:
    last = clock.now() - timedelta(days=ago)
    pks = list(Assignment.objects.exclude(rated_at=None).order_by("pk").values_list("pk", flat=True))
    for pk, days in zip(pks, (0, 1, 1, 29, 31), strict=True):
        Assignment.objects.filter(pk=pk).update(rated_at=last - timedelta(days=days))
    assert [day.items for day in timeline_of(evaluation).days] == [1, 2, 1]


@pytest.mark.django_db
def test_the_pace_of_the_page_is_that_of_the_list(evaluation: Evaluation) -> None:
    Assignment.objects.update(rated_at=clock.now() - timedelta(days=3))
    pace = paces_of([evaluation.pk])[evaluation.pk]
    a_day = timeline_of(evaluation).a_day
    assert a_day == pytest.approx(pace.a_day(clock.now()), rel=0.01)


@pytest.mark.django_db
def test_the_median_stands_beside_the_mean(evaluation: Evaluation) -> None:
    assert list(rater_figures(evaluation).medians.values()) == [5, 90]


@pytest.mark.django_db
def test_who_is_paused_or_outside_the_pilot_may_still_rate_what_is_left(
    evaluation: Evaluation, rita: User
) -> None:
    EvaluationRater.objects.exclude(user=rita).update(paused_at=clock.now())
    assert overall(evaluation).stuck == 0
    EvaluationRater.objects.exclude(user=rita).update(left_at=clock.now())
    assert overall(evaluation).stuck > 0


@pytest.mark.django_db
def test_a_study_that_will_not_be_done_in_time_comes_first(
    evaluation: Evaluation, project: Project, rita: User, alice: User, bob: User, client_of: ClientOf
) -> None:
    Assignment.objects.update(rated_at=clock.now() - timedelta(days=3))
    Evaluation.objects.filter(pk=evaluation.pk).update(ends_at=clock.now() + timedelta(hours=1))
    newer = make_evaluation(project, [rita], rows=2, name="newer")
    page = client_of(alice).get("/p/physics/evaluations/").text
    assert "behind schedule" in page
    assert page.index(evaluation.run.name) < page.index(newer.run.name)
    assert "behind schedule" in client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/").text
    assert "behind schedule" not in client_of(bob).get("/p/physics/evaluations/").text
    body = Api(alice).get(f"projects/physics/evaluations/{evaluation.run_id}/progress").json()
    assert (body["late"], body["missing"]) == (True, {"1": 3})


@pytest.mark.django_db
def test_flagged_raters_are_counted_from_the_stored_figures_in_few_queries(project: Project) -> None:
    users = [member(f"rater{number}", project, Role.RATER) for number in range(6)]
    evaluation = make_evaluation(project, users, rows=20, side_by_side=False, models=["alpha"], overlap=6)
    for number, user in enumerate(users):
        while held := assignments.claim(evaluation=evaluation, user=user, count=50):
            for each in held:
                give(each, 5 if number == 5 else 1 + each.item.number % 4, seconds=2 if number == 5 else 60)
    page, _further = evaluations_page(project)
    assert attention_of(page)[evaluation.pk].flagged == 0
    do_jobs("rater_figures")
    with CaptureQueriesContext(connection) as queries:
        assert attention_of(page)[evaluation.pk].flagged == 1
    assert len(queries) <= 5
    assert not Job.objects.exists()
    rater = EvaluationRater.objects.get(evaluation=evaluation, user=users[5])
    rater_set_aside(rater=rater, reason="They guessed.", by=users[0])
    Derived.objects.update(computed_at=clock.now() - timedelta(hours=1))
    page, _further = evaluations_page(project)
    assert attention_of(page)[evaluation.pk].flagged == 1
    do_jobs("rater_figures")
    assert attention_of(page)[evaluation.pk].flagged == 0


@pytest.mark.django_db
def test_open_questions_and_ratings_that_nobody_covers_need_attention(
    evaluation: Evaluation, project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    held = Assignment.objects.filter(rater__user=rita).first()
    assert held is not None
    question_ask(assignment=held, text="What is “good”?", key=held.token)
    quota_change(evaluation=evaluation, quota=2, by=alice)
    page, _further = evaluations_page(project)
    assert attention_of(page)[evaluation.pk] == Attention(questions=1, uncovered=2)
    shown = client_of(alice).get("/p/physics/evaluations/").text
    assert "1 open question" in shown
    assert "2 ratings exceed all raters" in shown


@pytest.mark.django_db
def test_items_can_be_those_of_one_rater(evaluation: Evaluation, alice: User, client_of: ClientOf) -> None:
    ravi = evaluation.raters.get(pseudonym="R2")
    items, _further = items_page(evaluation, "all", rater=ravi.pk)
    assert len(items) <= 3
    address = f"/p/physics/evaluations/{evaluation.run_id}/items/"
    page = client_of(alice).get(address, {"rater": "R2"})
    assert [line[0].pk for line in page.context["items"]] == [item.pk for item in items]
    assert len(client_of(alice).get(address, {"rater": "nobody"}).context["items"]) == 4


@pytest.mark.django_db
def test_people_has_what_the_visitor_may_do(
    evaluation: Evaluation, rita: User, alice: User, adam: User, client_of: ClientOf
) -> None:
    assert "/p/physics/rating/" in client_of(rita).get("/p/physics/rating/").text
    assert "/p/physics/evaluations/" not in client_of(rita).get("/p/physics/rating/").text
    assert "/p/physics/rating/" not in client_of(alice).get("/p/physics/evaluations/").text
    both = client_of(adam).get("/p/physics/evaluations/").text
    assert "Rating (mine)" in both
    assert both.index(">Studies<") < both.index(">Rating (mine)<")


@pytest.mark.django_db
def test_the_organisers_page_needs_a_bounded_number_of_queries(
    evaluation: Evaluation, project: Project, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/"
    client.get(address)
    with CaptureQueriesContext(connection) as few:
        client.get(address)
    more = [member(f"more{number}", project, Role.RATER) for number in range(4)]
    assignments.raters_add(evaluation=evaluation, users=more)
    rate_all(evaluation, more[0], 4)
    client.get(address)
    with CaptureQueriesContext(connection) as many:
        client.get(address)
    assert len(many) <= len(few) + 1


@pytest.mark.django_db
def test_an_export_holds_skips_with_reasons_and_texts_if_wanted(evaluation: Evaluation, ravi: User) -> None:
    held = assignments.claim(evaluation=evaluation, user=ravi, count=1)[0]
    ratings.skip(assignment=held, reason="unclear", key=held.token)
    assert len(lines_of(evaluation)) == 5
    skips = [line for line in lines_of(evaluation, history=True) if line["kind"] == "skip"]
    assert [(line["skipped"], line["current"], line["values"]) for line in skips] == [("unclear", False, {})]
    assert "question" not in lines_of(evaluation)[0]
    with_texts = lines_of(evaluation, texts=True)[0]
    assert with_texts["question"]
    assert with_texts["response"]
