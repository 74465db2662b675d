"""An organiser tries items as raters will have them, in a draft already; nothing is stored."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.gold import gold_add, gold_of_item
from judging.people.models import Assignment, Evaluation, Rating
from tests.conftest import ClientOf
from tests.judging.people.make import make_evaluation

pytestmark = pytest.mark.django_db


def address(evaluation: Evaluation, number: int = 1) -> str:
    return f"/p/physics/evaluations/{evaluation.run_id}/items/{number}/try/"


@pytest.fixture
def draft(project: Project, rita: User) -> Evaluation:
    """Its first item is gold."""
    evaluation = make_evaluation(project, [rita], rows=3, draft=True, guideline="Facts count.")
    item = evaluation.items.get(number=1)
    gold_add(
        evaluation=evaluation,
        gold=[gold_of_item(evaluation, item, {"preference": "A=B"}, "Both are right.")],
    )
    return evaluation


def test_an_item_of_a_draft_is_shown_as_to_a_rater(
    draft: Evaluation, alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert address(draft) in client.get(f"/p/physics/evaluations/{draft.run_id}/").text
    page = client.get(address(draft)).text
    assert "Facts count." in page
    assert 'name="v0"' in page
    assert "alpha says 1.1" in page
    assert ">alpha<" not in page


def test_a_verdict_is_compared_with_the_known_answer_and_not_stored(
    draft: Evaluation, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).post(address(draft), {"v0": "2"}).text  # a tie
    assert "Both are right." in page
    assert "right</span>" in page
    assert not Assignment.objects.exists()
    assert not Rating.objects.exists()


def test_a_missing_choice_is_said(draft: Evaluation, alice: User, client_of: ClientOf) -> None:
    answer = client_of(alice).post(address(draft, 2), {})
    assert (answer.status_code, "Please choose." in answer.text) == (422, True)


def test_ranked_answers_are_tried_too(project: Project, alice: User, client_of: ClientOf) -> None:
    rank = Criterion(name="Preference", scale="rank")
    models = ("alpha", "beta", "gamma")
    ranking = make_evaluation(project, models=models, scheme="rank", criteria=[rank], draft=True)
    page = client_of(alice).post(address(ranking), {"v0.1": "0", "v0.2": "1", "v0.3": "1"}).text
    assert "A &gt; B = C" in page
