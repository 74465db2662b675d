"""Prepares DATA_DIR: folders, keys, tables."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from django.conf import settings
from django.contrib.staticfiles.finders import FileSystemFinder
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from evalsite import secrets
from evalsite.storage import files
from evalsite.storage.errors import StorageUnreachable

MIGRATING = 0x6576616C  # arbitrary id of the PostgreSQL advisory lock
log = logging.getLogger(__name__)
FOLDERS = ("uploads", "incoming", "keys", "static", "search", "under-way")


def prepare() -> None:
    """Create what is missing and migrate. Raises CommandError if the folder cannot be written."""
    try:
        os.umask(0o777 & ~settings.DATA_FOLDER_MODE)  # also for SQLite, which creates its own files
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        for name in FOLDERS:
            (settings.DATA_DIR / name).mkdir(exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        settings.FILE_UPLOAD_TEMP_DIR = settings.DATA_DIR / "incoming"  # settings may have skipped it
        restrict()
        if not settings.CONFIG.secret_key:
            settings.SECRET_KEY = secrets.make_key(settings.DATA_DIR, "django")
    except OSError as error:
        raise CommandError(
            f"DATA_DIR ({settings.DATA_DIR}) is not writable: {error.strerror or error}. "
            "Choose another folder, for example: make run DATA_DIR=$HOME/evalsite-data"
        ) from None
    try:
        files.check()
    except StorageUnreachable as error:
        raise CommandError(
            f"Files can't be stored in {files.description()}: {error}. Check S3_… and that the bucket exists."
        ) from None
    try:
        with _migrating_alone():
            _migrate()
    except OperationalError as error:
        what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CommandError(
            f"The database is not responding: {what}. Check DATABASE_URL and that the server runs; without "
            "DATABASE_URL evalsite keeps its data in DATA_DIR."
        ) from None


def restrict() -> None:
    """Remove other users' permissions on the folders, databases and keys of an existing DATA_DIR.

    Files within the folders stay unchanged, as others can no longer reach them. So do unrelated files, which DATA_DIR
    may also contain.
    """
    root = settings.DATA_DIR
    for folder in (root, *(root / name for name in FOLDERS)):
        _restrict(folder, settings.DATA_FOLDER_MODE)
    for file in (*root.glob("evalsite.sqlite3*"), *(root / "keys").iterdir()):
        with suppress(FileNotFoundError):  # SQLite removes its files when the last connection is closed
            _restrict(file, settings.DATA_FILE_MODE)


def _restrict(path: Path, mode: int) -> None:
    found = path.stat()
    now = stat.S_IMODE(found.st_mode)
    if now == mode:
        return
    if found.st_uid == os.geteuid() and not now & stat.S_ISVTX:  # a folder such as /tmp belongs to everyone
        path.chmod(mode)
    elif now & ~mode & 0o077:
        text = "Other users of this machine may have access to %s (mode %o). Run: chmod %o %s"
        log.warning(text, path, now, mode, path)


def _migrate() -> None:
    """Migrate only if needed, which saves a second when a killed worker restarts."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)


@contextmanager
def _migrating_alone() -> Iterator[None]:
    """On PostgreSQL, serialise migrations of machines that start at the same time."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATING])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATING])


def claim() -> IO[str]:
    """Lock DATA_DIR for one `serve` while the returned file is open; the lock ends with the process.

    A second instance would change the demo judge's address and start every worker twice. Raises CommandError if
    DATA_DIR is already locked.
    """
    lock = (settings.DATA_DIR / "serving").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise CommandError(
            f"Another evalsite is running with this DATA_DIR ({settings.DATA_DIR}). "
            "Use that one, stop it first, or choose another folder: make run DATA_DIR=/path PORT=8010"
        ) from None
    return lock


def collect_static() -> None:
    """Collect, hash and compress the static files, if they have changed since the last time."""
    stamp, state = settings.STATIC_ROOT / "collected", static_state()
    if stamp.exists() and stamp.read_text() == state:
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(state)


def static_state() -> str:
    """A digest that changes with every change of a static file."""
    files = sorted(
        path
        for _prefix, folder in FileSystemFinder().locations
        for path in Path(folder).rglob("*")
        if path.is_file()
    )
    state = "".join(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns};" for path in files)
    return hashlib.sha256(state.encode()).hexdigest()
