"""Every answer below /api/ is JSON, whoever refuses the request."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.handlers.exception import convert_exception_to_response
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from evalsite.accounts.models import ApiToken, Project, User
from evalsite.api.middleware import JsonErrorsMiddleware
from evalsite.storage.errors import StorageUnreachable
from evalsite.web.server import BODY_WAITS, STEP_ASIDE
from evalsite.web.threads import ThreadsBusy
from tests.api import READ, Api, code_of
from tests.conftest import ClientOf
from tests.odd_requests import Unread

DATASETS = "projects/physics/datasets"


def busy() -> None:
    raise ThreadsBusy


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("get", "projects/physics/nothing", (404, "not_found")),
        ("get", f"{DATASETS}/99999", (404, "not_found")),
        ("get", f"{DATASETS}/99999999999999999999", (422, "invalid")),
        ("get", f"{DATASETS}?limit=0", (422, "invalid")),
        ("get", f"{DATASETS}?cursor=x", (422, "invalid")),
        ("put", DATASETS, (405, "method_not_allowed")),
        ("post", "projects/physics/runs", (422, "invalid")),
    ],
)
def test_what_is_asked_wrongly_with_a_token(
    alice: User, project: Project, method: str, path: str, expected: tuple[int, str]
) -> None:
    api = Api(alice)
    body = {} if method == "get" else {"data": "{}", "content_type": "application/json"}
    response = getattr(api.client, method)(f"/api/v1/{path}", headers=api.headers, **body)
    assert code_of(response) == expected


def test_a_method_that_is_not_taken_names_those_that_are(alice: User, project: Project) -> None:
    api = Api(alice)
    response = api.client.delete(f"/api/v1/{DATASETS}", headers=api.headers)
    assert set(response.headers["Allow"].split(", ")) >= {"GET", "POST"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("projects", (401, "unauthorized")),
        (DATASETS, (401, "unauthorized")),
        ("nothing", (404, "not_found")),
    ],
)
def test_without_a_token(project: Project, path: str, expected: tuple[int, str]) -> None:
    assert code_of(Api(None).get(path)) == expected


def test_a_cookie_is_no_token(client_of: ClientOf, alice: User, project: Project) -> None:
    assert code_of(client_of(alice).get("/api/v1/projects")) == (401, "unauthorized")


def test_in_local_mode_a_token_is_needed_too(settings: LazySettings, project: Project, olga: User) -> None:
    settings.LOCAL_MODE = True
    assert code_of(Client().get("/api/v1/projects")) == (401, "unauthorized")


def test_a_wrong_host(settings: LazySettings, project: Project) -> None:
    settings.ALLOWED_HOSTS = ["evalsite.example"]
    settings.LOCAL_MODE = False
    response = Client().get("/api/v1/projects", headers={"Host": "other.example"})
    assert code_of(response) == (400, "bad_request")


def test_a_body_of_another_type(alice: User, project: Project) -> None:
    api = Api(alice)
    address = "/api/v1/projects/physics/runs"
    response = api.client.post(address, "x", content_type="text/csv", headers=api.headers)
    assert code_of(response) == (415, "unsupported_media_type")


def test_a_body_that_is_not_json(alice: User, project: Project) -> None:
    api = Api(alice)
    response = api.client.post("/api/v1/projects/physics/runs", "{", "application/json", headers=api.headers)
    assert code_of(response) == (400, "bad_request")


def test_a_body_that_is_too_large(alice: User, project: Project, settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    assert code_of(Api(alice).post("projects/physics/runs", {"name": "long enough"})) == (413, "too_large")


def test_a_token_that_may_only_read(alice: User, project: Project) -> None:
    api = Api(alice, scope=READ)
    assert api.get(DATASETS).status_code == 200
    assert code_of(api.post("projects/physics/runs")) == (403, "read_only")
    body = {"version": 1, "line": 1, "model": "a"}  # of a metric that is not there
    assert code_of(api.post("projects/physics/metrics/1/preview", body)) == (404, "not_found")


def test_a_token_of_a_project_opens_no_other(olga: User, project: Project, charlie: User) -> None:
    api = Api(olga, project=project)
    assert [item["slug"] for item in api.get("projects").json()["items"]] == ["physics"]
    other = Project.objects.exclude(pk=project.pk).get()
    assert code_of(api.get(f"projects/{other.slug}/datasets")) == (404, "not_found")


def test_messages_are_in_the_language_of_the_request(project: Project) -> None:
    response = Client().get("/api/v1/projects", headers={"Accept-Language": "zh-CN"})
    assert "令牌" in response.json()["error"]["message"]


def failing(error: Exception) -> JsonErrorsMiddleware:
    """The middleware around a site whose every view raises this."""

    def view(request: HttpRequest) -> HttpResponse:
        raise error

    return JsonErrorsMiddleware(convert_exception_to_response(view))


@pytest.mark.parametrize("path", ["/api/v1/projects", "/mcp"])
@pytest.mark.parametrize(
    ("error", "expected", "retries"),
    [
        (ZeroDivisionError(), (500, "server_error"), False),
        (Http404(), (404, "not_found"), False),
        (PermissionDenied(), (403, "forbidden"), False),
        (SuspiciousOperation(), (400, "bad_request"), False),
        (StorageUnreachable(), (503, "unavailable"), True),
        (OSError(errno.ENOSPC, "full"), (503, "disk_full"), True),
    ],
)
def test_whatever_fails_behind_an_address_for_programs_is_json(
    rf: RequestFactory, path: str, error: Exception, expected: tuple[int, str], retries: bool
) -> None:
    answer = failing(error)(rf.get(path))
    assert isinstance(answer, JsonResponse)
    assert (answer.status_code, json.loads(answer.content)["error"]["code"]) == expected
    assert ("Retry-After" in answer.headers) == retries


@pytest.mark.parametrize(
    ("path", "expected"), [("/mcp/nothing", (404, "not_found")), ("/api/", (404, "not_found"))]
)
def test_nothing_there(project: Project, path: str, expected: tuple[int, str]) -> None:
    assert code_of(Client().get(path)) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"CONTENT_LENGTH": str(10**12)}, (413, "too_large")),
        ({"CONTENT_LENGTH": "", BODY_WAITS: True}, (411, "length_required")),
        ({"CONTENT_LENGTH": "9", STEP_ASIDE: busy}, (503, "unavailable")),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=b"])
def test_a_body_that_is_refused_unread(
    alice: User, project: Project, more: dict[str, Any], expected: tuple[int, str], kind: str
) -> None:
    api = Api(alice)
    path = "runs" if kind == "application/json" else "datasets"
    assert code_of(announced(api, path, kind, **more)) == expected


def announced(api: Api, path: str, kind: str, **more: Any) -> Any:
    """The answer to a body that fails the test if it is read."""
    environ = {"CONTENT_TYPE": kind, BODY_WAITS: True, **more, "wsgi.input": Unread()}
    if not more["CONTENT_LENGTH"]:
        del environ["CONTENT_LENGTH"]
    headers = {"HTTP_AUTHORIZATION": api.headers["Authorization"]}
    return api.client.generic("POST", f"/api/v1/projects/physics/{path}", **environ, **headers)


@pytest.mark.parametrize("path", ["datasets", "datasets/1/versions/1/answers", "runs/import"])
def test_an_upload_by_a_token_that_may_not_is_refused_unread(
    cast: dict[str, User], project: Project, path: str
) -> None:
    expired = Api(cast["alice"])
    ApiToken.objects.update(expires_at=timezone.now())
    elsewhere = Project.objects.exclude(pk=project.pk).get()
    for api, expected in {
        expired: (401, "unauthorized"),
        Api(cast["rita"]): (403, "forbidden"),
        Api(cast["alice"], scope=READ): (403, "read_only"),
        Api(cast["olga"], project=elsewhere): (404, "not_found"),
    }.items():
        answer = announced(api, path, "multipart/form-data; boundary=b", CONTENT_LENGTH=str(10**8))
        assert code_of(answer) == expected


def test_an_address_in_local_mode_through_a_proxy(settings: LazySettings, project: Project) -> None:
    settings.LOCAL_MODE = True
    answer = Client().get("/api/v1/projects", headers={"X-Forwarded-For": "10.0.0.1"})
    assert code_of(answer) == (403, "forbidden")


@pytest.mark.parametrize("text", ["\0", "\ud800"])
def test_a_text_that_cannot_be_stored(alice: User, project: Project, text: str) -> None:
    api = Api(alice)
    assert code_of(api.post("projects/physics/runs", {"name": [text]})) == (422, "invalid")


def test_a_refusal_that_names_half_a_surrogate_pair(alice: User, project: Project) -> None:
    refused = Api(alice).post("projects/physics/metrics", {"\ud800": 1})
    assert code_of(refused) == (422, "invalid")


def test_a_nul_character_in_the_address(alice: User, project: Project) -> None:
    assert code_of(Api(alice).get("projects/physics%00/runs")) == (400, "bad_request")
    assert code_of(Api(alice).get("projects/physics/runs?cursor=%00")) == (400, "bad_request")
