"""`Idempotency-Key`: a repeated request changes nothing and gets the first reply."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import RequestFactory
from django.utils import timezone

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create
from evalsite.api.errors import ApiError
from evalsite.api.replies import HEADER, once_for, shown_once
from evalsite.models import StoredReply
from tests.api import Api, code_of
from tests.datasets.conftest import jsonl, question

PATH = "projects/physics/datasets"


def send(api: Api, text: str = "1+1?", key: str = "k") -> Any:
    file = io.BytesIO(jsonl(question(text)))
    file.name = "sums.jsonl"
    return api.upload(PATH, key=key, file=file, name="sums")


def test_an_upload_that_is_sent_twice_is_stored_once(alice: User, project: Project) -> None:
    api = Api(alice)
    first, second = send(api), send(api)
    assert (first.status_code, first.json()) == (202, second.json())
    assert second.headers["Idempotency-Replayed"] == "true"
    assert Version.objects.count() == 1


def test_another_key_or_token_is_another_request(alice: User, project: Project) -> None:
    api = Api(alice)
    replies = [send(api), send(api, key="l"), send(Api(alice))]
    assert len({reply.json()["version"] for reply in replies}) == 3


def test_the_same_key_with_another_body_is_refused(alice: User, project: Project) -> None:
    api = Api(alice)
    send(api)
    assert code_of(send(api, "2+2?")) == (409, "key_reused")
    assert Version.objects.count() == 1


def test_while_the_first_is_answered_the_second_waits(alice: User, project: Project) -> None:
    api = Api(alice)
    send(api)
    StoredReply.objects.update(status=None)
    reply = send(api)
    assert code_of(reply) == (409, "in_progress")
    assert int(reply.headers["Retry-After"]) > 0


def test_a_key_is_free_again_after_a_day_or_if_its_request_was_lost(alice: User, project: Project) -> None:
    api = Api(alice)
    send(api)
    StoredReply.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert send(api).json()["version"] == 2
    StoredReply.objects.update(status=None, created_at=timezone.now() - timedelta(minutes=6))
    assert send(api).json()["version"] == 3


def test_json_is_compared_as_it_was_sent(alice: User, project: Project) -> None:
    api = Api(alice)
    body = {"version": 1, "candidates": ["alpha"], "metrics": ["quality"]}
    first = api.post("projects/physics/runs", body, key="k")
    assert first.json() == api.post("projects/physics/runs", body, key="k").json()
    assert code_of(api.post("projects/physics/runs", body | {"rows": 1}, key="k")) == (409, "key_reused")


def test_a_key_has_at_most_200_characters(alice: User, project: Project) -> None:
    assert code_of(Api(alice).post("projects/physics/runs", key="k" * 201)) == (422, "invalid")


def test_at_the_same_moment_only_the_first_is_answered(alice: User, project: Project) -> None:
    token, _secret = token_create(user=alice, name="x", days=None)
    request = RequestFactory().post("/api/v1/projects/physics/runs", headers={HEADER: "k"})
    answered, refused = [], []

    def answer(_request: HttpRequest) -> HttpResponse:
        answered.append(1)
        try:
            once_for(request, token, "digest", answer)  # the second one, before the first one has ended
        except ApiError as error:
            refused.append((error.status, error.code, error.retry_after > 0))
        return HttpResponse("{}")

    once_for(request, token, "digest", answer)
    assert (answered, refused) == ([1], [(409, "in_progress", True)])


def test_a_request_that_failed_is_answered_again(alice: User, project: Project) -> None:
    token, _secret = token_create(user=alice, name="x", days=None)
    request = RequestFactory().post("/", headers={HEADER: "k"})
    replies = [
        once_for(request, token, "digest", lambda _request, status=status: HttpResponse(status=status))
        for status in (500, 429, 503, 201, 202)
    ]
    assert [reply.status_code for reply in replies] == [500, 429, 503, 201, 201]


def test_a_secret_that_is_shown_once_is_not_stored(alice: User, project: Project) -> None:
    token, _secret = token_create(user=alice, name="x", days=None)
    request = RequestFactory().post("/", headers={HEADER: "k"})
    replies = [
        once_for(request, token, "d", lambda _request: shown_once(JsonResponse({"id": 1, "key": "s"}), "key"))
        for _time in range(2)
    ]
    assert [json.loads(reply.content)["key"] for reply in replies] == ["s", None]
