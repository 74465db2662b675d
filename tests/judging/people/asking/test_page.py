"""The page "Which answers next?"."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import User
from judging.people.asking.models import AnswerDraw
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.judging.people.make import about, rate_each
from tests.make import a_metric

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
    assert "Nothing to draw" in page.get(address(run)).content.decode()
