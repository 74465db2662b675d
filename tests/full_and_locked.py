"""Real storage failures: a locked SQLite file, files that cannot grow, a server that never responds."""

from __future__ import annotations

import resource
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from django.db import OperationalError, connection


@contextmanager
def locked_database(*, timeout_milliseconds: int = 50) -> Iterator[sqlite3.Connection]:
    """Hold SQLite's write lock in another connection; lower the busy timeout of the test's own connection."""
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {timeout_milliseconds}")
    name = str(connection.settings_dict["NAME"])
    with closing(sqlite3.connect(name, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield other
        finally:
            if other.in_transaction:
                other.execute("ROLLBACK")
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {usual}")


@contextmanager
def full_database() -> Iterator[None]:
    """Stop SQLite's file from growing and use up its free pages, so that writes fail as on a full disk."""
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA max_page_count").fetchone()[0]
        cursor.execute("CREATE TABLE filling (bytes BLOB)")
        cursor.execute("PRAGMA max_page_count = 1")  # SQLite raises this to the current number of pages
        size = 2**24
        while size > 1:
            try:
                cursor.execute("INSERT INTO filling VALUES (zeroblob(%s))", [size])
            except OperationalError:
                size //= 2
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA max_page_count = {usual}")
            cursor.execute("DROP TABLE filling")


@contextmanager
def files_up_to(most: int) -> Iterator[None]:
    """Limit every file this process writes to `most` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def silent_server() -> Iterator[int]:
    """Yield the port of a server that accepts connections and never responds, like a stopped process."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield int(listening.getsockname()[1])
