"""Human verdicts in reports: of a human evaluation itself, and of the run it is about."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.adjudication import adjudicate
from judging.people.assignments import claim
from judging.people.models import Evaluation, Item
from judging.records.models import Run
from judging.reports.frames import run_frame
from judging.reports.services import report_document
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run
from tests.judging.people.make import about as evaluation_about
from tests.judging.people.make import give, make_evaluation, rate_all

pytestmark = pytest.mark.django_db


def single(project: Project, raters: list[User], **more: Any) -> Evaluation:
    wanted = {"rows": 1, "models": ["alpha"], "side_by_side": False, "overlap": len(raters), **more}
    return make_evaluation(project, raters, **wanted)


def said(run: Run) -> list[tuple[str, str, float]]:
    people = run_frame(run).query("source in ['rater', 'adjudicator']")
    return sorted(people[["by", "source", "value"]].itertuples(index=False, name=None))


@pytest.fixture
def run(project: Project) -> Run:
    """One row and one candidate, whose answer scored 1."""
    return a_judged_run(project, rows=1, models=["alpha"])


def test_a_human_evaluation_has_a_report_page(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = single(project, [rita])
    rate_all(evaluation, rita, 4)
    page = client_of(alice).get(reverse("runs:report", args=("physics", evaluation.run_id)))
    assert page.status_code == 200


def test_the_report_of_a_human_evaluation_belongs_to_people(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = single(project, [rita])
    rate_all(evaluation, rita, 4)
    page = client_of(alice).get(reverse("runs:report", args=("physics", evaluation.run_id))).text
    ways = [
        reverse("people:list", args=("physics",)),
        reverse("people:detail", args=("physics", evaluation.run_id)),
    ]
    assert [f'<li><a href="{way}">' in page for way in ways] == [True, True]
    assert f'<a href="{ways[0]}" aria-current="true">' in page


def test_each_rater_has_a_verdict_under_a_pseudonym(project: Project, rita: User, ravi: User) -> None:
    evaluation = single(project, [rita, ravi])
    rate_all(evaluation, rita, 4)
    rate_all(evaluation, ravi, 2)
    assert said(evaluation.run) == [("R1", "rater", 4), ("R2", "rater", 2)]


def test_a_decision_is_peoples_value_of_the_answer(
    project: Project, rita: User, ravi: User, bob: User
) -> None:
    evaluation = single(project, [rita, ravi])
    rate_all(evaluation, rita, 4)
    rate_all(evaluation, ravi, 2)
    adjudicate(item=Item.objects.get(), values={0: 2}, reason="", by=bob)
    adjudicate(item=Item.objects.get(), values={0: 5}, reason="seen again", by=bob)
    assert report_document(evaluation.run)["people_candidates"]["alpha"]["quality"]["mean"] == 5


def test_gold_and_repeats_say_nothing_of_an_answer(project: Project, rita: User) -> None:
    evaluation = single(project, [rita], rows=2, repeat_share=1.0)
    rate_all(evaluation, rita, 4)
    assert len(said(evaluation.run)) == 2


def test_comparisons_make_a_win_rate(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=4)
    for held in claim(evaluation=evaluation, user=rita, count=4):
        give(held, "A>B" if held.shown_first == 1 else "B>A")
    (figures,) = report_document(evaluation.run)["side_by_side"]
    assert figures["candidates"]["alpha"]["win_rate"] == 1


def test_the_run_that_an_evaluation_is_about_counts_its_ratings(run: Run, rita: User) -> None:
    rate_all(evaluation_about(run, [rita]), rita, 8)
    figures = report_document(run)
    (metric,) = figures["candidates"]["alpha"]
    assert figures["candidates"]["alpha"][metric]["mean"] == 1
    assert figures["people_candidates"]["alpha"][metric]["mean"] == 8


def test_of_someone_who_rated_an_answer_in_two_evaluations_the_newer_verdict_counts(
    run: Run, rita: User, ravi: User
) -> None:
    first, again = evaluation_about(run, [rita]), evaluation_about(run, [ravi, rita], overlap=2)
    rate_all(again, ravi, 3)
    rate_all(again, rita, 2)
    rate_all(first, rita, 1)
    assert said(run) == [("R1", "rater", 2), ("R2", "rater", 3)]


def test_a_rating_and_a_decision_make_the_kept_figures_of_both_runs_out_of_date(
    run: Run, rita: User, bob: User
) -> None:
    evaluation, before = evaluation_about(run, [rita]), run.revision
    rate_all(evaluation, rita, 4)
    adjudicate(item=Item.objects.get(), values={0: 2}, reason="", by=bob)
    revisions = dict(Run.objects.values_list("pk", "revision"))
    assert revisions == {run.pk: before + 2, evaluation.run_id: 2}


def test_a_criterion_that_is_no_metric_of_the_run_is_not_in_its_report(run: Run, rita: User) -> None:
    rate_all(evaluation_about(run, [rita], criteria=[Criterion(name="other")]), rita, 4)
    assert said(run) == []
