"""What people said, as the reports of runs count it."""

from __future__ import annotations

import json

import pytest

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.adjudication import adjudicate
from judging.people.assignments import claim
from judging.people.judgements import person_verdicts
from judging.people.models import Evaluation, Item
from judging.runs.models import Run, RunCandidate, RunMetric
from tests.judging.people.make import PREFERENCE, QUALITY, give, make_evaluation, rate_all

pytestmark = pytest.mark.django_db
NOTE = Criterion(name="note", scale="text", required=False)


def said(run: Run) -> list[tuple[str, str, str | None]]:
    return [(one.by, one.source, one.value) for one in person_verdicts(run)]


def single(project: Project, raters: list[User], **more: object) -> Evaluation:
    wanted = {"rows": 1, "models": ["alpha"], "side_by_side": False, "overlap": len(raters), **more}
    return make_evaluation(project, raters, **wanted)  # type: ignore[arg-type]


def judged_by_a_model(evaluation: Evaluation) -> Run:
    """A run over the same answers with a metric called as the criterion is."""
    run = Run.objects.create(project=evaluation.run.project, name="judged", version=evaluation.run.version)
    RunMetric.objects.create(run=run, number=0, name="other", definition="{}")
    RunMetric.objects.create(run=run, number=1, name=QUALITY.name, definition="{}")
    for one in evaluation.run.run_candidates.all():
        RunCandidate.objects.create(run=run, candidate=one.candidate)
    return run


def test_each_rater_has_a_verdict_under_a_pseudonym(project: Project, rita: User, ravi: User) -> None:
    evaluation = single(project, [rita, ravi])
    rate_all(evaluation, rita, 4)
    rate_all(evaluation, ravi, 2)
    assert said(evaluation.run) == [("R1", "rater", "4"), ("R2", "rater", "2")]


def test_a_decision_stands_beside_the_verdicts_it_is_about(project: Project, rita: User, bob: User) -> None:
    evaluation = single(project, [rita])
    rate_all(evaluation, rita, 4)
    item = Item.objects.get(evaluation=evaluation)
    adjudicate(item=item, values={0: 2}, reason="", by=bob)
    adjudicate(item=item, values={0: 3}, reason="seen again", by=bob)
    assert said(evaluation.run)[1:] == [("adjudicated", "adjudicator", "3")]


def test_a_comparison_names_the_other_answer_and_the_side_shown(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    (held,) = claim(evaluation=evaluation, user=rita)
    give(held, "A>B")
    (one,) = person_verdicts(evaluation.run)
    wanted = "A>B" if held.shown_first == 1 else "B>A"
    assert (one.other, one.other_response, one.shown_first) == ("beta", 1, held.shown_first)
    assert json.loads(one.value or "") == wanted


def test_what_was_drawn_says_with_which_probability(project: Project, rita: User) -> None:
    evaluation = single(project, [rita], rows=4, choice={"sample_size": 1})
    rate_all(evaluation, rita, 4)
    (one,) = person_verdicts(evaluation.run)
    assert (one.drawn_with, one.seconds) == (0.25, 5)


def test_gold_and_repeats_say_nothing_of_an_answer(project: Project, rita: User) -> None:
    evaluation = single(project, [rita], rows=2, repeat_share=1.0)
    rate_all(evaluation, rita, 4)
    assert [value for _, _, value in said(evaluation.run)] == ["4", "4"]


def test_the_run_that_an_evaluation_is_about_counts_it_by_the_metrics_name(
    project: Project, rita: User
) -> None:
    evaluation = single(project, [rita], criteria=[QUALITY, NOTE])
    run = judged_by_a_model(evaluation)
    Evaluation.objects.filter(pk=evaluation.pk).update(about_run=run)
    rate_all(evaluation, rita, 4, "a note")
    (one,) = person_verdicts(run)
    assert (one.metric, one.value) == (run.metrics.get(name=QUALITY.name).pk, "4")


def test_of_somebody_who_rated_an_answer_in_two_evaluations_the_newer_verdict_counts(
    project: Project, rita: User, ravi: User
) -> None:
    first = single(project, [rita])
    again = single(project, [ravi, rita], version=first.run.version)
    run = judged_by_a_model(first)
    Evaluation.objects.update(about_run=run)
    rate_all(first, rita, 1)
    rate_all(again, rita, 2)
    rate_all(again, ravi, 3)
    assert sorted(said(run)) == [("R1", "rater", "2"), ("R2", "rater", "3")]


def test_a_verdict_and_a_decision_make_the_kept_figures_of_both_runs_out_of_date(
    project: Project, rita: User, bob: User
) -> None:
    evaluation = single(project, [rita])
    run = judged_by_a_model(evaluation)
    Evaluation.objects.filter(pk=evaluation.pk).update(about_run=run)
    rate_all(evaluation, rita, 4)
    adjudicate(item=Item.objects.get(), values={0: 2}, reason="", by=bob)
    revisions = Run.objects.order_by("pk").values_list("revision", flat=True)
    assert list(revisions) == [2, 2]


def test_nobody_has_said_anything_of_a_run_without_an_evaluation(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], criteria=[PREFERENCE])
    assert said(judged_by_a_model(evaluation)) == []
