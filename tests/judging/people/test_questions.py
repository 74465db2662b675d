"""Raters ask about items; organisers answer to one or to all, and read all comments."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError

from evalsite.accounts.models import Project, User
from judging.people import assignments
from judging.people.models import Assignment, Evaluation
from judging.people.questions.models import Question
from judging.people.questions.selectors import answered_for
from judging.people.questions.services import question_answer, question_ask
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}


@pytest.fixture
def evaluation(project: Project, rita: User, ravi: User) -> Evaluation:
    return make_evaluation(project, [rita, ravi], rows=4)


@pytest.fixture
def held(evaluation: Evaluation, rita: User) -> Assignment:
    return assignments.claim(evaluation=evaluation, user=rita, count=1)[0]


def texts(evaluation: Evaluation, user: User) -> list[str]:
    return [answer.text for answer in answered_for(evaluation, user)]


def test_a_question_is_asked_once_with_its_item(held: Assignment, client_of: ClientOf, rita: User) -> None:
    client, sent = client_of(rita), {"text": "Is this about law?", "key": str(uuid4())}
    address = f"/p/physics/desk/{held.evaluation.run_id}/{held.token}/question/"
    for _ in range(2):
        assert client.post(address, sent, headers=JSON).status_code == 200
    question = Question.objects.get()
    assert (question.text, question.item_id, question.rater_id) == (
        "Is this about law?",
        held.item_id,
        held.rater_id,
    )


def test_an_empty_question_is_refused(held: Assignment, client_of: ClientOf, rita: User) -> None:
    address = f"/p/physics/desk/{held.evaluation.run_id}/{held.token}/question/"
    refused = client_of(rita).post(address, {"text": " "}, headers=JSON)
    assert (refused.status_code, refused.json()["sentence"]) == (422, "Write your question first.")


def test_another_raters_item_cannot_be_asked_about(held: Assignment, client_of: ClientOf, ravi: User) -> None:
    address = f"/p/physics/desk/{held.evaluation.run_id}/{held.token}/question/"
    assert client_of(ravi).post(address, {"text": "Hm?"}, headers=JSON).status_code == 404


def test_an_answer_reaches_its_rater_or_all(
    held: Assignment, evaluation: Evaluation, rita: User, ravi: User, alice: User
) -> None:
    question = question_ask(assignment=held, text="Which law?", key=uuid4())
    assert texts(evaluation, rita) == []
    question_answer(question=question, answer="The national one.", to_all=False, by=alice)
    assert (texts(evaluation, rita), texts(evaluation, ravi)) == (["Which law?"], [])
    question_answer(question=question, answer="The **national** one.", to_all=True, by=alice)
    assert texts(evaluation, ravi) == ["Which law?"]


def test_the_desk_lists_the_answers_in_the_guideline(
    held: Assignment, evaluation: Evaluation, ravi: User, alice: User, client_of: ClientOf
) -> None:
    question = question_ask(assignment=held, text="Which law?", key=uuid4())
    question_answer(question=question, answer="The national one.", to_all=True, by=alice)
    base = f"/p/physics/desk/{evaluation.run_id}/"
    assert "The national one." in client_of(ravi).get(base).text
    assert client_of(ravi).get(f"{base}items/").json()["answers"] == 1
    told = client_of(ravi).get(f"{base}guideline/").json()
    assert (told["answers"], "your question" in told["html"]) == (1, False)


@pytest.mark.parametrize("answer", ["Look at alpha's answer.", " ", "x" * 10_001])
def test_a_model_name_or_nothing_is_no_answer(
    answer: str, held: Assignment, alice: User, client_of: ClientOf
) -> None:
    question = question_ask(assignment=held, text="Which one?", key=uuid4())
    with pytest.raises(ValidationError):
        question_answer(question=question, answer=answer, to_all=False, by=alice)
    address = f"/p/physics/evaluations/{held.evaluation.run_id}/questions/{question.pk}/answer/"
    assert client_of(alice).post(address, {"answer": answer}).status_code == 422


def test_a_model_name_in_the_question_goes_to_no_other_rater(held: Assignment, alice: User) -> None:
    question = question_ask(assignment=held, text="Is this alpha?", key=uuid4())
    with pytest.raises(ValidationError, match="model name alpha"):
        question_answer(question=question, answer="Please don't guess.", to_all=True, by=alice)
    question_answer(question=question, answer="Please don't guess.", to_all=False, by=alice)


def test_the_organiser_answers_on_a_page_with_all_comments(
    held: Assignment, evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    question = question_ask(assignment=held, text="Which law?", key=uuid4())
    give(held, "A>B", comment="Hard to read")
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/"
    assert "1 question from a rater waits" in client.get(address).text
    page = client.get(f"{address}questions/").text
    assert all(text in page for text in ("Which law?", "Hard to read", f"items/{held.item.number}/"))
    client.post(f"{address}questions/{question.pk}/answer/", {"answer": "Ours.", "to_all": "on"})
    assert "waits for an answer" not in client.get(address).text
    assert "to all raters" in client.get(f"{address}questions/").text
