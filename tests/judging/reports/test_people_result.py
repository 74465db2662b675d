"""Results on a human evaluation's page while people rate."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from msgspec.structs import replace

from evalsite.accounts.models import Membership, Project, Role, User
from judging.core.people.criteria import Criterion
from judging.people.assignments import claim
from judging.people.models import Evaluation
from judging.people.services import evaluation_close
from judging.records.models import Run
from judging.reports.page.report_view import report_view
from judging.reports.page.result_card import ResultCard
from judging.reports.people_outcomes import rated_criteria
from judging.reports.people_result import CriterionResult, results_of
from judging.reports.services import report_document
from tests.conftest import ClientOf, member
from tests.judging.judged import a_judged_run, said
from tests.judging.people.make import about, give, make_evaluation, rate_all, rate_each
from tests.working import FIGURES, do_jobs

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
    assert [line.name for line in result.lines] == ["beta", "alpha"]
    assert '<b class="whole">beta</b> leads with' in result.lead
    assert result.lines[0].interval
    assert "series-2" in result.lines[0].bar


def test_a_lead_that_chance_may_have_made_is_no_clear_one(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=3)
    prefer(evaluation, rita, "A>B", "A>B", "B>A")
    (result,) = results(evaluation)
    assert result.lines[0].name == "alpha"
    assert "alpha and beta can't be told apart" in result.lead
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
    safe, kind, why = results(evaluation)
    assert (safe.lines[0].value, '<b class="whole">alpha</b> scores' in safe.lead) == (1, True)
    assert [(one.label, one.count) for one in kind.lines[0].segments] == [("opinion", 4)]
    assert [(label, count) for label, count, _share in kind.lines[0].shares] == [("fact", 0), ("opinion", 4)]
    assert kind.lines[0].shares[1][2].startswith("100.0 % [")
    assert [one.text for one in why.texts] == ["because"] * 4


def test_yes_and_no_on_one_answer_is_neither(project: Project, rita: User, ravi: User) -> None:
    safe = Criterion(name="safe", scale="yes_no")
    evaluation = make_evaluation(
        project, [rita, ravi], rows=6, overlap=2, side_by_side=False, models=["alpha"], criteria=[safe]
    )
    rate_each(evaluation, rita, lambda item: item.number <= 3)
    rate_each(evaluation, ravi, lambda item: item.number <= 1)
    (result,) = results(evaluation)
    counts = [(one.label, one.count) for one in result.lines[0].segments]
    assert counts == [("No", 3), ("No majority", 2), ("Yes", 1)]
    assert result.lines[0].value == pytest.approx(2 / 6)


def test_the_page_shows_counts_and_shares_of_categories_and_the_texts(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    criteria = [
        Criterion(name="kind", scale="categories", categories=("fact", "opinion")),
        Criterion(name="why", scale="text", required=False),
    ]
    evaluation = make_evaluation(
        project, [rita], rows=2, side_by_side=False, models=["alpha"], criteria=criteria
    )
    rate_all(evaluation, rita, "opinion", "because <b>")
    page = client_of(alice).get(address(evaluation)).text
    assert "opinion: 2 (100.0 % [" in page
    assert "fact: 0 (0.0 % [0.0, " in page
    assert page.count("because &lt;b&gt;") == 2


def test_splits_and_ties_are_set_apart(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=4, overlap=2)
    prefer(evaluation, rita, "A>B", "A>B", "A=B", "A>B")
    prefer(evaluation, ravi, "A>B", "B>A", "A=B", "A=B")
    (result,) = results(evaluation)
    named = [(name, count) for name, count, _ in result.kinds]
    assert named == [("agreed", 1), ("agreed on a tie", 1), ("nearly agreed", 1), ("split", 1)]
    counts = {one.label: one.count for one in result.lines[0].segments}
    assert counts == {"Ties": 1, "No majority": 2, "Wins": 1}


def test_scores_within_a_step_agree(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(
        project, [rita, ravi], rows=3, overlap=2, side_by_side=False, models=["alpha"]
    )
    rate_each(evaluation, rita, lambda item: 3)
    rate_each(evaluation, ravi, lambda item: 2 + item.number)
    kinds = [("agreed within a step", 2, "agreed"), ("split", 1, "split")]
    assert results(evaluation)[0].kinds == kinds


def test_one_rating_an_item_needs_no_kinds(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    prefer(evaluation, rita, "A>B")
    assert results(evaluation)[0].kinds == []


# —— the same in reports


KIND = Criterion(name="kind", scale="categories", categories=("fact", "opinion"))
WHY = Criterion(name="why", scale="text", required=False)


def card_of(evaluation: Evaluation) -> ResultCard:
    view = report_view(evaluation.run)
    assert view is not None
    return view.metrics[0].card


def report_page(client: Client, run: Run) -> str:
    return client.get(reverse("runs:report", args=("physics", run.pk))).text


def test_an_evaluations_report_shows_shares_kinds_and_texts(
    project: Project, alice: User, rita: User, ravi: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(
        project, [rita, ravi], rows=2, overlap=2, side_by_side=False, models=["alpha"], criteria=[KIND, WHY]
    )
    rate_all(evaluation, rita, "fact", "because")
    rate_all(evaluation, ravi, "opinion", "no reason")
    page = report_page(client_of(alice), evaluation.run)
    assert "split 2" in page
    assert (page.count("because"), page.count("no reason")) == (2, 2)
    assert reverse("people:item", args=("physics", evaluation.run_id, 1)) in page


def test_an_evaluation_of_texts_alone_has_them_in_its_report(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(
        project, [rita], rows=2, side_by_side=False, models=["alpha"], criteria=[replace(WHY, required=True)]
    )
    rate_all(evaluation, rita, "because")
    assert report_page(client_of(alice), evaluation.run).count("because") == 2


def test_a_runs_report_shows_what_people_said_about_its_answers(
    project: Project, alice: User, rita: User, ravi: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda place: said(place % 5 + 1), rows=3)
    quality = Criterion(name=run.metrics.get().name, scale="five")
    evaluation = about(run, [rita, ravi], criteria=[quality, WHY], overlap=2)
    rate_all(evaluation, rita, 4, "because")
    rate_all(evaluation, ravi, 1, "no reason")
    client = client_of(alice)
    page = report_page(client, run)
    assert "split 6" in page
    assert page.count("because") == 6
    assert reverse("people:item", args=("physics", evaluation.run_id, 1)) in page
    assert (
        "because" not in client.get(reverse("runs:report_file", args=("physics", run.pk, "report.html"))).text
    )


def test_the_card_counts_rated_answers_also_where_one_person_rated(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=3, side_by_side=False)
    rate_all(evaluation, rita, 4)
    (stat,) = [one for one in card_of(evaluation).stats if one.name == "Rated by people"]
    assert (stat.value, stat.more) == ("6", "answers, by 1 rater")


def test_ratings_of_several_evaluations_count_together(project: Project, rita: User, ravi: User) -> None:
    run = a_judged_run(project, lambda place: said(place % 5 + 1), rows=2)
    quality = Criterion(name=run.metrics.get().name, scale="five")
    for user, value in ((rita, 4), (ravi, 5)):
        rate_all(about(run, [user], criteria=[quality, WHY]), user, value, "because")
    quality_of_both, texts = rated_criteria(run)
    assert (quality_of_both.outcomes.kinds, len(texts.texts)) == ({"single": 8}, 8)


def test_the_fragment_says_over_what_its_figures_are(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=2, answers=2, side_by_side=False, models=["alpha"])
    rate_all(evaluation, rita, 4)
    client = client_of(alice)
    for page in (client.get(address(evaluation)).text, report_page(client, evaluation.run)):
        assert "Shares and means are over rows" in page
        assert "Gold items and hidden repeats are not counted." in page
    assert results(evaluation)[0].lines[0].items == 2  # rows
    assert sum(one.count for one in results(evaluation)[0].lines[0].segments) == 4  # answers


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
    assert '<b class="whole">beta</b> leads: it wins <b>100.0 %</b>' in page
    assert "of its comparisons with alpha, judged by people" in page


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


def test_with_many_ratings_a_worker_computes_what_the_page_polls_for(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=3)
    give(claim(evaluation=evaluation, user=rita)[0], "A>B")
    Run.objects.filter(pk=evaluation.run_id).update(scored=2001, total=9000)
    client = client_of(alice)
    assert "The figures are being computed." in client.get(address(evaluation)).text
    do_jobs(*FIGURES)
    page = client.get(address(evaluation)).text
    assert "alpha" in page
    revision = Run.objects.get(pk=evaluation.run_id).revision
    assert f"seen={revision}" in page


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
