"""Runs of checklists: the judgements, their replies and figures, and rows without a rubric."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.checklists import checklist_from
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.records.models import JudgeReply, Run
from judging.reports.figures import current_figures
from judging.runs.selectors import MetricChoice, cost_of
from judging.runs.services import RunOptions
from tests.conftest import ClientOf
from tests.judging.checklists.helpers import RUBRIC, a_checklist, with_rubrics
from tests.judging.working import work
from tests.make import a_run

pytestmark = pytest.mark.django_db(transaction=True)


def attentive(request: Received) -> str:
    """Alpha names a dose and is kind, beta recommends antibiotics; of row 3 nobody knows whether beta is kind."""
    alpha = "alpha says" in request.prompt
    if "is kind" in request.prompt and "beta says 3" in request.prompt:
        return "Hard to say."
    if "antibiotics" in request.prompt:
        return f"I looked.\nVerdict: {'not met' if alpha else 'met'}"
    return f"I looked.\nVerdict: {'met' if alpha else 'not met'}"


@pytest.fixture
def run(project: Project) -> Run:
    with ScriptedJudge(attentive) as judge:
        return work(a_run(with_rubrics(project, [RUBRIC] * 3), a_checklist(judge.url)))


def test_each_judgement_has_a_reply_for_each_criterion(run: Run) -> None:
    assert (run.state, run.calls, run.scored, run.unparsed) == ("finished", 18, 5, 1)
    criteria = JudgeReply.objects.filter(judgement__run=run).values_list("criterion", flat=True)
    assert sorted(criteria) == [1] * 6 + [2] * 6 + [3] * 6


def test_values_are_uncut_and_an_open_criterion_has_bounds(run: Run) -> None:
    judged = run.judgements.order_by("position").values_list("candidate__name", "score", "reason", "detail")
    assert list(judged)[:2] == [("alpha", 1.0, "", ""), ("beta", pytest.approx(-6 / 11), "", "")]
    assert list(judged)[-1] == ("beta", None, "criteria_open", "1/3: 0…0")


def test_means_are_cut_at_the_end(run: Run) -> None:
    cells = current_figures(run).figures.report["candidates"]
    beta = cells["beta"]["quality"]
    assert (cells["alpha"]["quality"]["mean"], beta["mean"]) == (1.0, 0.0)
    assert (cells["alpha"]["quality"]["ci_low"], cells["alpha"]["quality"]["ci_high"]) == (0.0, 1.0)
    assert (beta["low_bound"], beta["high_bound"], beta["off_scale"], beta["unparsed"]) == (0.0, 0.0, 0, 1)


def test_the_report_has_criteria_and_tags(run: Run) -> None:
    beta = current_figures(run).figures.report["candidates"]["beta"]["quality"]
    assert [
        (entry["criterion"], entry["met"], entry["items"], entry["unparsed"]) for entry in beta["criteria"]
    ] == [
        ("names a dose", 0, 3, 0),
        ("is kind", 0, 3, 1),
        ("recommends antibiotics", 3, 3, 0),
    ]
    assert {tag: (cell["mean"], cell["items"]) for tag, cell in beta["tags"].items()} == {
        "accuracy": (0.0, 3),
        "style": (0.0, 2),
    }


def test_criteria_can_be_found_in_the_list(run: Run) -> None:
    met = matching(run, Filters(further={"criterion": "met:names a dose"}))
    assert set(met.values_list("candidate__name", flat=True)) == {"alpha"}
    assert matching(run, Filters(further={"criterion": "open:is kind"})).count() == 1


def test_the_page_of_a_judgement_shows_each_criterion(run: Run, alice: User, client_of: ClientOf) -> None:
    judgement = run.judgements.get(reason="criteria_open")
    page = client_of(alice).get(reverse("runs:judgement", args=(run.project.slug, run.pk, judgement.pk)))
    text = page.content.decode()
    assert [criterion in text for criterion in ("names a dose", "is kind", "recommends antibiotics")] == [
        True
    ] * 3
    assert [text.count(f'">{outcome}</span>') for outcome in ("can't tell", "met", "not met")] == [1, 1, 1]


def test_all_at_once_is_one_request(project: Project) -> None:
    reply = (
        '{"criteria": [{"id": "1", "reasoning": "a", "verdict": "met"}, {"id": "2", "verdict": "not met"}]}'
    )
    with ScriptedJudge(lambda _: reply) as judge:
        metric = a_checklist(judge.url, at_once=True, template="{{ criteria[0].text }}")
        run = work(a_run(with_rubrics(project, [RUBRIC[:2]], models=["alpha"]), metric))
    judgement = run.judgements.get()
    assert (run.calls, judgement.score) == (1, pytest.approx(7 / 11))
    checklist = checklist_from(judgement.checklist)
    assert checklist is not None
    assert [criterion.met for criterion in checklist.criteria] == [True, False]


def test_rows_without_a_rubric_refuse_the_start_until_they_are_left_out(project: Project) -> None:
    version = with_rubrics(project, [RUBRIC, "Be kind", None])
    with pytest.raises(ValidationError, match="2 of 3 rows"):
        a_run(version, a_checklist("http://127.0.0.1:9"))
    with ScriptedJudge(attentive) as judge:
        options = RunOptions(leave_out_unreadable=True)
        run = work(a_run(version, a_checklist(judge.url), options=options))
    assert (run.total, run.rubric_rows_left_out) == (2, 2)


def test_the_estimate_counts_criteria(project: Project) -> None:
    version = with_rubrics(project, [RUBRIC, RUBRIC[:1]])
    metric = MetricChoice(None, a_checklist("http://127.0.0.1:9"), [])
    version.candidates.update(responses=2)
    candidates = list(version.candidates.all())
    assert cost_of(version, candidates, [metric], None).calls == 8
