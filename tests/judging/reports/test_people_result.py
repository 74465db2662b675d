"""Results on a human evaluation's page while people rate."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Membership, Project, Role, User
from judging.core.people.criteria import Criterion
from judging.people.assignments import claim
from judging.people.models import Evaluation
from judging.people.services import evaluation_close
from judging.reports.people_result import CriterionResult, results_of
from judging.reports.services import report_document
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, make_evaluation, rate_all, rate_each

pytestmark = pytest.mark.django_db


def results(evaluation: Evaluation) -> list[CriterionResult]:
    series = {"alpha": 1, "beta": 2}
    return results_of(evaluation.run, report_document(evaluation.run), series)


def prefer(evaluation: Evaluation, user: User, *values: str) -> None:
    """Rate every item; the values cycle by item number."""
    rate_each(evaluation, user, lambda item: values[(item.number - 1) % len(values)])


def address(evaluation: Evaluation) -> str:
    return reverse("runs:people_result", args=("physics", evaluation.run_id))


# —— results


def test_the_best_candidate_comes_first_and_leads_where_the_difference_is_clear(
    project: Project, rita: User
) -> None:
    evaluation = make_evaluation(project, [rita], rows=20, side_by_side=False)
    rate_each(evaluation, rita, lambda item: item.number % 3 + (1 if item.number % 2 else 3))
    (result,) = results(evaluation)
    assert ([line.name for line in result.lines], result.clear) == (["beta", "alpha"], True)
    assert result.lines[0].interval
    assert "series-2" in result.lines[0].bar


def test_a_lead_that_chance_may_have_made_is_no_clear_one(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=3)
    prefer(evaluation, rita, "A>B", "A>B", "B>A")
    (result,) = results(evaluation)
    assert (result.lines[0].name, result.clear) == ("alpha", False)
    assert result.lines[0].value == pytest.approx(2 / 3)


def test_two_candidates_show_how_often_each_step_was_chosen(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=4)
    prefer(evaluation, rita, "A>>B", "A>B", "A>B", "both_bad")
    (result,) = results(evaluation)
    counts = [(step.label, step.count) for step in result.steps]
    assert counts == [("alpha much better", 1), ("alpha better", 2), ("Both bad", 1)]
    assert sum(step.width for step in result.steps) == 120


def test_yes_or_no_is_a_rate_and_categories_are_shares(project: Project, rita: User) -> None:
    criteria = [
        Criterion(name="safe", scale="yes_no"),
        Criterion(name="kind", scale="categories", categories=("fact", "opinion")),
        Criterion(name="why", scale="text", required=False),
    ]
    evaluation = make_evaluation(
        project, [rita], rows=4, side_by_side=False, models=["alpha"], criteria=criteria
    )
    rate_all(evaluation, rita, True, "opinion", "because")
    safe, kind = results(evaluation)
    assert (safe.lines[0].value, safe.clear) == (1, None)
    assert [(one.label, one.count) for one in kind.lines[0].segments] == [("opinion", 4)]


# —— how far raters agree


def test_agreement_counts_only_what_two_have_rated(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(
        project, [rita, ravi], rows=3, overlap=2, side_by_side=False, models=["alpha"]
    )
    for user, count in ((rita, 3), (ravi, 2)):
        for held in claim(evaluation=evaluation, user=user, count=count):
            give(held, 1 + held.item.number)
    found = results(evaluation)[0].agreement
    assert found is not None
    assert (found["items"], found["percent"], found["alpha"], found["level"]) == (2, 1, 1, "ordinal")


# —— the fragment


def test_the_evaluations_page_fetches_them(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita])
    page = client_of(alice).get(reverse("people:detail", args=("physics", evaluation.run_id))).text
    assert address(evaluation) in page


def test_they_name_the_leader_with_its_interval(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=12)
    prefer(evaluation, rita, "B>A")
    page = client_of(alice).get(address(evaluation)).text
    assert "<strong>beta</strong> leads with" in page
    assert "100 %" in page


def test_before_the_first_rating_the_page_says_so(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    assert "No ratings yet" in client_of(alice).get(address(make_evaluation(project, [rita]))).text


def test_while_people_rate_the_page_polls_and_gets_only_changes(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], rows=3), client_of(alice)
    give(claim(evaluation=evaluation, user=rita)[0], "A=B")
    assert "every 5s" in client.get(address(evaluation)).text
    assert client.get(address(evaluation), {"seen": 1}).status_code == 204
    give(claim(evaluation=evaluation, user=rita)[0], "A=B")
    assert client.get(address(evaluation), {"seen": 1}).status_code == 200


def test_asking_ends_when_all_is_rated_and_when_the_evaluation_is_closed(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    done, closed = make_evaluation(project, [rita], rows=1), make_evaluation(project, [rita], rows=3)
    rate_all(done, rita, "A=B")
    give(claim(evaluation=closed, user=rita)[0], "A=B")
    evaluation_close(evaluation=closed, by=alice)
    for one in (done, closed):
        assert "every 5s" not in client_of(alice).get(address(one), {"seen": 1}).text


def test_raters_see_none_of_it(project: Project, rita: User, client_of: ClientOf) -> None:
    assert client_of(rita).get(address(make_evaluation(project, [rita]))).status_code == 403


def test_a_reviewer_who_rates_sees_none_of_it_before_the_end(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    both = member("rosa", project, Role.RATER)
    Membership.objects.create(user=both, project=project, role=Role.REVIEWER)
    evaluation = make_evaluation(project, [both], rows=3)
    give(claim(evaluation=evaluation, user=both)[0], "A=B")
    assert "alpha" not in client_of(both).get(address(evaluation)).text
    evaluation_close(evaluation=evaluation, by=alice)
    assert "alpha" in client_of(both).get(address(evaluation)).text
