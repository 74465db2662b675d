"""Whether the database and the files of a site belong together and are whole, compared before it starts.

A restore that broke off would otherwise start as an empty site, without files or keys, or without constraints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Model

from evalsite import secrets
from evalsite.hooks import Hook
from evalsite.storage import manifest
from evalsite.storage.manifest import SQLITE_FILE, Incomplete, shown

RESTORE = "Restore the backup again, into an empty DATA_DIR and an empty database (docs/deploy.md)."

file_names: Hook[Callable[[], Iterable[str]]] = Hook("evalsite.storage.completeness.file_names")
"""Each returns the names of files that must exist."""
has_encrypted: Hook[Callable[[], bool]] = Hook("evalsite.storage.completeness.has_encrypted")
"""Each returns whether something is stored that only the key in DATA_DIR/keys can decrypt."""


def files_in_use() -> set[str]:
    """The names of the files that rows need and that exist in DATA_DIR; those in a bucket are not there."""
    return _needed_files() & _stored_files() if settings.CONFIG.files == "folder" else set()


def _needed_files() -> set[str]:
    return {name for names in file_names for name in names() if name}


def _stored_files() -> set[str]:
    uploads = settings.DATA_DIR / "uploads"
    return {str(path.relative_to(settings.DATA_DIR)) for path in uploads.rglob("*")}


def compare_with_backup() -> None:
    """Compare a site that was restored with its backup, once; raises Incomplete. Runs before anything is written."""
    if not (settings.DATA_DIR / manifest.NAME).exists():
        return
    try:
        backup = manifest.read(settings.DATA_DIR)
        if connection.vendor == "sqlite":
            if not (settings.DATA_DIR / SQLITE_FILE).exists():
                raise Incomplete("The database is missing.")  # connecting would create an empty one
            _check_pages()
        # The dump is not needed in DATA_DIR, and opening the other database may have changed its file.
        manifest.compare_files(settings.DATA_DIR, backup, without=backup.database)
        manifest.compare_tables(backup)
    except DatabaseError as error:
        raise Incomplete(f"The database cannot be read: {error}. {RESTORE}") from None
    except Incomplete as error:
        raise Incomplete(f"The site was not restored completely. {error} {RESTORE}") from None


def end_comparison() -> None:
    """The site is as the backup was; from now on it changes."""
    (settings.DATA_DIR / manifest.NAME).unlink(missing_ok=True)


def _check_pages() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA quick_check(1)")
        if (result := cursor.fetchone()[0]) != "ok":
            raise Incomplete(f"The database is damaged: {result}.")


def check_not_empty() -> None:
    """Raise Incomplete if there are uploads but no tables: the database was not restored."""
    uploads = settings.DATA_DIR / "uploads"
    if uploads.is_dir() and any(uploads.iterdir()) and not connection.introspection.table_names():
        raise Incomplete(
            f"{uploads} holds uploaded files, but the database is empty. Check DATABASE_URL, or {RESTORE.lower()}"
        )


def check_whole() -> None:
    """Raise Incomplete if constraints, files or keys are missing. The tables must be migrated."""
    if not settings.CONFIG.start_incomplete and (missing := list(problems())):
        raise Incomplete(f"{' '.join(missing)} {RESTORE} To start without them, set START_INCOMPLETE=1.")


def problems() -> Iterator[str]:
    """What is missing, as sentences."""
    if missing := missing_constraints():
        text = "%s constraints and indexes of the database are missing: %s. A restore probably broke off."
        yield text % (len(missing), shown(missing))
    if settings.CONFIG.files == "folder" and (lost := sorted(_needed_files() - _stored_files())):
        yield f"{len(lost)} files of data sets are missing in {settings.DATA_DIR}: {shown(lost)}."
    key = settings.CONFIG.encryption_key or secrets.stored_key(settings.DATA_DIR, secrets.SECRETS)
    if not key and any(check() for check in has_encrypted):
        path = settings.DATA_DIR / "keys" / secrets.SECRETS
        yield f"{path} is missing, without which stored API keys can't be decrypted."


def missing_constraints() -> list[str]:
    """Constraints and indexes that the models have and the database has not."""
    with connection.cursor() as cursor:
        names, kinds = _in_database(cursor)
    missing = []
    for model in apps.get_models(include_auto_created=True):
        meta = model._meta
        if meta.managed and not meta.proxy:
            missing += [name for name in _expected_names(model) if name not in names]
            if connection.vendor == "postgresql":
                expected = _expected_kinds(model)
                missing += [
                    f"{count - kinds[meta.db_table, kind]} of {meta.db_table} ({_KINDS[kind]})"
                    for kind, count in expected.items()
                    if kinds[meta.db_table, kind] < count
                ]
    return missing


_KINDS = {"p": "primary key", "f": "foreign keys", "u": "unique"}


def _expected_names(model: type[Model]) -> Iterator[str]:
    """Names of indexes and, where the database lists them, constraints."""
    yield from (index.name for index in model._meta.indexes)
    if connection.vendor == "postgresql":
        yield from (constraint.name for constraint in model._meta.constraints)


def _expected_kinds(model: type[Model]) -> Counter[str]:
    fields = model._meta.local_concrete_fields
    keys: list[Any] = [field for field in fields if field.remote_field is not None]
    return Counter(
        p=1,
        f=sum(field.db_constraint for field in keys),
        u=sum(field.unique and not field.primary_key for field in fields),
    )


def _in_database(cursor: Any) -> tuple[set[str], Counter[tuple[str, str]]]:
    """The names of all constraints and indexes; the number of constraints by table and kind, on PostgreSQL."""
    if connection.vendor != "postgresql":
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        return {name for (name,) in cursor.fetchall()}, Counter()
    cursor.execute(
        "SELECT relname, contype::text, conname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid "
        "WHERE relnamespace = current_schema()::regnamespace"
    )
    constraints = cursor.fetchall()
    cursor.execute("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")
    names = {name for *_table, name in constraints} | {name for (name,) in cursor.fetchall()}
    return names, Counter((table, kind) for table, kind, _name in constraints)
