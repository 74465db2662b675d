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
from datasets.core.imports.key_use import KeyUse
from datasets.core.imports.model import BrokenRecord, Place, SourceFile
from datasets.core.imports.tables import SourceTable
from datasets.core.limits import Limits

COLUMNS = ["custom_id", "messages", "model", "answer", "finish_reason", "parameters", "usage"]
MAPPING = Columns(messages="messages", model="model", answer="answer", fields=(("custom_id", "custom_id"),))
_NO_PARAMETERS = ("messages", "input", "prompt", "instructions", "model")
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
    tables = [
        SourceTable(COLUMNS, partial(read, file), encoding="utf-8", mapping=MAPPING) for file, read in records
    ]
    tables[0].key_uses = [join.keys]
    return [(file.name, table) for (file, _read), table in zip(records, tables, strict=True)]


class _Join:
    """The requests by id, stored on disk, with a flag for the answered ones."""

    def __init__(self, requests: Sequence[SourceFile], outputs: Sequence[SourceFile], limits: Limits) -> None:
        self.outputs, self._requests, self._limits = outputs, requests, limits
        self.keys = KeyUse()
        self._table: sqlite3.Connection | None = None
        self._read: set[str] = set()

    def _request_table(self) -> sqlite3.Connection:
        if self._table is None:
            self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._table.close)
            self._table.execute(_TABLE)
            self._table.execute("CREATE INDEX by_id ON request (id)")
            self._table.execute("BEGIN")
            for number, file in enumerate(self._requests):
                for line, value in json_records(file, self._limits):
                    if _kind(value) == "request":
                        record = self.keys.record(Place(file.name, line), value)
                        body = record["body"]
                        model = str(dict.get(body, "model") or "")
                        values = (str(record["custom_id"]), model, line, number)
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
                for answer in self._answered(self.keys.record(Place(file.name, line), record)):
                    yield line, answer
        self._read.add(file.name)

    def _answered(self, record: dict[str, Any]) -> Iterator[Record | BrokenRecord]:
        name, body = str(record["custom_id"]), object_at(record, "response", "body")
        model, table = str(body.get("model") or ""), self._request_table()
        row = table.execute(_REQUEST, (name, model)).fetchone()
        if row is None:
            yield BrokenRecord("answer_without_row", name)
            return
        table.execute("UPDATE request SET used = 1 WHERE rowid = ?", row[:1])
        request = restored(row[1])
        answers = list(_texts(body))
        if not answers:
            yield BrokenRecord("no_answer", f"{name}: {_error(record, body)}"[:200].rstrip(": "))
        for text, reason in answers:
            yield {
                "custom_id": name,
                "messages": _messages(request),
                "model": model or str(request.get("model") or "model"),
                "answer": text,
                "finish_reason": reason,
                "parameters": {key: value for key, value in request.items() if key not in _NO_PARAMETERS},
                "usage": body.get("usage"),
            }

    def unanswered(self, file: SourceFile) -> Records:
        """Yield the unanswered requests of a file, once all response files have been read."""
        if self._read >= {output.name for output in self.outputs}:
            query = "SELECT line, id FROM request WHERE file = ? AND NOT used ORDER BY rowid"
            for line, name in self._request_table().execute(query, (self._requests.index(file),)):
                yield line, BrokenRecord("row_without_answer", name)


def _messages(request: dict[str, Any]) -> list[Any]:
    """The messages of a request to any of the endpoints."""
    prompt: Any = next((request[name] for name in ("messages", "input", "prompt") if request.get(name)), [])
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": str(prompt)}]
    if isinstance(request.get("instructions"), str):
        return [{"role": "system", "content": request["instructions"]}, *messages]
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
