"""Health and readiness checks for supervisors and load balancers."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from evalsite import health
from tests.full_and_locked import locked_database

on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="a lock of the file, on this database only"
)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_needs_neither_the_sites_name_nor_https(
    client: Client, db: None, settings: LazySettings, path: str
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get(path, headers={"Host": "10.0.0.7:8000"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_a_probe_leaves_no_session(client: Client, db: None) -> None:
    assert not client.get("/healthz").cookies


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_locked_database_is_not_ready_until_it_is_free(client: Client) -> None:
    with locked_database():
        answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"the database is locked\n")
    assert client.get("/readyz").status_code == 200


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_probe_writes_nothing_and_leaves_the_connection_as_it_was(client: Client) -> None:
    def state() -> tuple[object, ...]:
        with connection.cursor() as cursor:
            asked = ("data_version", "busy_timeout")
            found = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in asked]
            return (*found, cursor.execute("SELECT total_changes()").fetchone()[0])

    before = state()
    assert client.get("/readyz").status_code == 200
    assert state() == before


def test_a_full_disk_is_not_ready(client: Client, db: None, settings: LazySettings) -> None:
    settings.DATA_DIR = Path("/proc")  # a file system without free space
    answer = client.get("/readyz")
    assert (answer.status_code, "only 0 MiB left" in answer.text) == (503, True)
    assert client.get("/healthz").status_code == 200


def test_a_data_folder_that_is_gone_is_not_ready(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "gone"
    assert health.disk_obstacle() == "DATA_DIR cannot be read: No such file or directory"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a standby, on this database only")
def test_a_database_that_takes_no_changes_is_not_ready(client: Client, db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    assert client.get("/readyz").content == b"the database is read-only\n"
