"""The search index of one version: a file with the trigrams of its rows' texts and the values of their fields.

It is a separate SQLite file, whatever database holds the rows: building it blocks nobody, and it can be deleted and
rebuilt. It stores no texts; every match must be verified against the row itself.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from datasets.core.formats import Format, structural_keys

GRAM = 3
MOST_GRAMS = 12  # trigrams looked up for a long text
MOST_ENDINGS = (
    1_000  # trigrams looked up for a text of one or two characters; texts with more are frequent anyway
)
_END = "\n\n"  # appended to each text, so that its last characters start a trigram too
LONGEST_VALUE = 200  # characters of a field's value that can be searched for
FACETS = 50  # maximum number of distinct values of a field that are offered as choices
_CREATE = """
CREATE TABLE IF NOT EXISTS place (id INTEGER PRIMARY KEY CHECK (id = 1), line INTEGER, rows INTEGER);
INSERT OR IGNORE INTO place VALUES (1, 0, 0);
CREATE TABLE IF NOT EXISTS value (hash INTEGER, line INTEGER, PRIMARY KEY (hash, line)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facet (name TEXT, value TEXT, rows INTEGER, PRIMARY KEY (name, value)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS grams
    USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1');
"""
_MODEL = "\0model"  # no field of an upload has a name with a NUL
_OPEN = "\0"  # marks a field with too many values for a facet


class Unsupported(Exception):
    """This Python's SQLite has no trigram index."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """The indexed data of a row: its text, (name, value) of its fields, and the models to be indexed."""

    line: int
    text: str
    values: tuple[tuple[str, str], ...] = ()
    models: tuple[str, ...] = ()


def fold(text: str) -> str:
    """Normalise text for comparison without regard to case."""
    return text.casefold()


def decoded(raw: str, valid: bool) -> Any:
    """Decode a row's JSON; None if it is invalid. Accepts numbers beyond a double."""
    for decode in (msgspec.json.decode, json.loads):
        try:
            return decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            if not valid:
                return None
    return None


def readable(row: Any, raw: str, answers: Iterable[str] = ()) -> list[str]:
    """All decoded texts in a row and its answers (each JSON); for an invalid row, the row as it is.

    Field names and roles are left out.
    """
    texts: list[str] = []
    if isinstance(row, dict):
        for name, value in row.items():
            _collect(_without_roles(value) if name == "messages" else value, texts)
    else:
        texts.append(raw)
    for answer in answers:
        _collect(decoded(answer, True), texts)
    return texts


def _without_roles(messages: Any) -> Any:
    if not isinstance(messages, list):
        return messages
    return [
        {name: _parts(value) for name, value in message.items() if name != "role"}
        if isinstance(message, dict)
        else message
        for message in messages
    ]


def _parts(content: Any) -> Any:
    """Join the texts of a list of parts."""
    if isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content):
        return "".join(str(part["text"]) for part in content)
    return content


def _collect(value: Any, texts: list[str]) -> None:
    kind = type(value)
    if kind is str:
        texts.append(value)
    elif kind is dict:
        for item in value.values():
            _collect(item, texts)
    elif kind is list:
        for item in value:
            _collect(item, texts)
    elif kind is not bool and value is not None:
        texts.append(str(value))


def field_values(row: Any, fmt: Format | None) -> tuple[tuple[str, str], ...]:
    """(name, value as text) of a row's fields; one per item of a list, none for objects."""
    if not isinstance(row, dict):
        return ()
    hidden = structural_keys(fmt)
    values = []
    for name, value in row.items():
        if name not in hidden:
            for item in value if isinstance(value, list) else [value]:
                if not isinstance(item, list | dict) and len(text := value_text(item)) <= LONGEST_VALUE:
                    values.append((name, text))
    return tuple(dict.fromkeys(values))


def value_text(value: Any) -> str:
    """A string without surrounding white space; other values as JSON."""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _hash(name: str, value: str) -> int:
    digest = blake2b(f"{name}\0{value}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def grams(text: str) -> list[str]:
    """The trigrams used to look up a folded text: all, or a spread-out selection; none for a short text."""
    trigrams = list(dict.fromkeys(text[at : at + GRAM] for at in range(len(text) - GRAM + 1)))
    step = max(1, -(-len(trigrams) // MOST_GRAMS))
    return trigrams[::step]


class Builder:
    """Writes an index in batches, one transaction each; continues after the last batch when restarted."""

    def __init__(self, part: Path) -> None:
        self.part = part
        self.database = sqlite3.connect(part, isolation_level=None)
        self.database.executescript(
            "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF; PRAGMA cache_size=-32000"
        )
        try:
            self.database.executescript(_CREATE)
        except sqlite3.OperationalError as error:
            self.close()
            raise Unsupported from error
        self.line, self.rows = self.database.execute("SELECT line, rows FROM place").fetchone()
        self.facets: dict[str, dict[str, int]] = {}
        for name, value, rows in self.database.execute("SELECT name, value, rows FROM facet"):
            self.facets.setdefault(name, {})[value] = rows

    def add(self, rows: Sequence[IndexRow]) -> None:
        """Add rows in ascending order of lines, after those already added."""
        self.database.execute("BEGIN")
        self.database.executemany(
            "INSERT INTO grams (rowid, text) VALUES (?, ?)", [(row.line, row.text + _END) for row in rows]
        )
        values = [(_hash(name, value), row.line) for row in rows for name, value in row.values]
        values += [(_hash(_MODEL, name), row.line) for row in rows for name in row.models]
        self.database.executemany("INSERT OR IGNORE INTO value VALUES (?, ?)", sorted(values))
        for name in self._count(rows):
            self.database.execute("DELETE FROM facet WHERE name = ?", [name])
            counted = [(name, value, count) for value, count in self.facets[name].items()]
            self.database.executemany("INSERT INTO facet VALUES (?, ?, ?)", counted)
        self.line, self.rows = rows[-1].line, self.rows + len(rows)
        self.database.execute("UPDATE place SET line = ?, rows = ?", [self.line, self.rows])
        self.database.execute("COMMIT")

    def _count(self, rows: Sequence[IndexRow]) -> set[str]:
        """Count the values of fields that have few; return the names of fields with changed counts."""
        changed = set()
        for row in rows:
            for name, value in row.values:
                counted = self.facets.setdefault(name, {})
                if _OPEN in counted:
                    continue
                changed.add(name)
                counted[value] = counted.get(value, 0) + 1
                if len(counted) > FACETS:
                    self.facets[name] = {_OPEN: 0}
        return changed

    def finish(self, target: Path) -> None:
        """Move the finished index into place; it never changes afterwards."""
        self.close()
        self.part.replace(target)

    def close(self) -> None:
        self.database.close()


def _quoted(gram: str) -> str:
    return '"' + gram.replace('"', '""') + '"'


class Index:
    """A finished index. Queries return at most `limit` lines in order from a given line, at constant cost."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)

    def question(self, text: str) -> str | None:
        """The FTS query for a folded text; None for a short one that occurs in too many trigrams to be useful."""
        if len(text) >= GRAM:
            return " AND ".join(_quoted(gram) for gram in grams(text))
        self.database.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'grams', 'row')"
        )
        begun = self.database.execute(
            "SELECT term FROM vocabulary WHERE term >= ? AND term < ? LIMIT ?",
            [text, text + "\U0010ffff", MOST_ENDINGS + 1],
        ).fetchall()
        return " OR ".join(_quoted(term) for (term,) in begun) if len(begun) <= MOST_ENDINGS else None

    def with_text(self, question: str, place: "SearchFrom", limit: int) -> list[int]:
        """Candidate lines for a query from `question`; includes every line that contains the text."""
        return self._lines("grams", "rowid", "grams MATCH ?", question, place, limit) if question else []

    def with_value(self, name: str, value: str, place: "SearchFrom", limit: int) -> list[int]:
        """Lines where the field has this value."""
        return self._lines("value", "line", "hash = ?", _hash(name, value), place, limit)

    def with_model(self, name: str, place: "SearchFrom", limit: int) -> list[int]:
        """Lines with an answer of the model, if the model is indexed."""
        return self._lines("value", "line", "hash = ?", _hash(_MODEL, name), place, limit)

    def _lines(
        self, table: str, line: str, condition: str, argument: str | int, place: "SearchFrom", limit: int
    ) -> list[int]:
        compared, order = (">", "") if place.forwards else ("<", " DESC")
        lines = self.database.execute(
            f"SELECT {line} FROM {table} WHERE {condition} AND {line} {compared} ? "  # noqa: S608 - our own names
            f"ORDER BY {line}{order} LIMIT ?",
            [argument, place.line, limit],
        )
        return [number for (number,) in lines]

    def facets(self) -> dict[str, list[tuple[str, int]]]:
        """{field: [(value, rows)], most frequent first} for the fields with few values."""
        facets: dict[str, list[tuple[str, int]]] = {}
        for name, value, rows in self.database.execute(
            "SELECT name, value, rows FROM facet ORDER BY name, rows DESC, value"
        ):
            if value != _OPEN:
                facets.setdefault(name, []).append((value, rows))
        return facets

    def close(self) -> None:
        self.database.close()


@dataclass(frozen=True, slots=True)
class SearchFrom:
    """Where a search continues: after `line`, or before it with `forwards=False`."""

    line: int = 0
    forwards: bool = True


def texts_of(
    rows: Iterable[tuple[int, str, bool, Sequence[str]]], fmt: Format | None, *, fields: bool = True
) -> Iterator[IndexRow]:
    """Convert (line, JSON, valid, JSON of the answers) to index rows, without models, optionally without fields."""
    for line, raw, valid, answers in rows:
        row = decoded(raw, valid)
        text = fold("\n".join(readable(row, raw, answers)))
        yield IndexRow(line, text, field_values(row, fmt) if fields else ())
