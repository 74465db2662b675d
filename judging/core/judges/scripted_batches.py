"""The batches of the scripted server, in OpenAI's form and Anthropic's."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

_FILE = re.compile(rb"\r\n\r\n(\{.*?\})\r?\n?--", re.DOTALL)
Ask = Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]]]
"""Status and body of the reply to one request, by its path and body."""


@dataclass(slots=True)
class MadeBatch:
    """A batch that was made. `path`: of its requests; `lines`: {custom_id: body}."""

    id: str
    path: str
    lines: dict[str, dict[str, Any]]
    metadata: dict[str, str]
    state: str = "in_progress"
    created: float = field(default_factory=time.time)


@dataclass(slots=True)
class ScriptedBatches:
    """`answers`: how many of a batch's requests are answered when it ends (None: all); `before_cancelled`: when it is
    cancelled. Until `hold` is false, batches go on. `step` is called with the name of each request and `before` or
    `after` it was acted on."""

    hold: bool = False
    answers: int | None = None
    before_cancelled: int = 0
    step: Callable[[str, str], None] = lambda _name, _when: None
    files: dict[str, bytes] = field(default_factory=dict)
    created: list[MadeBatch] = field(default_factory=list)

    async def respond(self, request: web.BaseRequest, body: bytes, ask: Ask) -> web.Response | None:
        """The response to a request about batches; None for another one."""
        method, path = request.method, re.sub("^(?:/v1)?(?:/openai)?(?=/)", "", request.path)
        name = _name_of(method, path)
        if not name:
            return None
        self.step(name, "before")
        response = self._acted(name, path, body, ask)
        self.step(name, "after")
        return response

    def _acted(self, name: str, path: str, body: bytes, ask: Ask) -> web.Response:
        anthropic = path.startswith("/messages")
        if not self.hold and name in ("list", "status"):
            for batch in self.created:
                batch.state = "completed" if batch.state == "in_progress" else batch.state
        if name == "list":
            return web.json_response(
                {"data": [self._shown(batch, anthropic) for batch in reversed(self.created)]}
            )
        if name == "upload":
            match = _FILE.search(body)
            file = f"file-{len(self.files) + 1}"
            self.files[file] = match[1] if match else b""
            return web.json_response({"id": file})
        if name == "create":
            return web.json_response(self._shown(self._create(json.loads(body), anthropic), anthropic))
        if name == "content":
            return web.Response(body=self._content(path.split("/")[2].removeprefix("out-"), ask))
        batch = next(batch for batch in self.created if batch.id in path)
        if name == "results":
            return web.Response(body=self._results(batch, ask))
        if name == "cancel":
            batch.state = "cancelled"
        return web.json_response(self._shown(batch, anthropic))

    def _create(self, wanted: dict[str, Any], anthropic: bool) -> MadeBatch:
        if anthropic:
            path = "/v1/messages"
            lines = {entry["custom_id"]: entry["params"] for entry in wanted["requests"]}
        else:
            path = wanted["endpoint"]
            entries = list(map(json.loads, self.files[wanted["input_file_id"]].splitlines()))
            assert {entry["url"] for entry in entries} == {path}
            lines = {entry["custom_id"]: entry["body"] for entry in entries}
        identifier, metadata = f"batch-{len(self.created) + 1}", wanted.get("metadata") or {}
        self.created.append(MadeBatch(identifier, path, lines, metadata))
        return self.created[-1]

    def _shown(self, batch: MadeBatch, anthropic: bool) -> dict[str, Any]:
        ended = batch.state != "in_progress"
        if anthropic:
            counts = {
                "processing": 0 if ended else len(batch.lines),
                "succeeded": len(batch.lines) if ended else 0,
            }
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.created))
            state = "ended" if ended else "in_progress"
            return {
                "id": batch.id,
                "processing_status": state,
                "request_counts": counts,
                "created_at": created,
            }
        output = {"output_file_id": f"out-{batch.id}"} if ended else {}
        return {
            "id": batch.id,
            "status": batch.state,
            "request_counts": {"total": len(batch.lines)},
            "created_at": int(batch.created),
            "metadata": batch.metadata,
            **output,
        }

    def _answered(self, batch: MadeBatch) -> list[tuple[str, dict[str, Any]]]:
        answered = self.before_cancelled if batch.state == "cancelled" else self.answers
        return list(batch.lines.items())[:answered]

    def _content(self, batch_id: str, ask: Ask) -> bytes:
        batch = next(batch for batch in self.created if batch.id == batch_id)
        lines = []
        for custom_id, body in self._answered(batch):
            status, reply = ask(batch.path, body)
            lines.append(
                {"custom_id": custom_id, "response": {"status_code": status, "body": reply}, "error": None}
            )
        return "\n".join(map(json.dumps, lines)).encode()

    def _results(self, batch: MadeBatch, ask: Ask) -> bytes:
        lines = []
        for custom_id, body in self._answered(batch):
            status, reply = ask(batch.path, body)
            kind = (
                {"type": "succeeded", "message": reply}
                if status == 200
                else {"type": "errored", "error": reply}
            )
            lines.append({"custom_id": custom_id, "result": kind})
        return "\n".join(map(json.dumps, lines)).encode()


def _name_of(method: str, path: str) -> str:
    path = path.removeprefix("/messages")
    if path == "/batches":
        return "list" if method == "GET" else "create"
    if path == "/files":
        return "upload"
    if path.startswith("/files/"):
        return "content"
    if not path.startswith("/batches/"):
        return ""
    ending = path.rsplit("/", 1)[1]
    return ending if ending in ("cancel", "results") else "status"
