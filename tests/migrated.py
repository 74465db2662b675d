"""A migrated database, made once per test run: migrating takes five seconds of processor time, on PostgreSQL more."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection

from evalsite.supervisor import manage

SHARED = "EVALSITE_TESTS"  # folder shared by all processes of a test run (tests/settings.py)
TEMPLATE = "template"  # the file in it that names the PostgreSQL database


def migrated(to: Path) -> None:
    """Copy the migrated database to `to`; the first caller creates it."""
    shared = Path(os.environ[SHARED])
    tables = shared / "tables.sqlite3"
    with (shared / "tables.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tables.exists():
            _migrate(shared / "migrated", tables)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(tables, to)


def migrated_template() -> str:
    """The name of the migrated PostgreSQL database; the first caller creates it. `drop_template` drops it."""
    shared = Path(os.environ[SHARED])
    marker = shared / TEMPLATE
    with (shared / "tables.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            server = os.environ["DATABASE_URL"].rpartition("/")[0]
            name = f"test_{connection.settings_dict['NAME']}_migrated_{os.getpid()}"
            marker.write_text(name)
            _on_server(f'CREATE DATABASE "{name}"')
            _run_migrate(shared / "migrated", f"{server}/{name}")
        return marker.read_text()


def drop_template() -> None:
    """Drop the database of `migrated_template`, if this test run has made one."""
    marker = Path(os.environ[SHARED]) / TEMPLATE
    if marker.exists():
        _on_server(f'DROP DATABASE IF EXISTS "{marker.read_text()}" WITH (FORCE)')
        marker.unlink()


def _on_server(statement: str) -> None:
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(statement)


def _run_migrate(folder: Path, database: str = "") -> None:
    folder.mkdir(exist_ok=True)
    settings = {
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        "DATA_DIR": str(folder),
        "DATABASE_URL": database,
    }
    subprocess.run(manage("migrate", "--verbosity", "0"), env={**os.environ, **settings}, check=True)


def _migrate(folder: Path, tables: Path) -> None:
    _run_migrate(folder)
    with closing(sqlite3.connect(folder / "evalsite.sqlite3")) as connection:
        connection.execute("VACUUM INTO ?", [str(tables)])  # includes what is still in the WAL
