"""The words that a verdict was read from: on the judgement's page, as a filter, and counted by the report."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.records.models import Run
from judging.reports.figures import current_figures
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def judged(project: Project, *replies: str) -> Run:
    """One judgement for each reply."""

    def reply(asked: Received) -> Answer:
        return Answer(replies[len(judge.requests) - 1])

    with ScriptedJudge(reply) as judge:
        version = a_version(project, rows=len(replies), models=["alpha"])
        return work(a_run(version, a_metric(judge.url)))


def page_of(client: Client, run: Run, tab: str = "") -> str:
    judgement = run.judgements.get()
    url = reverse("runs:judgement", args=(run.project.slug, run.pk, judgement.pk))
    return client.get(url, {"tab": tab} if tab else {}).content.decode()


@pytest.mark.parametrize("tab", ["", "reply"])
def test_the_page_marks_the_words_that_were_read_and_says_how(
    client: Client, project: Project, tab: str
) -> None:
    text = page_of(client, judged(project, "Good & clear.\n\nScore: [[8]]"), tab)
    assert "Score: <mark>[[8]]</mark>" in text
    assert "Read from the reply: <mark>[[8]]</mark> (double brackets)" in text


def test_where_nothing_was_read_all_that_stood_there_is_marked_and_named(
    client: Client, project: Project
) -> None:
    text = page_of(client, judged(project, "First [[7]], then [[8]]."))
    assert "First <mark>[[7]]</mark>, then <mark>[[8]]</mark>." in text
    assert "It says “[[7]] | [[8]]”." in text


def test_the_report_counts_the_forms_and_links_to_their_judgements(client: Client, project: Project) -> None:
    run = judged(project, "Score: [[8]]", "[[7]]", '{"score": 6}', "I cannot say.")
    assert current_figures(run).figures.forms == {"quality": {"json": 1, "brackets": 2}}
    text = client.get(reverse("runs:report", args=(project.slug, run.pk))).content.decode()
    assert 'double brackets <a href="' in text
    assert "form=brackets" in text


def test_the_filter_finds_judgements_by_how_they_were_read(client: Client, project: Project) -> None:
    run = judged(project, "Score: [[8]]", '{"score": 6}')
    assert [found.value for found in matching(run, Filters(form="json"))] == ["6"]
    page = client.get(reverse("runs:judgements", args=(project.slug, run.pk)), {"form": "json"})
    assert [line.judgement.value for line in page.context["page"].lines] == ["6"]
