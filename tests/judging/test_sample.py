"""The sample projects: one per language, and users see the one in their language."""

from __future__ import annotations

import json
import threading

import msgspec
import pytest
from django.conf import LazySettings
from django.test import Client

from datasets.core.kinds import READABLE_KINDS
from evalsite.accounts.models import Membership, Project, User
from judging import sample, sample_people
from judging.core.judges import demo
from judging.core.judges.demo import DemoJudge
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.engine import run_worker
from judging.metrics.models import MetricVersion
from judging.people.models import Evaluation, Rating
from judging.records.models import JudgeReply, Override, Run, RunMetric
from judging.sample_files import written_replies
from judging.teamwork.models import Comment
from tests.conftest import ClientOf, person

pytestmark = pytest.mark.django_db

CHINESE = {"accept-language": "zh-CN"}


@pytest.fixture
def visitor(settings: LazySettings, client_of: ClientOf) -> Client:
    """A client signed in as the local administrator."""
    sample.prepare()
    return client_of(User.objects.get(username="admin"))


def test_a_chinese_visitor_is_shown_the_chinese_sample(visitor: Client) -> None:
    home = visitor.get("/", headers=CHINESE).text
    assert "示例评测" in home
    assert "Sample evaluation" not in home


def test_any_other_visitor_is_shown_the_english_sample(visitor: Client) -> None:
    home = visitor.get("/").text
    assert "Sample evaluation" in home
    assert "示例评测" not in home


def test_both_samples_can_be_opened_in_either_language(visitor: Client) -> None:
    assert "示例项目" in visitor.get("/p/sample-zh/").text


def test_who_belongs_to_one_sample_alone_is_shown_it(visitor: Client, client_of: ClientOf) -> None:
    helper = person("helper")
    Membership.objects.create(user=helper, project=Project.objects.get(slug="sample-zh"), role="rater")
    assert "示例项目" in client_of(helper).get("/").text


@pytest.mark.parametrize(("slug", "language"), [("sample", "en"), ("sample-zh", "zh")])
def test_every_row_of_a_sample_is_in_its_language(visitor: Client, slug: str, language: str) -> None:
    for run in Run.objects.filter(project__slug=slug, kind="judge_only"):
        assert {json.loads(row.raw)["language"] for row in run.version.data_rows.all()} == {language}
        assert run.version.bad_rows == 0


def test_the_judge_of_a_sample_is_asked_in_its_language(visitor: Client) -> None:
    versions = MetricVersion.objects.filter(metric__project__slug="sample-zh")
    judges = [judge for version in versions for judge in json.loads(version.definition).get("judges", [])]
    assert ["你是一名公正的评判者" in judge["template"] for judge in judges] == [True] * 6


@pytest.mark.parametrize("slug", ["sample", "sample-zh"])
def test_a_sample_has_a_metric_of_each_kind(visitor: Client, slug: str) -> None:
    versions = MetricVersion.objects.filter(metric__project__slug=slug)
    definitions = [MetricDefinition.from_json(version.definition) for version in versions]
    assert {definition.gives for definition in definitions if definition.judges} == set(READABLE_KINDS)
    assert sum(definition.compares_candidates for definition in definitions) == 1
    assert sum(bool(definition.rules) for definition in definitions) == 1


def test_pages_of_a_sample_say_that_it_was_written(visitor: Client) -> None:
    assert "were written for it" in visitor.get("/p/sample/").text


@pytest.fixture
def judged(settings: LazySettings) -> None:
    """The samples with their runs judged and people's part added."""
    sample.prepare()
    with ScriptedJudge(DemoJudge(written_replies())) as judge:
        address = judge.url
        for metric in RunMetric.objects.all():
            definition = MetricDefinition.from_json(metric.definition)
            judges = tuple(msgspec.structs.replace(each, url=address) for each in definition.judges)
            metric.definition = msgspec.structs.replace(definition, judges=judges).to_json()
            metric.save()
        Endpoint.objects.update(url=address)
        for run in Run.objects.by_workers():
            work(run)
    sample_people.add_people()


def work(run: Run) -> None:
    run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)


@pytest.mark.django_db(transaction=True)
def test_what_a_newcomer_sees_first(judged: None) -> None:
    """One test for all of it, because judging the samples takes seconds."""
    runs = Run.objects.by_workers()
    assert [(run.state, run.unparsed, run.errors) for run in runs] == [("finished", 0, 0)] * 6
    assert {reply.reasoning for reply in JudgeReply.objects.all()} == set(demo.WRITTEN_NOTES)
    assert [evaluation.open for evaluation in Evaluation.objects.filter(about_run=None)] == [True] * 2
    evaluations = Evaluation.objects.exclude(about_run=None)
    assert [evaluation.run.state for evaluation in evaluations] == ["finished"] * 2
    assert Rating.objects.count() == 2 * sample_people.RATED_ANSWERS * len(sample_people.RATERS)
    assert list(Override.objects.values_list("value", flat=True)) == ["true", "true"]
    assert Comment.objects.count() == 2
    sample_people.add_people()
    assert Comment.objects.count() == 2


def test_a_second_start_makes_nothing_and_names_the_new_port(visitor: Client) -> None:
    Endpoint.objects.update(url="http://127.0.0.1:1/v1")
    port = sample.prepare()
    assert Project.objects.count() == 2
    assert set(Endpoint.objects.values_list("url", flat=True)) == {f"http://127.0.0.1:{port}/v1"}


def test_an_older_sample_in_both_languages_stays_the_only_one(visitor: Client) -> None:
    Project.objects.filter(slug="sample-zh").update(slug="mine")
    sample.prepare()
    assert not Project.objects.filter(slug="sample-zh").exists()
