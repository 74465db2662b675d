"""Matches the rows of two versions by digests, in a temporary database on disk.

Memory use is constant: each row is three digests of 16 bytes and a line number, stored in SQLite with a small page
cache; it sorts and joins in temporary files.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from datasets.core.formats import ROLES, Format
from datasets.core.json_repairs import without_comment, without_trailing_comma
from datasets.core.rows import object_in
from datasets.core.variables import messages_of

Kind = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Digests:
    """Digests that identify a row: of its `id` (None without one), its content, and its messages."""

    identity: bytes | None
    content: bytes
    messages: bytes


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that differs; the line is None on the side where it is missing."""

    kind: Kind
    old_line: int | None
    new_line: int | None


def digests(text: str, fmt: Format | None, answers: Sequence[tuple[str, str]] = ()) -> Digests:
    """Digests of a stored row and its answers (model, JSON of the response).

    White space, key order and the order of models are ignored.
    """
    row = object_in(text)
    if row is None:
        return _of_bad(text, fmt)
    listed = [(name, msgspec.json.decode(raw)) for name, raw in answers]
    listed.sort(key=lambda answer: answer[0])  # stable: a model's answers keep their order
    content = _digest([row, listed])
    return Digests(_identity(row), content, _messages_digest(row, fmt) or content)


def _of_bad(text: str, fmt: Format | None) -> Digests:
    """Digests of a row that is not an object, such that it matches after comments and extra commas are removed."""
    content = _digest(text.strip())
    row = object_in(without_trailing_comma(without_comment(text) or "")) or {}
    return Digests(_identity(row), content, _messages_digest(row, fmt) or content)


def _identity(row: dict[str, Any]) -> bytes | None:
    return None if row.get("id") is None else _digest(row["id"])


def _messages_digest(row: dict[str, Any], fmt: Format | None) -> bytes | None:
    """Digest of roles and texts, so that a row matches in another format; None if it has no valid messages."""
    if fmt is None:
        return None
    try:
        texts = [[message["role"], message["content"]] for message in messages_of(row, fmt)]
        return _digest(texts) if all(role in ROLES for role, _content in texts) else None
    except (KeyError, TypeError, AttributeError, ValueError):
        return None  # an invalid row


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).digest()


_SIDE = "CREATE TABLE {} (line INTEGER PRIMARY KEY, identity BLOB, content BLOB, asked BLOB)"
_ALONE = """
SELECT line, content, {key} AS key, row_number() OVER (PARTITION BY {key} ORDER BY line) AS nth
FROM {side} WHERE {key} IS NOT NULL AND line NOT IN (SELECT {side}_line FROM pair) {only}
"""
_PAIR = """
INSERT INTO pair SELECT o.line, n.line, o.content = n.content
FROM ({old}) AS o JOIN ({new}) AS n ON o.key = n.key AND o.nth = n.nth
"""
_NUMBERED = """
SELECT line, identity, asked = content AS without_prompt, row_number() OVER (ORDER BY line) AS nth FROM {}
"""
_PAIR_BY_PLACE = f"""
INSERT INTO pair SELECT o.line, n.line, 0
FROM ({_NUMBERED.format("old")}) AS o JOIN ({_NUMBERED.format("new")}) AS n ON o.nth = n.nth
WHERE (o.without_prompt OR n.without_prompt)
AND (o.identity IS n.identity OR (o.without_prompt AND o.identity IS NULL))
AND o.line NOT IN (SELECT old_line FROM pair) AND n.line NOT IN (SELECT new_line FROM pair)
"""  # noqa: S608 - two names of our own
_CHANGES = """
SELECT 'changed', old_line, new_line, new_line AS place FROM pair WHERE NOT same
UNION ALL SELECT 'removed', line, NULL, line FROM old WHERE line NOT IN (SELECT old_line FROM pair)
UNION ALL SELECT 'added', NULL, line, line FROM new WHERE line NOT IN (SELECT new_line FROM pair)
ORDER BY 4, 1 DESC
"""


class Matcher:
    """Matches rows added with `add`: by `id` if all ids on both sides are unique, else by content, then by messages.

    Equal rows are paired in order. An invalid row has no messages to match by: if both sides have as many rows, it is
    matched with the row at the same place.
    """

    def __init__(self, file: Path) -> None:
        self._db = sqlite3.connect(file, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute(_SIDE.format("old"))
        self._db.execute(_SIDE.format("new"))
        self._db.execute(
            "CREATE TABLE pair (old_line INTEGER PRIMARY KEY, new_line INTEGER UNIQUE, same INTEGER)"
        )
        self.by_id = False

    def close(self) -> None:
        self._db.close()

    def add(self, side: Literal["old", "new"], rows: Iterable[tuple[int, Digests]]) -> None:
        """Add rows of one side with their lines."""
        values = ((line, d.identity, d.content, d.messages) for line, d in rows)
        self._db.execute("BEGIN")
        self._db.executemany(f"INSERT INTO {side} VALUES (?, ?, ?, ?)", values)  # noqa: S608 - one of two names
        self._db.execute("COMMIT")

    def match(self) -> None:
        """Pair the rows."""
        self.by_id = self._unique("old") and self._unique("new")
        if self.by_id:
            self._pair("identity", "")
        only = "AND identity IS NULL" if self.by_id else ""
        self._pair("content", only)
        self._pair("asked", only)
        if self._rows("old") == self._rows("new"):
            self._db.execute(_PAIR_BY_PLACE)

    def _rows(self, side: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {side}").fetchone()[0])  # noqa: S608 - one of two names

    def _unique(self, side: str) -> bool:
        counted = f"SELECT count(identity), count(DISTINCT identity) FROM {side}"  # noqa: S608 - one of two names
        number, different = self._db.execute(counted).fetchone()
        return bool(number) and number == different

    def _pair(self, key: str, only: str) -> None:
        old, new = (_ALONE.format(key=key, side=side, only=only) for side in ("old", "new"))
        self._db.execute(_PAIR.format(old=old, new=new))

    @property
    def same(self) -> int:
        """The number of rows that are equal on both sides."""
        return int(self._db.execute("SELECT count(*) FROM pair WHERE same").fetchone()[0])

    def changes(self) -> Iterator[ChangedRow]:
        """Yield all other rows, ordered by line."""
        for kind, old_line, new_line, _place in self._db.execute(_CHANGES):
            yield ChangedRow(kind, old_line, new_line)
