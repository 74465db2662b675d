"""What has been said in a file so far, kept on disk: duplicates and contradictions are found among a million lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable
from hashlib import blake2b


class SeenVerdicts:
    """The first thing said about each question, by digests. SQLite keeps them in a temporary file of its own."""

    def __init__(self) -> None:
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("CREATE TABLE seen (question BLOB PRIMARY KEY, said BLOB) WITHOUT ROWID")
        self._table.execute("BEGIN")

    def close(self) -> None:
        self._table.close()

    def agrees(self, question: Hashable, said: str) -> bool | None:
        """Whether the same was said before, None where nothing was. What is said first is kept."""
        key, value = _digest(repr(question)), _digest(said)
        known = self._table.execute("SELECT said FROM seen WHERE question = ?", (key,)).fetchone()
        if known is not None:
            return bool(known[0] == value)
        self._table.execute("INSERT INTO seen VALUES (?, ?)", (key, value))
        return None


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
