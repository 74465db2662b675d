"""Prepares DATA_DIR: folders, keys, tables."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
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
from evalsite.command_line import IS_INSTALLED, start_advice
from evalsite.health import is_disk_full
from evalsite.storage import completeness, development, files
from evalsite.storage.errors import NO_SPACE, StorageProblem, StorageUnreachable, storage_problem
from evalsite.storage.manifest import Incomplete

MIGRATING = 0x6576616C  # arbitrary id of the PostgreSQL advisory lock
START_BYTES = 128 * 1024  # SQLite's shared memory and the beginning of its log
RESERVE_BYTES = 8 * START_BYTES
log = logging.getLogger(__name__)
FOLDERS = ("uploads", "incoming", "keys", "static", "search", "under-way")


def prepare() -> None:
    """Create what is missing and migrate. Raises CommandError if the folder cannot be written."""
    development.check_site()
    try:
        os.umask(0o777 & ~settings.DATA_FOLDER_MODE)  # also for SQLite, which creates its own files
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        for name in FOLDERS:
            (settings.DATA_DIR / name).mkdir(exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        settings.FILE_UPLOAD_TEMP_DIR = settings.DATA_DIR / "incoming"  # settings may have skipped it
        restrict()
        _use_reserve()
    except OSError as error:
        raise _not_writable(error) from None
    try:
        files.check()
    except StorageUnreachable as error:
        raise CommandError(
            f"Files can't be stored in {files.description()}: {error}. Check S3_… and that the bucket exists."
        ) from None
    try:
        with _migrating_alone():
            completeness.compare_with_backup()
            completeness.check_not_empty()
            _migrate()
            completeness.end_comparison()
    except Incomplete as error:
        raise CommandError(str(error)) from None
    except OperationalError as error:
        if storage_problem(error) is StorageProblem.DISK_FULL or _free() < START_BYTES:
            raise _full(error) from None
        what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CommandError(
            f"The database is not responding: {what}. Check DATABASE_URL and that the server runs; without "
            "DATABASE_URL evalsite keeps its data in DATA_DIR."
        ) from None
    if not settings.CONFIG.secret_key:  # made last: a missing key shows that a restore broke off
        try:
            settings.SECRET_KEY = secrets.make_key(settings.DATA_DIR, "django")
        except OSError as error:
            raise _not_writable(error) from None


def _not_writable(error: OSError) -> CommandError:
    if error.errno in NO_SPACE:
        return _full(error)
    return CommandError(
        f"DATA_DIR ({settings.DATA_DIR}) is not writable: {error.strerror or error}. "
        f"Choose another folder, for example: {start_advice(DATA_DIR='$HOME/evalsite-data')}"
    )


def _full(error: Exception) -> CommandError:
    return CommandError(
        f"The disk with DATA_DIR ({settings.DATA_DIR}) or with the database is full: {error}. Free some space "
        "and start again; nothing is lost."
    )


def _use_reserve() -> None:
    """Keep a file of which each start on a full disk frees a part: without a little space, SQLite cannot even read."""
    reserve = settings.DATA_DIR / "reserve"
    size = reserve.stat().st_size if reserve.exists() else 0
    if _free() < START_BYTES:
        log.warning("The disk is full: pages can be read, but nothing can be changed until there is space.")
        if size:
            os.truncate(reserve, max(0, size - START_BYTES))
    elif size < RESERVE_BYTES and not is_disk_full():
        reserve.write_bytes(os.urandom(RESERVE_BYTES))  # a file system may store zeros in no space


def _free() -> int:
    return shutil.disk_usage(settings.DATA_DIR).free


def prepare_to_start() -> None:
    """`prepare` for processes of the site: also refuse to start if constraints, files or keys are missing."""
    prepare()
    try:
        completeness.check_whole()
    except Incomplete as error:
        raise CommandError(str(error)) from None


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
    status = path.stat()
    now = stat.S_IMODE(status.st_mode)
    if now == mode:
        return
    if status.st_uid == os.geteuid() and not now & stat.S_ISVTX:  # a folder such as /tmp belongs to everyone
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
            "Use that one, stop it first, or choose another folder: "
            f"{start_advice(DATA_DIR='/path', PORT='8010')}"
        ) from None
    return lock


def collect_static() -> None:
    """Collect, hash and compress the static files, if they have changed since the last time. A wheel holds them."""
    if IS_INSTALLED:
        return
    stamp, state = settings.STATIC_ROOT / "collected", static_state()
    if stamp.exists() and stamp.read_text() == state:
        return
    if is_disk_full():  # served from where they are installed, under their own names
        (settings.STATIC_ROOT / "staticfiles.json").unlink(missing_ok=True)
        settings.WHITENOISE_USE_FINDERS = True
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
