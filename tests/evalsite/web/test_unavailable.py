"""Responses to pages, htmx and scripts while the database is locked or the disk is full."""

from __future__ import annotations

import json

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client, RequestFactory

from evalsite.accounts.models import Project, User
from evalsite.web.refusals import server_error
from tests.conftest import PASSWORD, ClientOf
from tests.full_and_locked import locked_database

on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="a lock of the whole file, on this database only"
)
pytestmark = [pytest.mark.django_db(transaction=True), on_sqlite]
SETTINGS = "/p/physics/settings/"
CHANGED = {"name": "Chemistry", "description": ""}


@pytest.fixture
def as_adam(client_of: ClientOf, adam: User) -> Client:
    return client_of(adam)


def test_a_change_while_the_database_is_locked_is_answered_with_what_to_do(as_adam: Client) -> None:
    with locked_database():
        answer = as_adam.post(SETTINGS, CHANGED)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "The database is busy" in answer.text
    assert "What you typed is still in the form" in answer.text
    assert "Content-Security-Policy" in answer.headers


def test_nothing_of_it_is_saved_and_it_goes_through_afterwards(as_adam: Client, project: Project) -> None:
    with locked_database():
        as_adam.post(SETTINGS, CHANGED)
    project.refresh_from_db()
    assert project.name == "Physics"
    assert as_adam.post(SETTINGS, CHANGED).status_code == 302


def test_pages_can_be_read_meanwhile(as_adam: Client) -> None:
    with locked_database():
        assert as_adam.get(SETTINGS).status_code == 200


def test_the_sentence_is_in_the_readers_language(as_adam: Client, adam: User) -> None:
    adam.language = "zh-hans"
    adam.save()
    with locked_database():
        answer = as_adam.post(SETTINGS, CHANGED)
    assert "数据库正忙" in answer.text
    assert "请在 5 秒后" in answer.text


def test_a_script_gets_the_sentence_as_json(as_adam: Client) -> None:
    with locked_database():
        answer = as_adam.post(SETTINGS, CHANGED, headers={"Accept": "application/json"})
    assert answer.status_code == 503
    assert answer.json()["errors"][0].startswith("The database is busy. Your last change may not")


def test_htmx_shows_the_sentence_and_keeps_the_page(as_adam: Client) -> None:
    with locked_database():
        answer = as_adam.post(SETTINGS, CHANGED, headers={"HX-Request": "true"})
    said = json.loads(answer.headers["HX-Trigger"])["toast"]
    assert said["kind"] == "error"
    assert said["text"].startswith("The database is busy. ")


def test_a_session_that_cannot_be_saved_is_no_error_of_the_program(
    adam: User, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    """The session middleware saves it after the view has returned."""
    settings.LOCAL_MODE = True
    User.objects.filter(pk=adam.pk).update(is_superuser=True)
    client = Client(raise_request_exception=False)
    client.login(username=adam.username, password=PASSWORD)
    with locked_database():
        answer = client.post("/view-as/", {"role": "rater"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "The database is busy" in answer.text
    assert "Traceback" not in caplog.text


def test_a_fault_of_the_program_keeps_its_own_page(rf: RequestFactory) -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        answer = server_error(rf.get("/"))
    assert (answer.status_code, "Retry-After" in answer.headers) == (500, False)


def test_what_is_no_storage_error_keeps_its_own_page(client: Client) -> None:
    answer = client.get("/", headers={"Host": "not a host"})
    assert (answer.status_code, "Retry-After" in answer.headers) == (400, False)


def test_signing_in_while_the_database_is_locked(adam: User) -> None:
    client = Client(raise_request_exception=False)
    with locked_database():
        answer = client.post("/sign-in/", {"username": adam.username, "password": PASSWORD})
    assert answer.status_code == 503
    assert "The database is busy" in answer.text
