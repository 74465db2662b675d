"""Raters' figures from stored ratings, and a rater's page for organisers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsite.accounts.models import Project, Role, User
from evalsite.models import Derived, Job
from judging.people import assignments, ratings
from judging.people.models import Evaluation, Rating
from judging.people.rater_figures import rater_figures, study_ratings
from judging.people.work import work_of
from tests.api import Api, pages_of
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, make_evaluation
from tests.working import do_jobs

pytestmark = pytest.mark.django_db

HONEST = (1, 5, 3, 2, 4)
ValueOf = Callable[[int], int]


def rate_by_number(evaluation: Evaluation, user: User, value: ValueOf, seconds: float) -> None:
    """Rate all items; `value` is of the item's number, that of the first for a repeat."""
    while held := assignments.claim(evaluation=evaluation, user=user, count=50):
        for assignment in held:
            first = assignment.item.repeat_of or assignment.item
            give(assignment, value(first.number), seconds=seconds)


@pytest.fixture
def evaluation(project: Project) -> Evaluation:
    """R1 to R5 agree on 20 items, R6 gives 5 to each within two seconds."""
    users = [member(f"rater{number}", project, Role.RATER) for number in range(1, 7)]
    evaluation = make_evaluation(
        project, users, rows=20, side_by_side=False, models=["alpha"], overlap=6, repeat_share=0.2
    )
    for user in users[:5]:
        rate_by_number(evaluation, user, lambda number: HONEST[number % 5], 40)
    rate_by_number(evaluation, users[5], lambda number: 5, 2)
    return evaluation


def test_figures_are_computed_from_ratings_in_a_few_queries(evaluation: Evaluation) -> None:
    raters = dict(evaluation.raters.values_list("pseudonym", "pk"))
    study = study_ratings(evaluation)
    assert (len(study.values), len(study.seconds[raters["R1"]])) == (120, 20)
    assert study.repeats[raters["R1"], 0].hits == study.repeats[raters["R1"], 0].of == 4
    figures = rater_figures(evaluation)
    flagged = {
        name: {figure.name for figure in figures.by_rater[pk] if figure.flagged}
        for name, pk in raters.items()
    }
    assert flagged.pop("R6") >= {"time", "agreement"}
    assert not any(flagged.values())
    with CaptureQueriesContext(connection) as queries:
        assert rater_figures(evaluation).by_rater == figures.by_rater
    assert len(queries) <= 6


def test_a_rating_that_is_undone_counts_in_no_figure(evaluation: Evaluation, project: Project) -> None:
    user = User.objects.get(username="rater6")
    before = rater_figures(evaluation).by_rater
    ratings.undo(evaluation=evaluation, user=user, key=uuid4())
    assert rater_figures(evaluation).by_rater != before


def test_who_stands_out_comes_first_on_the_organisers_page_and_has_a_page(
    evaluation: Evaluation, alice: User, bob: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/"
    last = evaluation.raters.get(pseudonym="R6")
    held = last.assignments.first()
    page = client_of(alice).get(address).text
    assert "stands out from the other raters" in page
    table = page[page.index("<tbody>") :]
    assert table.index(">R6<") < table.index(">R1<")
    assert "stands out" not in client_of(bob).get(address).text
    own = client_of(alice).get(f"{address}raters/{last.pk}/").text
    for text in ("Median time per item", "Most frequent value: 5", "flagged", "2.0 s", "100 %"):
        assert text in own
    assert held is not None
    assert f"/items/{held.item.number}/" in own
    assert "flagged" not in client_of(alice).get(f"{address}raters/{last.pk - 1}/").text


def test_skips_and_comments_are_listed_apart(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=3)
    rated, skipped = assignments.claim(evaluation=evaluation, user=rita, count=2)
    address = f"/p/physics/evaluations/{evaluation.run_id}/raters/{evaluation.raters.get().pk}/"
    assert "Nothing rated yet." in client_of(alice).get(address).text
    give(rated, "A>B", comment="I had to guess.")
    ratings.skip(assignment=skipped, reason="unclear", key=uuid4())
    comments = client_of(alice).get(address, {"which": "comments"}).text
    assert "I had to guess." in comments
    assert "The question is unclear" not in comments
    skips = client_of(alice).get(address, {"which": "skipped", "before": "x"}).text
    assert "The question is unclear" in skips
    assert "I had to guess." not in skips


def test_a_rater_of_another_evaluation_has_no_page_here(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    here, there = (make_evaluation(project, [rita], rows=1) for _ in range(2))
    address = f"/p/physics/evaluations/{here.run_id}/raters/{there.raters.get().pk}/"
    assert client_of(alice).get(address).status_code == 404


def test_days_are_those_of_the_site_and_leave_out_what_was_undone(
    project: Project, rita: User, settings: LazySettings
) -> None:
    settings.TIME_ZONE = "Asia/Shanghai"
    evaluation = make_evaluation(project, [rita], rows=3)
    first, second, third = assignments.claim(evaluation=evaluation, user=rita, count=3)
    late = give(first, "A>B", seconds=10)
    give(second, "A>B", seconds=30)
    ratings.skip(assignment=third, reason="unclear", key=uuid4())
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    Rating.objects.update(at=datetime(2026, 5, 1, 12, tzinfo=UTC))
    Rating.objects.filter(pk=late.pk).update(at=datetime(2026, 5, 1, 17, tzinfo=UTC))
    [(oldest, newest)] = work_of(evaluation).values()
    assert (str(newest.day), newest.rated, newest.pace, newest.active) == ("2026-05-02", 1, 10, 10)
    assert (str(oldest.day), oldest.rated, oldest.counts["skips"], oldest.pace) == ("2026-05-01", 1, 0, 30)


def test_a_worker_computes_those_of_a_large_evaluation_which_a_page_does_not_wait_for(
    evaluation: Evaluation, alice: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rater_figures(evaluation)
    monkeypatch.setattr("judging.people.rater_figures.AT_ONCE", 10)
    ratings.undo(evaluation=evaluation, user=User.objects.get(username="rater6"), key=uuid4())
    Derived.objects.update(computed_at=timezone.now() - timedelta(hours=1))
    after = rater_figures(evaluation)
    assert (after.by_rater, after.current, before.current) == (before.by_rater, False, True)
    assert "newer ratings" in client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/").text
    do_jobs("rater_figures")
    newest = rater_figures(evaluation)
    assert newest.current
    assert newest.by_rater != before.by_rater


def test_the_api_gives_figures_in_pages(evaluation: Evaluation, alice: User) -> None:
    path = f"projects/physics/evaluations/{evaluation.run_id}/figures"
    [whole] = pages_of(Api(alice), path, 1000)
    assert [figure for page in pages_of(Api(alice), path, 2) for figure in page] == whole
    assert {figure["rater"] for figure in whole} == {rater.pseudonym for rater in evaluation.raters.all()}


def test_a_job_is_not_asked_for_again_at_once(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    rater_figures(evaluation)
    monkeypatch.setattr("judging.people.rater_figures.AT_ONCE", 10)
    ratings.undo(evaluation=evaluation, user=User.objects.get(username="rater6"), key=uuid4())
    assert not rater_figures(evaluation).current
    assert not Job.objects.exists()


def test_a_threshold_that_an_organiser_sets_decides_what_stands_out(
    evaluation: Evaluation, alice: User, bob: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/"
    client = client_of(alice)
    assert "70" in client.get(f"{address}thresholds/").text
    lax = {"time": 1, "side": 100, "value": 100, "agreement": 100, "deviation": 4, "repeats": 1}
    wrong = client.post(f"{address}thresholds/", lax | {"side": 0, "time": 101, "deviation": 4.1})
    assert wrong.status_code == 422
    assert wrong.context["form"].errors == {
        "time": ["Enter a number over 0 and up to 100."],
        "side": ["Enter a number over 0 and up to 100."],
        "deviation": ["Enter a number over 0 and up to 4."],
    }
    assert "stands out" in client.get(address).text
    assert client.post(f"{address}thresholds/", lax).status_code == 302
    assert "stands out" not in client.get(address).text
    assert client_of(bob).get(f"{address}thresholds/").status_code in (403, 404)
    path = f"projects/physics/evaluations/{evaluation.run_id}/thresholds"
    api = Api(alice)
    assert api.get(path).json()["side"] == 1
    assert api.post(path, {"side": 0.7}).json()["side"] == 0.7
    assert api.post(path, {"side": 7}).status_code == 422


def test_a_raters_page_says_what_a_deviation_means(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    lenient = evaluation.raters.get(pseudonym="R6")
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/raters/{lenient.pk}/").text
    assert "2 more lenient than the others." in page
    assert "The candidates' order stays the same without it." not in page  # there is only one
