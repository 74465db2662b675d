"""Which errors mean that storage is unavailable, and which are bugs."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError
from psycopg.errors import lookup

from evalsite.storage.errors import StorageProblem, StorageUnreachable, storage_problem
from tests.full_and_locked import silent_server

BUSY, AWAY, FULL = StorageProblem.DATABASE_BUSY, StorageProblem.DATABASE_AWAY, StorageProblem.DISK_FULL


def from_sqlite(path: Path, *statements: str) -> StorageProblem | None:
    """The storage problem detected in the error of the last statement, wrapped as by Django."""
    with closing(sqlite3.connect(path, timeout=0.01, isolation_level=None)) as one:
        for statement in statements[:-1]:
            one.execute(statement)
        with pytest.raises(sqlite3.Error) as raised:
            one.execute(statements[-1])
    return storage_problem(raised_from(raised.value))


def raised_from(cause: Exception, outer: type[Exception] = OperationalError) -> Exception:
    error = outer(str(cause))
    error.__cause__ = cause
    return error


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.sqlite3"
    with closing(sqlite3.connect(path)) as one:
        one.execute("CREATE TABLE notes (text)")
    return path


def test_a_lock_that_another_connection_holds(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert from_sqlite(database, "BEGIN IMMEDIATE") is BUSY


def test_a_database_that_cannot_grow(database: Path) -> None:
    insert = "INSERT INTO notes VALUES (zeroblob(100000))"
    assert from_sqlite(database, "PRAGMA max_page_count = 2", insert) is FULL


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError) as raised:
        sqlite3.connect(tmp_path / "missing" / "a.sqlite3")
    assert storage_problem(raised_from(raised.value)) is AWAY


def test_a_statement_that_is_wrong_is_a_fault_of_ours(database: Path) -> None:
    assert from_sqlite(database, "SELECT * FROM nothing") is None


def test_a_device_without_space() -> None:
    with pytest.raises(OSError, match="No space left") as raised, Path("/dev/full").open("w") as full:
        full.write("text")
    assert storage_problem(raised.value) is FULL


def test_another_error_of_a_file_is_a_fault_of_ours() -> None:
    assert storage_problem(FileNotFoundError(errno.ENOENT, "No such file")) is None


def test_a_bucket_that_does_not_answer() -> None:
    assert storage_problem(StorageUnreachable("refused")) is StorageProblem.FILES_AWAY


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("53100", FULL),
        ("53300", AWAY),
        ("57P01", AWAY),
        ("08006", AWAY),
        ("25006", AWAY),
        ("55P03", BUSY),
        ("40P01", BUSY),
        ("57014", None),
    ],
)
def test_postgresql_says_by_a_code_what_it_is(code: str, problem: StorageProblem | None) -> None:
    assert storage_problem(raised_from(lookup(code)("no"))) is problem


def test_postgresql_that_never_answers() -> None:
    with silent_server() as port, pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect(host="127.0.0.1", port=port, connect_timeout=2)
    assert storage_problem(raised_from(raised.value)) is AWAY
    assert storage_problem(raised_from(psycopg.InterfaceError("closed"), InterfaceError)) is AWAY


def test_a_wrong_query_to_postgresql_is_a_fault_of_ours() -> None:
    assert storage_problem(raised_from(lookup("42P01")("no table"), ProgrammingError)) is None
