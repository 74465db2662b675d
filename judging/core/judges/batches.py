"""Batches of requests, which servers answer within a day at half the price: OpenAI's form, which Azure has too, and
Anthropic's.

Fields as in the API references of OpenAI ("Batch"), Azure ("Batch - Create") and Anthropic ("Message Batches").
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from judging.core.judges.addresses import split_address, with_path
from judging.core.judges.client import messages_shown
from judging.core.judges.error_responses import error_for_status
from judging.core.judges.errors import Interrupted, Unusable
from judging.core.judges.http_clients import network_error, network_errors, request_headers
from judging.core.judges.protocols import azure
from judging.core.judges.protocols.protocol import mapping, objects
from judging.core.judges.settings import JudgeSettings, Request

if TYPE_CHECKING:
    import httpx

ANTHROPIC = "anthropic"
MARK = "evalsite"
"""The key in a batch's metadata under which it is found again."""
LISTED = 100
SECONDS = 120.0
MOST_BYTES = 64 * 2**20
_NOT_IN_BATCHES = ("stream", "stream_options")
_STATUS = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
"""The status that Anthropic's errors have outside batches; that of all others is 400."""
_ENDED = ("completed", "failed", "expired", "cancelled", "ended")
EXPIRED = "batch_expired"


def may_offer(settings: JudgeSettings) -> bool:
    """Whether servers of this protocol may answer batches."""
    return settings.protocol == ANTHROPIC or bool(settings.speaks.batch_path)


class Line(NamedTuple):
    """A request of a batch, in the form of chat completions."""

    custom_id: str
    request: Request


class ItemResult(NamedTuple):
    """What a batch says of one of its requests: the status and body of its reply; status 0 if it was not answered."""

    custom_id: str
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch as its server describes it. `state`: in the server's word; `items`: how many requests it has; `created`:
    Unix seconds; `marker`: from its metadata; `files`: where its results are, in OpenAI's form."""

    id: str
    state: str
    items: int
    created: float
    marker: str = ""
    files: tuple[str, ...] = ()
    problem: str = field(default="")

    @property
    def ended(self) -> bool:
        return self.state in _ENDED


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of an endpoint. All methods raise JudgeError."""

    client: httpx.AsyncClient
    settings: JudgeSettings

    @property
    def _anthropic(self) -> bool:
        return self.settings.protocol == ANTHROPIC

    def _url(self, call: str, query: str = "") -> str:
        """The URL of a call beside the list of models."""
        parts = split_address(self.settings.speaks.models_url(self.settings.url))
        path = parts.path.removesuffix("/models") + call
        return with_path(parts, path, "&".join(filter(None, [parts.query, query])))

    def _batches(self, call: str = "", query: str = "") -> str:
        return self._url(f"/messages/batches{call}" if self._anthropic else f"/batches{call}", query)

    async def offered(self) -> bool:
        """Whether the server offers batches: by reading the list; nothing is created."""
        answer = await self._json("GET", self._batches(query="limit=1"))
        return isinstance(answer.get("data"), list)

    async def submit(self, marker: str, lines: Iterable[Line]) -> str:
        """Send the requests as a batch with this marker. Returns its id."""
        bodies = [(line.custom_id, self._body(line.request)) for line in lines]
        if self._anthropic:
            requests = [{"custom_id": custom_id, "params": body} for custom_id, body in bodies]
            return _id(await self._json("POST", self._batches(), json={"requests": requests}))
        url = self.settings.speaks.batch_path
        texts = [
            json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": body})
            for custom_id, body in bodies
        ]
        content = "\n".join(texts).encode()
        form = {"files": {"file": (f"{marker}.jsonl", content)}, "data": {"purpose": "batch"}}
        file = _id(await self._json("POST", self._url("/files"), **form))
        wanted = {"input_file_id": file, "endpoint": url, "completion_window": "24h"}
        return _id(await self._json("POST", self._batches(), json=wanted | {"metadata": {MARK: marker}}))

    def _body(self, request: Request) -> Request:
        sendable = {name: value for name, value in request.items() if name not in _NOT_IN_BATCHES}
        if self.settings.speaks is azure.PROTOCOL:
            sendable["model"] = azure.deployment_of(self.settings.url, request)
        return self.settings.speaks.body(sendable)

    async def recent(self) -> list[RemoteBatch]:
        """The newest batches, newest first."""
        answer = await self._json("GET", self._batches(query=f"limit={LISTED}"))
        return [_batch(entry) for entry in objects(answer.get("data"))]

    async def get(self, batch: str) -> RemoteBatch:
        return _batch(await self._json("GET", self._batches(f"/{batch}")))

    async def cancel(self, batch: str) -> None:
        """Ask for its end; what was answered until then has results."""
        await self._json("POST", self._batches(f"/{batch}/cancel"), json={})

    async def results(self, batch: RemoteBatch) -> AsyncIterator[ItemResult]:
        """The results of a batch that has ended, in any order. A request that was not answered may be absent."""
        urls = [self._url(f"/files/{file}/content") for file in batch.files]
        for url in [self._batches(f"/{batch.id}/results")] if self._anthropic else urls:
            async for line in self._lines(url):
                yield _result(line)

    async def _json(self, method: str, url: str, **content: Any) -> Mapping[str, Any]:
        async with self._sent(method, url, **content) as response:
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MOST_BYTES:
                    raise Unusable("too_long", status=response.status_code)
        try:
            return mapping(json.loads(body))
        except ValueError as error:
            raise Unusable("bad_reply", str(error), status=response.status_code) from None

    async def _lines(self, url: str) -> AsyncIterator[Mapping[str, Any]]:
        async with self._sent("GET", url) as response:
            async for line in response.aiter_lines():
                if len(line) > MOST_BYTES:
                    raise Unusable("too_long", status=response.status_code)
                if line.strip():
                    try:
                        yield mapping(json.loads(line))
                    except ValueError as error:
                        raise Unusable("bad_reply", str(error), status=response.status_code) from None

    @asynccontextmanager
    async def _sent(self, method: str, url: str, **content: Any) -> AsyncIterator[httpx.Response]:
        headers = request_headers(self.settings).copy()
        if "files" in content:
            del headers["content-type"]  # httpx adds that of a form
        with messages_shown(self.settings):
            try:
                async with (
                    asyncio.timeout(self.settings.timeouts.whole),
                    self.client.stream(method, url, headers=headers, timeout=SECONDS, **content) as response,
                ):
                    if response.status_code >= 300:
                        body = (await response.aread())[:10_000]
                        raise error_for_status(response.status_code, response.headers, body)
                    yield response
            except TimeoutError:
                raise Interrupted("timeout_whole") from None
            except network_errors() as error:
                raise network_error(error) from error


def _id(answer: Mapping[str, Any]) -> str:
    identity = answer.get("id")
    if not isinstance(identity, str) or not identity or len(identity) > 200:
        raise Unusable("bad_reply", "no id")
    return identity


def _batch(entry: Mapping[str, Any]) -> RemoteBatch:
    counts = mapping(entry.get("request_counts"))
    numbers = [value for name, value in counts.items() if isinstance(value, int) and name != "total"]
    total = counts.get("total")
    files = (entry.get("output_file_id"), entry.get("error_file_id"))
    errors = objects(mapping(entry.get("errors")).get("data"))
    return RemoteBatch(
        str(entry.get("id") or ""),
        str(
            entry.get("status") or entry.get("processing_status") or ""
        ).lower(),  # Azure's may be in capitals
        total if isinstance(total, int) else sum(numbers),
        _seconds(entry.get("created_at")),
        str(mapping(entry.get("metadata")).get(MARK) or ""),
        tuple(str(file) for file in files if file),
        "; ".join(str(error.get("message") or "") for error in errors),
    )


def _seconds(value: Any) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _result(line: Mapping[str, Any]) -> ItemResult:
    custom_id = str(line.get("custom_id") or "")
    if "result" in line:  # Anthropic's
        result = mapping(line["result"])
        if result.get("type") == "succeeded":
            return ItemResult(custom_id, 200, _encoded(result.get("message")))
        if result.get("type") == "errored":
            error = mapping(result.get("error"))
            kind = str(mapping(error.get("error")).get("type") or error.get("type"))
            return ItemResult(custom_id, _STATUS.get(kind, 400), _encoded(error))
        return ItemResult(custom_id, 0, b"")
    response = mapping(line.get("response"))
    if not response:
        return ItemResult(custom_id, 0, b"")
    status = response.get("status_code")
    return ItemResult(custom_id, status if isinstance(status, int) else 200, _encoded(response.get("body")))


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
