"""Temporary storage errors, caused neither by the program nor by the request."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from enum import Enum, auto

from django.db import InterfaceError, OperationalError


class StorageUnreachable(OSError):
    """The bucket is unavailable or denies access. Its files are not lost."""


class StorageProblem(Enum):
    """The unavailable resource."""

    DISK_FULL = auto()
    DATABASE_BUSY = auto()  # locked longer than the timeout
    DATABASE_AWAY = auto()  # it does not respond, or cannot be read or written
    FILES_AWAY = auto()  # the bucket (FILES=s3)


NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # EFBIG: file size limit
_SQLITE = {  # primary result codes
    sqlite3.SQLITE_BUSY: StorageProblem.DATABASE_BUSY,
    sqlite3.SQLITE_LOCKED: StorageProblem.DATABASE_BUSY,
    sqlite3.SQLITE_FULL: StorageProblem.DISK_FULL,
    sqlite3.SQLITE_IOERR: StorageProblem.DATABASE_AWAY,
    sqlite3.SQLITE_CANTOPEN: StorageProblem.DATABASE_AWAY,
    sqlite3.SQLITE_READONLY: StorageProblem.DATABASE_AWAY,
}
_POSTGRESQL = {  # SQLSTATE, or its class
    "53100": StorageProblem.DISK_FULL,
    "53": StorageProblem.DATABASE_AWAY,  # too many connections, out of memory
    "08": StorageProblem.DATABASE_AWAY,  # connection lost
    "57P": StorageProblem.DATABASE_AWAY,  # the server is shutting down or starting
    "25006": StorageProblem.DATABASE_AWAY,  # read-only: a standby
    "55P03": StorageProblem.DATABASE_BUSY,  # lock_timeout
    "40": StorageProblem.DATABASE_BUSY,  # deadlock, serialization
}


def storage_problem(error: BaseException) -> StorageProblem | None:
    """The storage problem behind an error; None if it has another cause."""
    from_database = False
    for cause in _causes(error):
        from_database = from_database or isinstance(cause, (OperationalError, InterfaceError))
        if isinstance(cause, StorageUnreachable):
            return StorageProblem.FILES_AWAY
        if isinstance(cause, OSError) and cause.errno in NO_SPACE:
            return StorageProblem.DISK_FULL
        if isinstance(cause, sqlite3.Error):
            return _SQLITE.get(getattr(cause, "sqlite_errorcode", -1) & 0xFF)
        if from_database and hasattr(cause, "sqlstate"):  # psycopg; without a code, the server sent no error
            return _of_postgresql(cause.sqlstate) if cause.sqlstate else StorageProblem.DATABASE_AWAY
    return None


def database_unavailable(error: BaseException) -> bool:
    """Whether the database is locked or unavailable, so that the operation can be retried."""
    return storage_problem(error) in (StorageProblem.DATABASE_BUSY, StorageProblem.DATABASE_AWAY)


def _of_postgresql(code: str) -> StorageProblem | None:
    return _POSTGRESQL.get(code) or _POSTGRESQL.get(code[:3]) or _POSTGRESQL.get(code[:2])


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, as Django wraps the driver's errors."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
