"""Health checks for supervisors and load balancers: liveness and readiness."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from evalsite.storage.errors import StorageProblem, storage_problem

LEAST_FREE = 32 * 1024 * 1024  # bytes in DATA_DIR; below this, SQLite and uploads may fail at any time
LOCK_MILLISECONDS = 1000  # how long a probe waits for an SQLite lock; shorter than typical probe timeouts
SENTENCES = {
    StorageProblem.DATABASE_BUSY: "the database is locked",
    StorageProblem.DISK_FULL: "the database's disk is full",
}


class HealthMiddleware(MiddlewareMixin):
    """Answers /healthz and /readyz before all other middleware.

    Probes use the machine's address instead of the site's name, and plain HTTP.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path_info == "/healthz":
            return _said("ok")
        if request.path_info == "/readyz":
            obstacle = disk_obstacle() or database_obstacle()
            return _said(obstacle, 503) if obstacle else _said("ok")
        return None


def disk_obstacle() -> str:
    """Why DATA_DIR cannot be written, or ""."""
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError as error:
        return f"DATA_DIR cannot be read: {error.strerror}"
    if not os.access(settings.DATA_DIR, os.W_OK):  # also if mounted read-only
        return "DATA_DIR cannot be written"
    return "" if free >= LEAST_FREE else f"DATA_DIR has only {free // 2**20} MiB left on its disk"


def database_obstacle() -> str:
    """Why the database cannot be written, or "". Writes nothing; after an error, the next probe reconnects."""
    try:
        with _short_wait(), transaction.atomic(), connection.cursor() as cursor:  # SQLite: takes the lock
            cursor.execute("SELECT 1")
            if connection.vendor == "postgresql":
                cursor.execute("SELECT current_setting('transaction_read_only') = 'on'")
                return "the database is read-only" if cursor.fetchone()[0] else ""
    except DatabaseError as error:
        close_old_connections()
        problem = storage_problem(error)
        return SENTENCES.get(problem, "the database does not answer") if problem else "the database fails"
    return ""


def is_disk_full() -> bool:
    """Whether too little is free in DATA_DIR for work that writes files."""
    return shutil.disk_usage(settings.DATA_DIR).free < LEAST_FREE


@contextmanager
def _short_wait() -> Iterator[None]:
    """Shorten SQLite's busy_timeout for the duration of the context."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {LOCK_MILLISECONDS}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual}")


def _said(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
