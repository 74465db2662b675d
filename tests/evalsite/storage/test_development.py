"""Databases of releases are accepted once, those of development versions never."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.storage import development

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(development, "accepted", set())


def test_a_database_of_a_release_is_asked_once_a_process() -> None:
    development.check_connection(connection)
    with CaptureQueriesContext(connection) as queries:
        development.check_connection(connection)
    assert len(queries) == 0


def test_a_database_of_a_development_version_is_asked_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(development, "is_development", lambda _migrations: True)
    monkeypatch.setattr(connection, "close", lambda: None)  # it is this test's, too
    for _ in range(2):
        with pytest.raises(ImproperlyConfigured):
            development.check_connection(connection)
