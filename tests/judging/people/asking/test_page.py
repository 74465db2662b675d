"""The page "Which answers next?"."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.people.asking.models import AnswerDraw
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, judge, said
from tests.judging.people.make import about, rate_each
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


def address(run: Run) -> str:
    return reverse("runs:ask", args=("physics", run.pk))


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def test_an_analyst_draws_answers_into_a_new_evaluation(run: Run, page: Client, rita: User) -> None:
    answer = page.post(address(run), {"size": 20, "raters": [rita.pk], "overlap": 1})
    draw = AnswerDraw.objects.get()
    assert answer.url == reverse("people:detail", args=("physics", draw.evaluation.run_id))
    assert draw.evaluation.raters.get().user == rita


def test_the_meter_tells_what_further_ratings_buy(run: Run, page: Client, rita: User) -> None:
    assert "From 20 rows on" in page.get(address(run)).content.decode()
    rate_each(about(run, [rita], sample={"sample_size": 25}), rita, lambda item: item.row.line % 5 != 0)
    meter = page.get(address(run)).context["meter"]
    assert meter.enough
    assert meter.rated == 25


def test_a_draw_says_that_it_ends_the_earlier_one(run: Run, page: Client, rita: User) -> None:
    about(run, [rita], sample={"sample_size": 25})
    assert "25 answers of earlier draws have no rating yet" in page.get(address(run)).content.decode()


def test_a_size_out_of_range_is_named_and_nothing_is_drawn(run: Run, page: Client) -> None:
    assert page.post(address(run), {"size": 0}).status_code == 422
    assert not AnswerDraw.objects.exists()


def test_raters_and_reviewers_cannot_draw(run: Run, rita: User, client_of: ClientOf) -> None:
    assert client_of(rita).get(address(run)).status_code == 403


def test_comparisons_are_not_drawn_this_way(page: Client, project: object) -> None:
    metric = a_metric(JUDGE_URL, gives="category", labels=())
    run = a_judged_run(project, lambda _place: said("good"), metric=metric)  # type: ignore[arg-type]
    content = page.get(address(run)).content.decode()
    assert "Nothing to draw" in content
    assert "Comparisons and categories have no corrected score" in content


def test_metrics_that_are_not_drawn_are_named(page: Client, project: Project) -> None:
    scored = a_metric(JUDGE_URL, gives="pass_fail", parse="bool")
    labelled = a_metric(JUDGE_URL, name="topic", gives="category", labels=())
    run = a_run(a_version(project, rows=3, models=["alpha"]), scored, labelled)
    judge(run, lambda _place: said(True))
    assert "Not drawn here: topic." in page.get(address(run)).content.decode()
    assert "Not drawn here" not in page.get(address(a_judged_run(project, metric=scored))).content.decode()


def test_earlier_draws_are_listed_with_what_led_them(run: Run, page: Client, rita: User) -> None:
    page.post(address(run), {"size": 20, "raters": [rita.pk], "overlap": 1})
    content = page.get(address(run)).content.decode()
    assert '<td data-label="Probabilities from">the judge\'s doubts</td>' in content.replace("&#x27;", "'")


def test_the_pace_is_told_with_what_it_measures(run: Run, page: Client) -> None:
    assert "At 30 seconds an item" not in page.get(address(run)).content.decode()
