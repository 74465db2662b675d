"""Storage that really fails: a locked SQLite file, files that cannot grow, a server that never answers."""

from __future__ import annotations

import resource
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from django.db import OperationalError, connection


@contextmanager
def locked_database(*, patience_milliseconds: int = 50) -> Iterator[sqlite3.Connection]:
    """Another connection holds SQLite's write lock; the test's own waits for it only so long."""
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {patience_milliseconds}")
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
    """SQLite's file may not grow and has no free pages: what needs one is refused as on a full disk."""
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA max_page_count").fetchone()[0]
        cursor.execute("CREATE TABLE filling (bytes BLOB)")
        cursor.execute("PRAGMA max_page_count = 1")  # at least the pages that there are
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
    """No file that this process writes may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def silent_server() -> Iterator[int]:
    """The port of a server that takes connections and never says a word, as a stopped process does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield int(listening.getsockname()[1])
