"""Request size limits are enforced from the headers, before the body is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, StreamingHttpResponse
from django.test import Client, RequestFactory

from evalsite.accounts.models import Project, User
from evalsite.web.request_limits import RequestLimitsMiddleware
from evalsite.web.server import STEP_ASIDE, WHOLE_BODY
from evalsite.web.threads import ThreadsBusy
from tests.conftest import ClientOf
from tests.odd_requests import Unread

UPLOAD = "/p/physics/datasets/upload/"
BEYOND_A_FORM = 4 * 2**20 + 1


def declare(client: Client, path: str, length: int, **more: Any) -> Any:
    """Send a request whose announced body fails the test if it is read."""
    more = {"CONTENT_TYPE": "application/x-www-form-urlencoded", **more}
    return client.generic("POST", path, CONTENT_LENGTH=str(length), **{"wsgi.input": Unread()}, **more)


def test_a_form_beyond_the_limit_is_refused_unread_with_the_limit_and_what_to_do(
    client_of: ClientOf, alice: User
) -> None:
    answer = declare(client_of(alice), "/language/", BEYOND_A_FORM)
    assert answer.status_code == 413
    assert "Forms are limited to 4.2 MB" in answer.text
    assert "Go back" in answer.text
    assert "Content-Security-Policy" in answer.headers


def test_it_is_reported_in_the_readers_language(client_of: ClientOf, alice: User) -> None:
    alice.language = "zh-hans"
    alice.save()
    assert "表单最多" in declare(client_of(alice), "/language/", BEYOND_A_FORM).text


def test_without_an_account_the_limit_is_lower(client: Client, db: None) -> None:
    answer = declare(client, "/sign-in/", WHOLE_BODY + 1)
    assert answer.status_code == 413
    assert "Requests without signing in are limited to 65.5 kB" in answer.text


def test_a_script_of_a_page_gets_the_sentence_alone(client_of: ClientOf, alice: User) -> None:
    plain = declare(client_of(alice), "/language/", BEYOND_A_FORM, HTTP_ACCEPT="application/json")
    assert plain.status_code == 413
    assert plain.json()["errors"][0].startswith("The request is too large. Forms are limited")
    part = declare(client_of(alice), "/language/", BEYOND_A_FORM, HTTP_HX_REQUEST="true")
    assert "Forms are limited" in part.headers["HX-Trigger"]


def test_who_is_signed_out_is_sent_to_sign_in_before_an_upload_is_read(
    client: Client, project: Project
) -> None:
    answer = declare(client, UPLOAD, 10**9)
    assert answer.headers["Location"].startswith("/sign-in/")


def test_who_may_not_upload_is_refused_before_the_file_is_read(client_of: ClientOf, rita: User) -> None:
    assert declare(client_of(rita), UPLOAD, 10**9).status_code == 403


def test_an_upload_beyond_its_own_limit_is_refused_unread(
    client_of: ClientOf, alice: User, settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=10)
    answer = declare(client_of(alice), UPLOAD, 20 * 2**20)
    assert answer.status_code == 413
    assert "UPLOAD_MAX_MB" in answer.text


def test_a_body_whose_length_is_not_known_is_refused_unread(client_of: ClientOf, alice: User) -> None:
    request = {"evalsite.body_waits": True, "wsgi.input": Unread(), "CONTENT_TYPE": "text/plain"}
    for path in ("/language/", UPLOAD):
        answer = client_of(alice).generic("POST", path, **request)
        assert (answer.status_code, "Content-Length" in answer.text) == (411, True)


def test_a_file_that_someone_without_an_account_sends_is_not_written(
    client: Client, db: None, settings: LazySettings, tmp_path: Path
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = tmp_path / "missing"  # writing there would fail
    file = SimpleUploadedFile("a.jsonl", b"{}" * 1000)
    assert client.post("/sign-in/", {"username": "x", "password": "y", "file": file}).status_code == 200


class TestTransfers:
    """Limit on concurrent transfers."""

    def ask(self, rf: RequestFactory, size: int | None) -> Any:
        closed: list[bool] = []

        def view(request: HttpRequest) -> StreamingHttpResponse:
            answer = StreamingHttpResponse([b"x"])
            if size is not None:
                answer["Content-Length"] = str(size)
            answer._resource_closers.append(lambda: closed.append(True))
            return answer

        def busy() -> None:
            raise ThreadsBusy

        answer = RequestLimitsMiddleware(view)(rf.get("/", **{STEP_ASIDE: busy}))
        return answer, closed

    @pytest.mark.parametrize("size", [None, 10**7])
    def test_one_more_is_asked_to_come_back_later(
        self, rf: RequestFactory, db: None, size: int | None
    ) -> None:
        answer, closed = self.ask(rf, size)
        assert (answer.status_code, answer.headers["Retry-After"], closed) == (503, "30", [True])

    def test_a_short_file_needs_no_place(self, rf: RequestFactory) -> None:
        assert self.ask(rf, 1000)[0].status_code == 200
