"""Refuses databases of development versions: their tables came from other migrations, which no release has."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import translation
from django.utils.translation import gettext as _

from evalsite.terminal import terminal_language

APPS = ("accounts", "datasets", "evalsite", "judging")
FIRST = "0001_release_0_1_0"
_BEGINNING = "0001_"
_EXISTS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE name = 'django_migrations'",
    "postgresql": "SELECT to_regclass('django_migrations')",
}
_APPLIED = "SELECT app, name FROM django_migrations"

accepted: set[tuple[str, ...]] = set()
"""Databases of releases, as this process knows them: with a connection for each request, asking again would cost each
of them two queries."""


def check_connection(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """Raise ImproperlyConfigured if a new connection leads to a database of a development version."""
    database = tuple(str(connection.settings_dict[part]) for part in ("ENGINE", "HOST", "PORT", "NAME"))
    if database in accepted:
        return
    with connection.cursor() as cursor:
        cursor.execute(_EXISTS[connection.vendor])
        if not any(cursor.fetchone() or ()):
            return
        cursor.execute(_APPLIED)
        migrations = cursor.fetchall()
    if is_development(migrations):
        connection.close()  # kept open, it would be used without asking again
        raise ImproperlyConfigured(refusal())
    accepted.add(database)


def check_site() -> None:
    """The same before anything is written to DATA_DIR. A database that cannot be read is left to later checks."""
    if connection.vendor == "sqlite":
        check_sqlite(Path(connection.settings_dict["NAME"]))
        return
    with suppress(OperationalError):
        connection.ensure_connection()


def check_sqlite(path: Path) -> None:
    """Raise ImproperlyConfigured if a file is a database of a development version; nothing is written to it."""
    if not path.exists():
        return
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database,
    ):
        if is_development(database.execute(_APPLIED).fetchall()):
            raise ImproperlyConfigured(refusal())


def check_dump(path: Path) -> None:
    """Raise ImproperlyConfigured if pg_dump made a file from a database of a development version."""
    options = ["--data-only", "--table=django_migrations", "--file=-", str(path)]
    with suppress(FileNotFoundError):  # without the program, `restore` says so later
        done = subprocess.run(  # noqa: S603
            ["pg_restore", *options],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
        rows = (line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 3)
        if is_development((app, name) for _id, app, name, _applied in rows):
            raise ImproperlyConfigured(refusal())


def is_development(migrations: Iterable[tuple[str, str]]) -> bool:
    """Whether applied migrations, (app, name), begin other than the releases' do."""
    return any(app in APPS and name.startswith(_BEGINNING) and name != FIRST for app, name in migrations)


def refusal() -> str:
    """What the database is and what can be carried over, in the terminal's language."""
    with translation.override(terminal_language()):
        return _(
            "This database was made by a development version of evalsite and can't be upgraded: start that version "
            "to export runs (export --format results), data sets and metrics (export_metrics), then import them "
            "here; accounts, endpoints and the histories of ratings and comments are not carried over."
        )
