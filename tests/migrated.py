"""A migrated SQLite database, made once per test run: migrating takes five seconds of processor time."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from evalsite.supervisor import manage

SHARED = "EVALSITE_TESTS"  # folder shared by all processes of a test run (tests/settings.py)


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


def _migrate(folder: Path, tables: Path) -> None:
    folder.mkdir()
    settings = {"DJANGO_SETTINGS_MODULE": "evalsite.settings", "DATA_DIR": str(folder), "DATABASE_URL": ""}
    subprocess.run(manage("migrate", "--verbosity", "0"), env={**os.environ, **settings}, check=True)
    with closing(sqlite3.connect(folder / "evalsite.sqlite3")) as connection:
        connection.execute("VACUUM INTO ?", [str(tables)])  # includes what is still in the WAL
