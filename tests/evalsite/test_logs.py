"""Logs: human-readable or JSON, and without secrets."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from django.test import Client

from evalsite import logs, secrets
from evalsite.accounts.models import User
from tests.conftest import ClientOf

KEY = "planted-0123456789-key"


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("judging.run_worker", logging.WARNING, "", 0, message, arguments, None)


def test_a_json_line_holds_the_usual_fields() -> None:
    found = json.loads(logs.JsonLine().format(record("%s came late", "a reply\nof two lines")))
    assert found["message"] == "a reply\nof two lines came late"
    assert (found["level"], found["logger"]) == ("WARNING", "judging.run_worker")


@pytest.mark.parametrize("formatter", [logs.PlainLine(), logs.JsonLine()])
def test_a_key_that_was_decrypted_is_in_no_log(formatter: logging.Formatter) -> None:
    secrets.decrypt(secrets.encrypt(KEY))
    assert KEY not in formatter.format(record("the server said: %s", f"no such key {KEY}"))


@pytest.mark.parametrize("formatter", [logs.PlainLine(), logs.JsonLine()])
def test_a_key_of_the_environment_is_in_no_traceback(
    formatter: logging.Formatter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "environment-secret-1")
    try:
        raise ValueError("environment-secret-1")
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    assert "environment-secret-1" not in formatter.format(made)
    assert "ValueError" in formatter.format(made)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc.def-123456",
        "redis://user:hunter2222@host/0",
        "amqp://:hunter2222@host",
        '{"api_key": "hunter2222"}',
        "sk-proj-hunter2222",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    assert "hunter" not in logs.hidden(text)
    assert "123456" not in logs.hidden(text)
    assert logs.HIDDEN in logs.hidden(text)


def test_ordinary_text_stays() -> None:
    assert logs.hidden("The database does not take 3 judgements: locked") == (
        "The database does not take 3 judgements: locked"
    )


@pytest.mark.parametrize(
    ("path", "host"), [("/p/physics/runs/new/", "testserver"), ("/", "elsewhere.example")]
)
def test_a_refused_request_is_one_line_without_a_traceback(
    path: str, host: str, client_of: ClientOf, rita: User, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client_of(rita).get(path, headers={"host": host})
    assert answer.status_code in (400, 403)
    assert [(one.levelno >= logging.WARNING, one.exc_info) for one in caplog.records] == [(True, None)] * len(
        caplog.records
    )
    assert caplog.records


def test_a_fault_keeps_its_traceback() -> None:
    fault = record("failed")
    fault.exc_info, fault.status_code = (ValueError, ValueError(), None), 500
    assert logs.WithoutTraceback().filter(fault)
    assert fault.exc_info is not None


def test_a_page_that_refuses_a_request_carries_the_content_security_policy(client: Client) -> None:
    answer = client.get("/", headers={"host": "elsewhere.example"})
    assert answer.status_code == 400
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
