"""A metric's judges against people, beside its editor."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.judging.people.make import about, rate_each
from tests.make import a_metric

pytestmark = pytest.mark.django_db


@pytest.fixture
def metric(project: Project) -> Metric:
    return metric_create(project=project, definition=a_metric(JUDGE_URL), user=None)


NOTHING = "No answer has both a verdict of this metric and a rating by people yet."


@pytest.fixture
def run(project: Project, metric: Metric) -> Run:
    """Six rows, scored 1, 2, … 6 by version 1 of the metric."""
    run = a_judged_run(project, lambda place: said(place + 1), rows=6, models=["alpha"])
    run.metrics.update(metric_version=metric.versions.get())
    return run


def shown(client_of: ClientOf, user: User, metric: Metric) -> str:
    address = reverse("runs:metric_people", args=(metric.project.slug, metric.pk))
    return client_of(user).get(address).content.decode().strip()


def test_without_people_there_is_nothing(client_of: ClientOf, alice: User, metric: Metric, run: Run) -> None:
    assert NOTHING in shown(client_of, alice, metric)
    about(run, [])
    assert NOTHING in shown(client_of, alice, metric)


def test_the_newest_rated_run_shows_agreement_and_disagreements(
    client_of: ClientOf, alice: User, rita: User, metric: Metric, run: Run
) -> None:
    rate_each(about(run, [rita]), rita, lambda item: 4)
    html = shown(client_of, alice, metric)
    assert f'<a href="{reverse("runs:report", args=(run.project.slug, run.pk))}">{run.name}</a>' in html
    assert "Version 1 beside people" in html
    assert "Strongest disagreements" in html
    assert "Because. Score: [[1]]" in html


def test_another_metric_has_its_own(
    client_of: ClientOf, alice: User, rita: User, project: Project, run: Run
) -> None:
    rate_each(about(run, [rita]), rita, lambda item: 4)
    other = metric_create(project=project, definition=a_metric(JUDGE_URL, name="other"), user=None)
    assert NOTHING in shown(client_of, alice, other)


def test_the_editor_asks_for_it(client_of: ClientOf, alice: User, metric: Metric) -> None:
    page = client_of(alice).get(reverse("metrics:edit", args=(metric.project.slug, metric.pk)))
    assert reverse("runs:metric_people", args=(metric.project.slug, metric.pk)) in page.content.decode()
