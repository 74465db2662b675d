"""Makes a backup beside its place and renames it when it is whole, and restores one."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.utils import timezone

from evalsite.storage import completeness, development, manifest
from evalsite.storage.manifest import DUMP_FILE, SQLITE_FILE, FileEntry, Incomplete, Manifest

COPIED = ("uploads", "keys")
_PIECE = 1 << 20


def backup_steps(folder: Path) -> Iterator[str]:
    """Make a backup, naming each step before it: wherever it is broken off, `folder` is whole or does not exist."""
    development.check_site()
    if folder.exists():
        raise CommandError(f"{folder} already exists. Choose a new folder.", returncode=2)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder.with_name(f"{folder.name}.incomplete")
    with _claimed(draft):
        yield "database"
        needed = completeness.files_in_use()
        contents = copy_sqlite(draft) if connection.vendor == "sqlite" else dump_postgresql(draft)
        yield "files"
        # After the database, so that every file it refers to exists when files are copied.
        for path in _copied_files():
            yield from _copy(path, draft, contents)
        if lost := sorted(needed - contents.files.keys()):
            raise CommandError(
                f"Files were deleted while the backup was made: {manifest.shown(lost)}. Run it again."
            )
        yield "manifest"
        contents.write(draft)
        yield "rename"
        draft.rename(folder)
        yield "whole"


@contextmanager
def _claimed(draft: Path) -> Iterator[None]:
    """The folder, empty: what a backup that broke off left in it is deleted."""
    draft.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(draft, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in draft.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield
    except BlockingIOError:
        raise CommandError(f"Another backup is writing to {draft}.", returncode=2) from None
    finally:
        os.close(descriptor)


def _copied_files() -> Iterator[Path]:
    """The finished files below DATA_DIR; hidden ones are incomplete, and a worker makes them again."""
    in_bucket = settings.CONFIG.files != "folder"
    for part in COPIED:
        if not (in_bucket and part == "uploads"):
            for path in sorted((settings.DATA_DIR / part).rglob("*")):
                if path.is_file() and not path.name.startswith("."):
                    yield path


def _copy(path: Path, draft: Path, contents: Manifest) -> Iterator[str]:
    """Copy a file, hashing it on the way. A file that was deleted meanwhile is left out."""
    name = str(path.relative_to(settings.DATA_DIR))
    digest, size = hashlib.sha256(), 0
    (draft / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        source = path.open("rb")
    except FileNotFoundError:
        return
    with source, (draft / name).open("wb") as copy:
        while piece := source.read(_PIECE):
            yield name
            copy.write(piece)
            digest.update(piece)
            size += len(piece)
    shutil.copystat(path, draft / name)
    contents.files[name] = FileEntry(size, digest.hexdigest())


def copy_sqlite(draft: Path) -> Manifest:
    """Copy a consistent snapshot of the database; writers are not blocked."""
    path = draft / SQLITE_FILE
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(path)])
        tables = connection.introspection.table_names(cursor)
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as copy:
        names = (connection.ops.quote_name(table) for table in tables)
        counts = [copy.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names]  # noqa: S608
    return _manifest_with(path, dict(zip(tables, counts, strict=True)))


def dump_postgresql(draft: Path) -> Manifest:
    """Run pg_dump, which must not be older than the server, on the snapshot in which the rows are counted."""
    path = draft / DUMP_FILE
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_export_snapshot()")
        options = ["--format=custom", "--no-owner", f"--snapshot={cursor.fetchone()[0]}", f"--file={path}"]
        _run_client("pg_dump", *options)
        counts = manifest.table_counts()
    path.chmod(0o600)
    return _manifest_with(path, counts)


def _manifest_with(path: Path, tables: dict[str, int]) -> Manifest:
    made_at = timezone.now().isoformat(timespec="seconds")
    return Manifest(made_at, path.name, tables, {path.name: manifest.entry_of(path)})


def _run_client(program: str, *options: str) -> None:
    """Run a PostgreSQL program on our database. The password is passed in the environment."""
    to = connection.settings_dict
    values = {"--host": to["HOST"], "--port": to["PORT"], "--username": to["USER"]}
    address = [f"--dbname={to['NAME']}", *(f"{name}={value}" for name, value in values.items() if value)]
    environment = {**os.environ, **({"PGPASSWORD": str(to["PASSWORD"])} if to["PASSWORD"] else {})}
    try:
        done = subprocess.run(  # noqa: S603
            [program, *address, *options], env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise CommandError(f"{program} is not installed (Debian: apt install postgresql-client).") from None
    if done.returncode:
        raise CommandError(f"{program} failed: {done.stderr.strip()}")


def verify(folder: Path) -> Manifest:
    """The manifest of a backup that is whole; raises CommandError otherwise."""
    with _refused():
        backup = manifest.read(folder)
        manifest.compare_files(folder, backup)
    _check_release(folder, backup)
    return backup


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except Incomplete as error:
        raise CommandError(str(error), returncode=2) from None


def restore(folder: Path) -> Manifest:
    """Restore a backup into an empty DATA_DIR and an empty database, which the next start compares once more."""
    with _refused():
        backup = manifest.read(folder)
    _check_can_hold(backup)
    data_dir = settings.DATA_DIR
    with _marked(data_dir, folder), _refused():
        manifest.compare_files(folder, backup)
        _check_release(folder, backup)
    for name in backup.files:
        if name != DUMP_FILE:
            (data_dir / name).parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
            shutil.copy2(folder / name, data_dir / name)
    if connection.vendor != "sqlite":
        _run_client("pg_restore", "--no-owner", "--single-transaction", str(folder / DUMP_FILE))
    return backup


def _check_can_hold(backup: Manifest) -> None:
    """Raise CommandError if this site uses another database, or is not empty."""
    wanted = SQLITE_FILE if connection.vendor == "sqlite" else DUMP_FILE
    if backup.database != wanted:
        raise CommandError(f"The backup holds {backup.database}, but this site needs {wanted}.", returncode=2)
    data_dir = settings.DATA_DIR
    if data_dir.is_dir() and any(data_dir.iterdir()):
        raise CommandError(f"{data_dir} is not empty. Move it away first.", returncode=2)
    if connection.vendor != "sqlite" and connection.introspection.table_names():
        raise CommandError("The database is not empty. Empty it or name another.", returncode=2)


def _check_release(folder: Path, backup: Manifest) -> None:
    """Raise ImproperlyConfigured if the database of a backup is of a development version."""
    check = development.check_sqlite if backup.database == SQLITE_FILE else development.check_dump
    check(folder / backup.database)


@contextmanager
def _marked(data_dir: Path, folder: Path) -> Iterator[None]:
    """Put the manifest into DATA_DIR, so that a restore that breaks off is noticed at the next start.

    If the backup is refused, DATA_DIR is left as it was.
    """
    existed = data_dir.is_dir()
    data_dir.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
    shutil.copy2(folder / manifest.NAME, data_dir)
    try:
        yield
    except (CommandError, ImproperlyConfigured):
        (data_dir / manifest.NAME).unlink()
        if not existed:
            data_dir.rmdir()
        raise
