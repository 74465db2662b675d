"""Human verdicts cannot be re-judged: it is not offered, and refused with a reason."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.people import assignments, services
from judging.people.models import Evaluation
from judging.records.models import Judgement
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed(project: Project, rita: User, alice: User) -> Evaluation:
    evaluation = make_evaluation(project, [rita], rows=1, models=["alpha"], side_by_side=False)
    give(assignments.claim(evaluation=evaluation, user=rita)[0], 4)
    services.evaluation_close(evaluation=evaluation, by=alice)
    return evaluation


def address(evaluation: Evaluation) -> str:
    return reverse("runs:judge_again", args=("physics", evaluation.run_id))


def test_neither_the_list_nor_a_judgement_offers_it(
    closed: Evaluation, alice: User, client_of: ClientOf
) -> None:
    one = Judgement.objects.get(run=closed.run_id)
    listed = reverse("runs:judgements", args=("physics", closed.run_id))
    for page in (listed, f"{listed}{one.pk}/"):
        assert address(closed) not in client_of(alice).get(page).text


@pytest.mark.parametrize("method", ["get", "post"])
def test_who_asks_all_the_same_is_refused_with_a_reason(
    method: str, closed: Evaluation, alice: User, client_of: ClientOf
) -> None:
    answer = getattr(client_of(alice), method)(address(closed))
    assert (answer.status_code, Judgement.objects.count()) == (409, 1)
    assert "Human ratings can't be re-judged" in answer.text


def test_who_may_not_run_anything_is_refused_as_before(
    closed: Evaluation, bob: User, client_of: ClientOf
) -> None:
    assert client_of(bob).post(address(closed)).status_code == 403
