"""Joins the rows, answers and verdicts of a tool's records on disk, as the records of one row may be far apart.

A source calls `row`, `answer` and `verdict` in any order, with its own row keys. Only one row is held in memory.
"""

import json
import sqlite3
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from datasets.core.imports.json_records import document, json_records, plain_json
from datasets.core.imports.key_use import UNREAD, KeyUse, whole
from datasets.core.imports.model import (
    BrokenRecord,
    Imported,
    ImportedRow,
    MendedRecord,
    Note,
    Options,
    Place,
    Source,
    SourceFile,
)
from datasets.core.json_errors import nests_deeper

REFERENCE = "@reference"
"""The model name that stands for the row's reference in a verdict."""
RESERVED = frozenset(
    ("messages", "model_outputs", "conversation", "ref_answer", "id", "question", "gt", "history", "system")
)
"""Names with a reserved meaning in a row."""

_TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32000;
CREATE TABLE row (at INTEGER PRIMARY KEY, key BLOB UNIQUE, place BLOB, data BLOB);
CREATE TABLE answer (key BLOB, model TEXT, number INTEGER, place BLOB, data BLOB, PRIMARY KEY (key, model, number));
CREATE TABLE verdict (at INTEGER PRIMARY KEY, key BLOB, place BLOB, data BLOB);
"""
_UNKNOWN = "SELECT place, model FROM answer WHERE key NOT IN (SELECT key FROM row) ORDER BY rowid"
_ANSWERS = "SELECT rowid, model, place, data FROM answer WHERE key = ? ORDER BY model, number"
_VERDICTS = """
SELECT verdict.key, verdict.place, verdict.data, row.at FROM verdict LEFT JOIN row ON verdict.key = row.key
ORDER BY verdict.at
"""

Collect = Callable[[Sequence[SourceFile], "Collector"], None]
Notes = Sequence[Note] | Callable[[Sequence[SourceFile]], Sequence[Note]]


def tool(
    name: str,
    is_file: Callable[[SourceFile], object],
    collect: Collect,
    notes: Notes,
    *,
    beside: Callable[[SourceFile], bool] = lambda _file: False,
) -> Source:
    """The source for a tool whose files are recognised one by one; files that fit `beside` may accompany them."""

    def recognise(files: Sequence[SourceFile]) -> bool:
        own = [file for file in files if is_file(file)]
        return bool(own) and all(file in own or beside(file) for file in files)

    def read(files: Sequence[SourceFile], options: Options) -> Imported:
        return collected(files, options, collect, notes(files) if callable(notes) else notes)

    return Source(name, recognise, read)


def collected(
    files: Sequence[SourceFile], options: Options, collect: Collect, notes: Sequence[Note]
) -> Imported:
    """The result of `collect` for all files; they are read when the first row is requested."""
    imported = Imported((), (), list(notes))
    collector = Collector(imported, options)

    def rows() -> Iterator[ImportedRow]:
        with ExitStack() as broken_off:  # if iteration stops early, verdicts are never requested
            broken_off.callback(collector.close)
            collect(files, collector)
            collector.leave_out_keys()
            yield from collector.rows()
            broken_off.pop_all()

    imported.rows, imported.verdicts = rows(), collector.verdicts()
    return imported


def plain_document(file: SourceFile, collector: "Collector") -> bytes:
    """A whole file as JSON; NaN and Infinity become null with a warning. Raises NotUsable."""
    text, constants = plain_json(document(file, collector.options.limits))
    if constants:
        collector.leave_out(Place(file.name), "nan", constants)
    return text


def fields(values: Any, prefix: str) -> dict[str, Any]:
    """Custom fields of a row; reserved names get `prefix`."""
    if not isinstance(values, Mapping):
        return {}
    return {f"{prefix}_{name}" if name in RESERVED else str(name): value for name, value in values.items()}


def with_reference(value: Any) -> dict[str, Any]:
    return {} if value in (None, "") else {"ref_answer": value}


class Collector:
    """Collects rows, answers and verdicts; `leave_out` is that of the import."""

    def __init__(self, imported: Imported, options: Options) -> None:
        self.leave_out, self.options = imported.leave_out, options
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._table.executescript(_TABLES)
        self._table.execute("BEGIN")
        self._count = self._calls = self._numbers = 0
        self._last: tuple[bytes, dict[str, Any]] = (b"", {})  # key and data of the most recent row
        self._key_uses: list[KeyUse] = []
        self._lines = array("Q", [0])  # line by row number; 0 for a row that was left out

    def records(
        self, file: SourceFile, fits: Callable[[Any], object] = lambda _record: True
    ) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Yield the JSON objects in a file that fit; other values are listed as left out."""
        values = json_records(file, self.options.limits)
        return self.objects(((Place(file.name, line), value) for line, value in values), fits)

    def objects(
        self, values: Iterable[tuple[Place, Any]], fits: Callable[[Any], object] = lambda _record: True
    ) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Yield the values that are objects and fit, of at most the first `options.first`; list the others.

        Their keys, and those of objects in them, that the source does not read are listed once everything is collected.
        """
        use = self.key_use()
        for place, value in islice(values, self.options.first):
            if isinstance(value, BrokenRecord):
                self.leave_out(place, value.code, value.detail)
            elif not isinstance(value, dict):
                self.leave_out(place, "not_a_record")
            elif nests_deeper(value):
                self.leave_out(place, "too_deep")
            elif not fits(value):
                self.leave_out(place, "not_a_record")
            else:
                if isinstance(value, MendedRecord):
                    self.leave_out(place, value.code, value.detail)
                yield place, use.record(place, value)

    def key_use(self, always_read: Container[str] = ()) -> KeyUse:
        """For the keys of another file; those not in `always_read` and never read will be listed as left out."""
        return self.add_key_use(KeyUse(always_read))

    def add_key_use(self, use: KeyUse) -> KeyUse:
        self._key_uses.append(use)
        return use

    def _whole(self, stored: dict[str, Any]) -> None:
        """Count the keys of objects that are stored as read."""
        for use in self._key_uses:
            if use.notes:
                whole(stored)
                return

    def leave_out_keys(self) -> None:
        """List the keys that were not read, each with the first record and the number of records that hold it."""
        for place, name, records in (unread for use in self._key_uses for unread in use.unread()):
            self.leave_out(place, UNREAD, f"{name} × {records}")

    def leave_out_parts(self, place: Place, kinds: Iterable[str]) -> None:
        """List the types of the parts of a message that are not text."""
        for kind in kinds:
            self.leave_out(place, "part_dropped", kind)

    def _execute(self, query: str, values: Sequence[Any]) -> bool:
        """Execute the query; return whether it changed any row. Reports progress regularly."""
        self._calls += 1
        if self._calls % 500 == 0:
            self.options.progress()
        return bool(self._table.execute(query, values).rowcount)

    def row(self, key: object, data: dict[str, Any], place: Place, reference: Any = None) -> None:
        """Add a row, with its reference if there is one. Of several with a key, a field's first value counts."""
        for name in self.merged_row(key, data | with_reference(reference), place):
            self.leave_out(place, "field_differs", name)

    def _new_row(self, key: bytes, data: dict[str, Any], place: Place) -> bool:
        """Add a row; return whether the key was new."""
        self._count += 1
        values = (self._count, key, _place(place), encoded(data))
        return self._execute("INSERT OR IGNORE INTO row (at, key, place, data) VALUES (?, ?, ?, ?)", values)

    def merged_row(self, key: object, data: dict[str, Any], place: Place) -> list[str]:
        """Merge records of the same row, keeping the first value of each field; return the fields that differ."""
        hashed = _key(key)
        self._whole(data)
        if self._last[0] != hashed:
            if self._new_row(hashed, data, place):
                self._last = (hashed, data)
                return []
            row = self._table.execute("SELECT data FROM row WHERE key = ?", (hashed,)).fetchone()
            self._last = (hashed, restored(row[0]))
        old = self._last[1]
        if data.keys() - old.keys():
            self._last = (hashed, data | old)
            self._execute("UPDATE row SET data = ? WHERE key = ?", (encoded(data | old), hashed))
        return [name for name, value in data.items() if old.get(name, value) != value]

    def answer(
        self, key: object, model: str, response: dict[str, Any], place: Place, number: int | None = None
    ) -> int:
        """Add a model's answer to a row and return its number, which only orders the model's answers.

        Without a number the answer comes last. A different answer with a number already in use is left out.
        """
        self._whole(response)
        self._numbers = self._numbers + 1 if number is None else max(self._numbers, number)
        at = self._numbers if number is None else number
        values = (_key(key), model, at, _place(place), encoded(response))
        if not self._execute("INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?, ?)", values):
            same = "SELECT data FROM answer WHERE key = ? AND model = ? AND number = ?"
            if self._table.execute(same, values[:3]).fetchone()[0] != values[-1]:
                self.leave_out(place, "answer_twice", model)
        return at

    def same_answer(
        self, key: object, model: str, response: dict[str, Any], place: Place, taken: Container[int] = ()
    ) -> int:
        """The number of an identical answer not in `taken`; adds the answer if there is none."""
        self._whole(response)
        query = "SELECT number FROM answer WHERE key = ? AND model = ? AND data = ? ORDER BY number"
        numbers = self._table.execute(query, (_key(key), model, encoded(response)))
        free = next((int(number) for (number,) in numbers if number not in taken), None)
        return self.answer(key, model, response, place) if free is None else free

    def has_answer(self, key: object, model: str) -> bool:
        query = "SELECT 1 FROM answer WHERE key = ? AND model = ?"
        return self._table.execute(query, (_key(key), model)).fetchone() is not None

    def verdict(self, key: object, record: dict[str, Any], place: Place) -> None:
        """Add a results file record without its line; `response` and `other_response` are numbers from `answer`.

        If there is no value, it is unparsed unless the record names another state.
        """
        if record["value"] is None:
            record = {"state": "unparsed"} | record
        values = (_key(key), _place(place), encoded(record))
        self._execute("INSERT INTO verdict (key, place, data) VALUES (?, ?, ?)", values)

    def rows(self) -> Iterator[ImportedRow]:
        """Each row with its answers. If any row has answers, rows without answers are left out."""
        answered = self._table.execute("SELECT 1 FROM answer LIMIT 1").fetchone() is not None
        line = 0
        for at, key, place, data in self._table.execute("SELECT at, key, place, data FROM row ORDER BY at"):
            outputs = self._outputs(key) if answered else []
            while len(self._lines) <= at:
                self._lines.append(0)
            if answered and not outputs:
                self.leave_out(_place_of(place), "row_without_answer")
                continue
            line += 1
            self._lines[at] = line
            row = restored(data)
            yield ImportedRow(row | ({"model_outputs": outputs} if outputs else {}), _place_of(place))
        for place, model in self._table.execute(_UNKNOWN):
            self.leave_out(_place_of(place), "answer_without_row", model)

    def _outputs(self, key: bytes) -> list[dict[str, Any]]:
        """Answers by model, models in order of appearance, up to the size limit of a row."""
        stored: dict[str, list[tuple[int, bytes, bytes]]] = {}
        for at, model, place, data in self._table.execute(_ANSWERS, (key,)):
            stored.setdefault(model, []).append((at, place, data))
        responses_of: dict[str, list[Any]] = {}
        size, beyond = 0, []
        for model in sorted(stored, key=lambda name: min(stored[name])[0]):
            for at, place, data in stored[model]:
                size += len(data)
                if size > self.options.limits.row_bytes:
                    self.leave_out(_place_of(place), "too_many_answers", model)
                    beyond.append((at,))
                else:
                    responses_of.setdefault(model, []).append(restored(data))
        if beyond:
            self._table.executemany("DELETE FROM answer WHERE rowid = ?", beyond)
        return [{"model_name": model, "responses": responses} for model, responses in responses_of.items()]

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """After `rows`: the verdicts whose rows and answers exist; others are left out.

        If the files contain no rows at all, yields the verdicts that name a row by `id`: the rows are elsewhere.
        """
        rows_elsewhere = self._count == 0
        for key, place, data, at in self._table.execute(_VERDICTS):
            record = restored(data)
            name = record.pop("id", None)
            line = self._lines[at] if at else 0
            if rows_elsewhere and name is not None:
                yield {"id": name} | record
            elif not line:
                self.leave_out(_place_of(place), "verdict_without_row")
            elif missing := self._without_answer(key, record):
                self.leave_out(_place_of(place), "verdict_without_answer", missing)
            elif record.get("other_model") == record["model"]:
                self.leave_out(_place_of(place), "same_answer", record["model"])
            else:
                yield {"line": line} | record
        self.close()

    def close(self) -> None:
        self._table.close()

    def _without_answer(self, key: bytes, record: dict[str, Any]) -> str:
        """The first model whose answer is missing, or ''. Changes answer numbers in `record` to count from 1."""
        for name, number in (("model", "response"), ("other_model", "other_response")):
            model = record.get(name)
            if model is None or model == REFERENCE:
                continue
            query = "SELECT COUNT(*), MAX(number) FROM answer WHERE key = ? AND model = ? AND number <= ?"
            wanted = record.get(number) or 1
            place, last = self._table.execute(query, (key, model, wanted)).fetchone()
            if last != wanted:
                return str(model)
            record[number] = place
        return ""


def encoded(value: Any) -> bytes:
    """Single-line JSON. Lone surrogates (as escapes) and integers beyond 64 bits use the slower json module."""
    try:
        return msgspec.json.encode(value)
    except _ODD:
        return json.dumps(value).encode()


_in_order = msgspec.json.Encoder(order="deterministic").encode


def _key(key: object) -> bytes:
    try:
        text = _in_order(key)
    except _ODD:
        text = json.dumps(key, sort_keys=True).encode()
    return blake2b(text, digest_size=16).digest()


_ODD = (msgspec.MsgspecError, UnicodeError, OverflowError)
"""msgspec errors for lone surrogates and very large numbers."""


def restored(text: bytes) -> Any:
    """Decode the result of `encoded`."""
    try:
        return msgspec.json.decode(text)
    except _ODD:
        return json.loads(text)


def _place(place: Place) -> bytes:
    return msgspec.json.encode([place.file, place.line, place.sheet])


def _place_of(text: bytes) -> Place:
    return Place(*msgspec.json.decode(text))
