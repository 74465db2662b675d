"""No response to a rater names a model: no page, fragment, JSON, header or error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import resolve

from datasets.models import Candidate, Response
from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people import assignments
from judging.people.models import Assignment, Evaluation
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation
from tests.make import a_version
from tests.routes import routes

pytestmark = pytest.mark.django_db
MODELS = ("one", "two", "three")
SECRETS = ("Qwen3-Secret", "GPT-Hidden", "gpt-model-field", "finish-why")


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    """Candidates' names do not occur in their answers, but the responses name models in other fields."""
    version = a_version(project, rows=4)
    for place, one in enumerate(version.candidates.order_by("pk")):
        Candidate.objects.filter(pk=one.pk).update(name=SECRETS[place])
    for number, answer in enumerate(Response.objects.filter(row__version=version)):
        found = {
            "content": f"answer {number}",
            "model": SECRETS[2],
            "finish_reason": SECRETS[3],
            "reasoning_content": "hm",
        }
        Response.objects.filter(pk=answer.pk).update(raw=json.dumps(found))
    return make_evaluation(project, [rita], version=version, gold_share=0.2, repeat_share=0.5)


def asked(client: Client, evaluation: Evaluation, user: User, value: str = "A>B") -> Iterator[Any]:
    """Responses of every URL of the desk and of raters' lists, and of some that are forbidden or broken."""
    base = f"/p/physics/desk/{evaluation.run_id}/"
    held, other = assignments.claim(evaluation=evaluation, user=user)
    give(held, value)
    own = f"{base}{other.token}/"
    body = {"value-0": value, "key": str(uuid4())}
    for address in ("/", "/p/physics/", "/p/physics/rating/", base, f"{base}items/", f"{base}mine/", own):
        yield client.get(address)
    for address in (
        f"{own}difference/",
        f"{base}{uuid4()}/",
        f"{base}{held.token}/",
        "/p/physics/evaluations/",
        "/nowhere/",
    ):
        yield client.get(address)
    for address in ("/inbox/", "/search/?q=secret", f"{base}guideline/", f"{base}more/"):
        yield client.get(address)
    for address in (f"{own}question/", f"{base}guideline/understood/", f"{base}more/", f"{base}give-back/"):
        yield client.post(address, {"text": "Which one?", "version": 1})
    yield client.post(f"/p/physics/rating/{evaluation.run_id}/join/")
    for name in ("verdict", "skip", "draft"):
        yield client.post(f"{base}{other.pk}/{name}/", {})
    for address in (f"{own}verdict/", f"{own}draft/", f"{own}skip/", f"{base}undo/"):
        yield client.post(address, {})
        yield client.post(address, body)
        yield client.post(address, json.dumps({"values": 7}), content_type="application/json")
    for address in ("", "items/", "items/1/", "ratings.jsonl", "differences/", "gold/"):
        yield client.get(f"/p/physics/evaluations/{evaluation.run_id}/{address}")
    for address in ("", "judgements/", "report/", "export/jsonl/"):
        yield client.get(f"/p/physics/runs/{evaluation.run_id}/{address}")
    yield client.get(f"/p/physics/datasets/{evaluation.run.version.dataset_id}/1/")


def whole(response: Any) -> str:
    """Headers and body as text."""
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return f"{dict(response.headers)}{body.decode()}"


def test_no_answer_to_a_rater_names_a_model(evaluation: Evaluation, rita: User, client_of: ClientOf) -> None:
    found = [
        (response.request["PATH_INFO"], whole(response))
        for response in asked(client_of(rita), evaluation, rita)
    ]
    assert [(path, secret) for path, text in found for secret in SECRETS if secret in text] == []
    assert any("answer 0" in text or "answer 1" in text for _, text in found)
    names = {resolve(path).view_name for path, _ in found if "/desk/" in path or "/rating/" in path}
    of_raters = {name for name in routes() if name.startswith(("desk:", "rating:"))}
    assert of_raters - names == set()  # a new page of theirs is asked too


def test_no_answer_to_a_rater_who_ranks_names_a_model(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    version = a_version(project, rows=4, models=MODELS)
    for place, model in enumerate(version.candidates.order_by("pk")):
        Candidate.objects.filter(pk=model.pk).update(name=f"{SECRETS[0]}-{place}")
    rank = Criterion(name="Preference", scale="rank")
    evaluation = make_evaluation(
        project, [rita], version=version, scheme="rank", criteria=[rank], repeat_share=0.5
    )
    responses = list(asked(client_of(rita), evaluation, rita, "1,2,2"))
    assert [response.request["PATH_INFO"] for response in responses if SECRETS[0] in whole(response)] == []
    assert any("v0.3" in whole(response) for response in responses)


def test_no_answer_to_a_rater_who_marks_spans_names_a_model(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    version = a_version(project, rows=4, models=("one",))
    Candidate.objects.update(name=SECRETS[0])
    errors = Criterion(name="Errors", scale="spans", categories=("Style",))
    evaluation = make_evaluation(
        project, [rita], version=version, side_by_side=False, criteria=[errors], repeat_share=0.5
    )
    responses = list(asked(client_of(rita), evaluation, rita, "[]"))
    assert [response.request["PATH_INFO"] for response in responses if SECRETS[0] in whole(response)] == []
    assert any("data-spans" in whole(response) for response in responses)


def test_the_rating_sees_an_item_and_nobody_elses(
    evaluation: Evaluation, rita: User, bob: User, client_of: ClientOf
) -> None:
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    address = f"/p/physics/desk/{evaluation.run_id}/{held.token}/"
    assert client_of(rita).get(address).status_code == 200
    assert client_of(bob).get(address).status_code == 403


def test_anothers_item_is_not_there(
    project: Project, evaluation: Evaluation, rita: User, adam: User, client_of: ClientOf
) -> None:
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    response = client_of(adam).get(f"/p/physics/desk/{evaluation.run_id}/{held.token}/")
    assert response.status_code == 404
    assert Assignment.objects.filter(rater__user=adam).count() == 0


def test_gold_and_repeats_look_like_any_item(evaluation: Evaluation, rita: User, client_of: ClientOf) -> None:
    client, base = client_of(rita), f"/p/physics/desk/{evaluation.run_id}/"
    texts = []
    while held := assignments.claim(evaluation=evaluation, user=rita, count=1):
        texts.append(whole(client.get(f"{base}{held[0].token}/")))
        give(held[0], "A>B")
    assert len(texts) == 6
    assert not [word for word in ("gold", "repeat", "Gold", "drawn") if any(word in text for text in texts)]
