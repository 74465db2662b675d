"""Applying a changed rule program to stored answers: new attempts that reuse stored replies, without model calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from msgspec import structs

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.engine import run_worker
from judging.filters.filter_form import rule_lines_of
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_create, metric_edit
from judging.records.definitions import definitions_now
from judging.records.models import Run, RunMetric
from judging.runs.rerun import reparse
from judging.runs.services import ChosenMetric, run_create
from judging.transfer.export.records import load, record
from tests.conftest import ClientOf
from tests.judging.runs.rule_runs import FUZZY, GOOD, MECHANICAL, a_version

pytestmark = pytest.mark.django_db(transaction=True)

STRICTER = MECHANICAL.replace("字数限制:4", "字数限制:3")
SHIFTED = FUZZY.replace("标签:精确匹配\n主题:模糊匹配", "主题:字数限制:9\n标签:精确匹配\n主题:模糊匹配")


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(reply="差一字。\n评分:[[3]]") as server:
        yield server


def work(run: Run) -> Run:
    run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)
    return Run.objects.get(pk=run.pk)


def a_rule_run(project: Project, rules: str, url: str = "") -> Run:
    judges = (JudgeModel(name="裁判", template="", url=url, model="scripted"),) if url else ()
    definition = MetricDefinition(name="字段", max_score=5, rules=rules, judges=judges)
    metric = metric_create(project=project, definition=definition, user=None)
    first = MetricVersion.objects.get(metric=metric)
    version = a_version(GOOD, "{}")
    made = run_create(
        project=version.dataset.project,
        name="规则",
        version=version,
        candidates=list(version.candidates.all()),
        metrics=[ChosenMetric(definition, first)],
        user=None,
    )
    return work(made)


def offered(run: Run, rules: str) -> list[MetricDefinition]:
    """Edit the metric to this program; return the definitions the run can be re-parsed with."""
    metric = Metric.objects.get(name="字段")
    before = MetricDefinition.from_json(
        MetricVersion.objects.filter(metric=metric).latest("number").definition
    )
    changed = structs.replace(before, rules=rules)
    number = MetricVersion.objects.filter(metric=metric).count()
    metric_edit(metric=metric, definition=changed, based_on=number, user=None)
    found = RunMetric.objects.select_related("metric_version").get(run=run)
    return [definition for _version, definition in reparse.fitting_versions(found)]


def again(run: Run, rules: str) -> Run:
    found = RunMetric.objects.get(run=run)
    (definition, *_) = offered(run, rules)
    reparse.run_reparse(run=run, run_metric=found, definition=definition, user=None)
    return work(run)


def values(run: Run) -> list[object]:
    return [record(one)["value"] for one in load(run) if one.judgement.current]


def test_a_changed_program_is_applied_to_the_stored_answers(project: Project) -> None:
    run = a_rule_run(project, MECHANICAL)
    assert values(run) == [5, 1]
    run = again(run, STRICTER)
    assert (values(run), run.state, run.scored) == ([1, 1], "finished", 2)
    assert run.judgements.filter(current=False).count() == 2


def test_judged_lines_take_what_was_said_before_wherever_they_are(
    project: Project, judge: ScriptedJudge
) -> None:
    run = a_rule_run(project, FUZZY, judge.url)
    assert (values(run), len(judge.requests)) == ([4, 1], 1)
    run = again(run, SHIFTED)
    assert values(run)[0] == (5 + 5 + 3) / 3
    assert len(judge.requests) == 1


def test_the_page_of_a_reparsed_judgement_still_names_the_field_that_was_asked_about(
    project: Project, judge: ScriptedJudge, client_of: ClientOf, alice: User
) -> None:
    run = again(a_rule_run(project, FUZZY, judge.url), SHIFTED)
    run.project.memberships.create(user=alice, role="analyst")
    found = run.judgements.filter(current=True).order_by("position").first()
    assert found is not None
    page = client_of(alice).get(f"/p/{run.project.slug}/runs/{run.pk}/judgements/{found.pk}/")
    assert "裁判 · 主题" in page.text


@pytest.mark.parametrize(
    "rules",
    [
        FUZZY.replace("主题:模糊匹配", "标签:模糊匹配"),
        FUZZY.replace("主题:模糊匹配", "主题:模糊匹配\n主题:模糊匹配"),
        FUZZY.replace("模糊匹配", "fuzzy_match"),  # the question is then in English
    ],
)
def test_a_program_that_asks_more_is_not_offered(rules: str, project: Project, judge: ScriptedJudge) -> None:
    assert offered(a_rule_run(project, FUZZY, judge.url), rules) == []


def test_a_program_that_asks_less_is_offered_and_can_be_taken_back(
    project: Project, judge: ScriptedJudge
) -> None:
    run = again(a_rule_run(project, FUZZY, judge.url), MECHANICAL)
    assert values(run) == [5, 1]
    assert values(again(run, FUZZY))[0] == 4


def test_the_filter_names_the_lines_of_the_program_that_is_applied_now(project: Project) -> None:
    run = again(a_rule_run(project, MECHANICAL), STRICTER)
    assert rule_lines_of(definitions_now(run).values(), "")[1] == ("3", "3 · 主题:字数限制:3")


def test_the_run_leads_there_and_the_page_says_what_it_takes(
    project: Project, client_of: ClientOf, alice: User
) -> None:
    run = a_rule_run(project, MECHANICAL)
    run.project.memberships.create(user=alice, role="analyst")
    address = f"/p/{run.project.slug}/runs/{run.pk}/"
    found = RunMetric.objects.get(run=run)
    assert f"read-again/{found.pk}/" in client_of(alice).get(address).text
    page = client_of(alice).get(f"{address}read-again/{found.pk}/").text
    assert "No other version of this metric can be applied." in page
    assert "Custom settings" not in page
