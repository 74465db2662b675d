"""OpenAI batches: request and response files read as tables and joined by `custom_id`.

Response files do not contain the prompt. If several requests share an id, the one to the model that answered is used.
"""

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

from datasets.core.imports.chat import content_of
from datasets.core.imports.collector import encoded, restored
from datasets.core.imports.columns import Columns, Record
from datasets.core.imports.json_records import first_record, json_records, list_at, object_at, value_at
from datasets.core.imports.model import BrokenRecord, SourceFile
from datasets.core.imports.tables import SourceTable
from datasets.core.limits import Limits

COLUMNS = ["custom_id", "messages", "model", "answer", "finish_reason", "parameters", "usage"]
MAPPING = Columns(messages="messages", model="model", answer="answer", fields=(("custom_id", "custom_id"),))
_ASKED = ("messages", "input", "prompt", "instructions", "model")
_TABLE = "CREATE TABLE request (id TEXT, model TEXT, line INTEGER, file INTEGER, body BLOB, used INTEGER DEFAULT 0)"
_REQUEST = "SELECT rowid, body FROM request WHERE id = ? ORDER BY INSTR(?, model) = 1 DESC, rowid LIMIT 1"

Records = Iterator[tuple[int, Record | BrokenRecord]]


def _kind(record: Any) -> Literal["request", "output", ""]:
    if not isinstance(record, dict) or "custom_id" not in record:
        return ""
    if isinstance(record.get("body"), dict) and "response" not in record:
        return "request"
    return "output" if "response" in record else ""


def _kind_of(file: SourceFile) -> str:
    return _kind(first_record(file))


def are_joined(files: Sequence[SourceFile]) -> bool:
    """Whether the files are requests and their responses, and nothing else."""
    return len(files) > 1 and {_kind_of(file) for file in files} == {"request", "output"}


def joined_tables(files: Sequence[SourceFile], limits: Limits) -> list[tuple[str, SourceTable]]:
    """A table for each file: responses with their prompts, requests only if unanswered."""
    requests = [file for file in files if _kind_of(file) == "request"]
    join = _Join(requests, [file for file in files if file not in requests], limits)
    records = [(file, join.answers) for file in join.outputs] + [(file, join.unanswered) for file in requests]
    return [
        (file.name, SourceTable(COLUMNS, partial(read, file), encoding="utf-8", mapping=MAPPING))
        for file, read in records
    ]


class _Join:
    """The requests by id, stored on disk, with a flag for the answered ones."""

    def __init__(self, requests: Sequence[SourceFile], outputs: Sequence[SourceFile], limits: Limits) -> None:
        self.outputs, self._requests, self._limits = outputs, requests, limits
        self._table: sqlite3.Connection | None = None
        self._read: set[str] = set()

    def _known(self) -> sqlite3.Connection:
        if self._table is None:
            self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._table.close)
            self._table.execute(_TABLE)
            self._table.execute("CREATE INDEX by_id ON request (id)")
            self._table.execute("BEGIN")
            for number, file in enumerate(self._requests):
                for line, record in json_records(file, self._limits):
                    if _kind(record) == "request":
                        body = record["body"]
                        values = (str(record["custom_id"]), str(body.get("model") or ""), line, number)
                        query = "INSERT INTO request (id, model, line, file, body) VALUES (?, ?, ?, ?, ?)"
                        self._table.execute(query, (*values, encoded(body)))
        return self._table

    def answers(self, file: SourceFile) -> Records:
        """Yield each response in a file with its prompt."""
        for line, record in json_records(file, self._limits):
            if isinstance(record, BrokenRecord):
                yield line, record
            elif _kind(record) != "output":
                yield line, BrokenRecord("not_a_record")
            else:
                for found in self._answered(record):
                    yield line, found
        self._read.add(file.name)

    def _answered(self, record: dict[str, Any]) -> Iterator[Record | BrokenRecord]:
        name, body = str(record["custom_id"]), object_at(record, "response", "body")
        model, table = str(body.get("model") or ""), self._known()
        known = table.execute(_REQUEST, (name, model)).fetchone()
        if known is None:
            yield BrokenRecord("answer_without_row", name)
            return
        table.execute("UPDATE request SET used = 1 WHERE rowid = ?", known[:1])
        asked = restored(known[1])
        answers = list(_texts(body))
        if not answers:
            yield BrokenRecord("no_answer", f"{name}: {_error(record, body)}"[:200].rstrip(": "))
        for text, reason in answers:
            yield {
                "custom_id": name,
                "messages": _messages(asked),
                "model": model or str(asked.get("model") or "model"),
                "answer": text,
                "finish_reason": reason,
                "parameters": {key: value for key, value in asked.items() if key not in _ASKED},
                "usage": body.get("usage"),
            }

    def unanswered(self, file: SourceFile) -> Records:
        """Yield the unanswered requests of a file, once all response files have been read."""
        if self._read >= {one.name for one in self.outputs}:
            query = "SELECT line, id FROM request WHERE file = ? AND NOT used ORDER BY rowid"
            for line, name in self._known().execute(query, (self._requests.index(file),)):
                yield line, BrokenRecord("row_without_answer", name)


def _messages(asked: dict[str, Any]) -> list[Any]:
    """The messages of a request to any of the endpoints."""
    given: Any = next((asked[name] for name in ("messages", "input", "prompt") if asked.get(name)), [])
    messages = given if isinstance(given, list) else [{"role": "user", "content": str(given)}]
    if isinstance(asked.get("instructions"), str):
        return [{"role": "system", "content": asked["instructions"]}, *messages]
    return messages


def _texts(body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (text, finish reason) for each answer of a chat, completions or responses body."""
    for choice in list_at(body, "choices"):
        is_chat = isinstance(value_at(choice, "message"), dict)
        content = value_at(choice, "message", "content") if is_chat else value_at(choice, "text")
        if text := content_of(content).text:
            yield text, choice.get("finish_reason")
    parts = (part for part in list_at(body, "output") if value_at(part, "type") == "message")
    if text := "".join(content_of(part.get("content")).text for part in parts):
        yield text, body.get("status")


def _error(record: dict[str, Any], body: dict[str, Any]) -> str:
    error = object_at(record, "error") or object_at(body, "error")
    return str(error.get("message") or error.get("code") or "")
