"""The sample projects: one per language, and users see the one in their language."""

from __future__ import annotations

import json

import pytest
from django.conf import LazySettings
from django.test import Client

from evalsite.accounts.models import Membership, Project, User
from judging import sample
from judging.endpoints.models import Endpoint
from judging.metrics.models import MetricVersion
from judging.records.models import Run
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
    version = Run.objects.get(project__slug=slug, kind="judge_only").version
    assert {json.loads(row.raw)["language"] for row in version.data_rows.all()} == {language}
    assert version.bad_rows == 0


def test_the_judge_of_a_sample_is_asked_in_its_language(visitor: Client) -> None:
    versions = MetricVersion.objects.filter(metric__project__slug="sample-zh")
    asked = [json.loads(one.definition)["judges"][0]["template"] for one in versions]
    assert ["参考答案" in template for template in asked] == [True, True]


def test_a_second_start_makes_nothing_and_names_the_new_port(visitor: Client) -> None:
    Endpoint.objects.update(url="http://127.0.0.1:1/v1")
    port = sample.prepare()
    assert Project.objects.count() == 2
    assert set(Endpoint.objects.values_list("url", flat=True)) == {f"http://127.0.0.1:{port}/v1"}


def test_an_older_sample_in_both_languages_stays_the_only_one(visitor: Client) -> None:
    Project.objects.filter(slug="sample-zh").update(slug="mine")
    sample.prepare()
    assert not Project.objects.filter(slug="sample-zh").exists()
