"""A database of a development version is refused by everything that would open it, and nothing is written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from evalsite.storage import manifest
from evalsite.supervisor import manage
from tests.processes.conftest import SETTINGS
from tests.starting import free_port

pytestmark = [pytest.mark.processes, pytest.mark.django_db]
Environment = dict[str, str]
TABLES = """
CREATE TABLE django_migrations (id integer PRIMARY KEY, app varchar(255), name varchar(255), applied timestamp);
INSERT INTO django_migrations VALUES (1, 'auth', '0001_initial', '2026-01-01'),
    (2, 'judging', '0001_initial', '2026-01-01'), (3, 'judging', '0001_squashed_0032', '2026-01-01');
"""
REFUSED = (
    ("migrate",),
    ("serve",),
    ("worker",),
    ("backup", "copy"),
    ("report", "1"),
    ("check", "--database", "default"),
)
ALLOWED = (("version",), ("help",), ("check",))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Environment]:
    """The environment of a site with such a database."""
    environment = {
        **os.environ,
        **SETTINGS,
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "LANG": "C.UTF-8",
    }
    if connection.vendor == "sqlite":
        (tmp_path / "data").mkdir()
        with closing(sqlite3.connect(tmp_path / "data" / "evalsite.sqlite3")) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.executescript(TABLES)
        yield environment
        return
    server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    name = f"{connection.settings_dict['NAME']}_development"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as administration:
        administration.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        administration.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(f"{server}/{name}") as database:
            database.execute(TABLES)
        yield {**environment, "DATABASE_URL": f"{server}/{name}"}
        administration.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def run(environment: Environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder = Path(environment["DATA_DIR"]).parent
    return subprocess.run(
        manage(*arguments),
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files but SQLite's empty log and its index, which stay where two readers end at the same moment."""
    files = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        name: text
        for name, text in files.items()
        if not (name.endswith("-shm") or (name.endswith("-wal") and not text))
    }


def test_every_command_that_opens_it_is_refused_and_writes_nothing(site: Environment, tmp_path: Path) -> None:
    before = contents(tmp_path)
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(lambda arguments: run(site, *arguments), REFUSED))
    assert [process.returncode for process in ended] == [2] * len(REFUSED)
    for process in ended:
        assert process.stderr.startswith("This database was made by a development version")
        assert process.stderr.count("\n") == 1
    assert contents(tmp_path) == before


def test_the_refusal_is_in_the_language_of_the_terminal(site: Environment) -> None:
    assert "开发版本" in run({**site, "LANG": "zh_CN.UTF-8"}, "migrate").stderr


def test_commands_that_do_not_open_it_go_on_working(site: Environment) -> None:
    assert [run(site, *arguments).returncode for arguments in ALLOWED] == [0] * len(ALLOWED)


def test_its_backup_is_not_restored(site: Environment, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    if connection.vendor == "sqlite":
        path = folder / manifest.SQLITE_FILE
        (tmp_path / "data" / "evalsite.sqlite3").rename(path)
    else:
        path = folder / manifest.DUMP_FILE
        command = ["pg_dump", "--format=custom", f"--file={path}", site["DATABASE_URL"]]
        subprocess.run(command, check=True)
        with psycopg.connect(site["DATABASE_URL"]) as database:
            database.execute("DROP TABLE django_migrations")
    files = {path.name: manifest.entry_of(path)}
    manifest.Manifest("2026-01-01", path.name, {"django_migrations": 3}, files).write(folder)
    for arguments in (("restore", str(folder)), ("restore", "--check", str(folder))):
        process = run(site, *arguments)
        assert (process.returncode, process.stderr[:45]) == (
            2,
            "This database was made by a development versi",
        )
    assert contents(tmp_path / "data") == {}
