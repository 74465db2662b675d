"""The scripted judge: a server whose answers and faults come from a script. It speaks every protocol, told by the path.

For tests, demos and load tests: the client uses a real socket, and nothing is patched.

    with ScriptedJudge(reply="Score: [[7]]") as judge:
        ...                      # judge.url, judge.requests

`python -m judging.core.judges.scripted --median 0.5 --sigma 0.6` runs one for load tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

import msgspec
from aiohttp import web

from judging.core.judges.scripted_batches import ScriptedBatches
from judging.core.judges.scripted_protocols import Dialect, dialect_of, encoded

Fault = Literal["", "cut", "half_stream", "hang"]
MODEL = "scripted-judge"


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's response to one request. A `body` is sent as is, instead of the content; `raw` instead of the whole
    response, status line included, and then the connection is closed.

    `fault`: the connection closes before the first byte ("cut") or in the middle ("half_stream"), or nothing is sent.
    """

    content: str | None = ""
    reasoning: str | None = None
    finish_reason: str = "stop"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    raw: bytes | None = None
    delay: float = 0.0
    fault: Fault = ""
    arguments: str | None = None  # sent as a tool call, instead of the content
    tokens: tuple[int, int] = (10, 10)  # input and output tokens, as counted by the server
    model: str = MODEL
    fingerprint: str = ""


@dataclass(frozen=True)
class Received:
    """One received request; the body is decoded on first use."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    at: float = field(default_factory=time.monotonic)

    @cached_property
    def body(self) -> dict[str, Any]:
        decoded = msgspec.json.decode(self.raw)
        return decoded if isinstance(decoded, dict) else {}

    @property
    def prompt(self) -> str:
        """The text of the last user message, or ''."""
        if dialect := dialect_of(self.path):
            return dialect.prompt(self.body)
        messages = [message for message in self.body.get("messages", []) if message.get("role") == "user"]
        return str(messages[-1].get("content") or "") if messages else ""


Script = Callable[[Received], Answer | str]


def refusal(status: int, message: str, *, retry_after: str | None = None, **fields: Any) -> Answer:
    """An error response in OpenAI's format."""
    body = msgspec.json.encode({"error": {"message": message, **fields}})
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    if retry_after:
        headers += (("retry-after", retry_after),)
    return Answer(status=status, body=body, headers=headers)


def rate_limited(retry_after: str | None = "0") -> Answer:
    return refusal(429, "Rate limit reached", retry_after=retry_after, type="rate_limit_error")


def server_error() -> Answer:
    return refusal(500, "The server had an error while processing your request")


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds before the response: fixed (sigma 0) or log-normal around `median`, reproducible for a given seed."""

    median: float = 0.0
    sigma: float = 0.0
    seed: int = 0

    def stream(self) -> Callable[[], float]:
        generator = random.Random(self.seed)
        mu = math.log(self.median) if self.median > 0 else 0.0
        if self.median <= 0 or self.sigma <= 0:
            return lambda: self.median
        return lambda: generator.lognormvariate(mu, self.sigma)


@dataclass
class Server:
    """The server itself, for use in any event loop: `start`, then `stop`."""

    script: Script
    api_key: str = ""
    refuses: frozenset[str] = frozenset()
    terse: bool = False  # rejects parameters without naming them
    latency: Latency = Latency()
    tls: ssl.SSLContext | None = None
    models: tuple[str, ...] = (MODEL,)
    listing: Answer | None = None  # sent instead of the list of models
    batches: ScriptedBatches | None = None
    keep: bool = True
    requests: list[Received] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Start listening and return the base URL, which ends in /v1."""
        self._delay = self.latency.stream()
        self._stopping = asyncio.Event()
        self._server = web.Server(self._handle, access_log=None)
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._server, host, port, ssl=self.tls)
        bound = self._listening.sockets[0].getsockname()
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"{'https' if self.tls else 'http'}://{name}:{bound[1]}/v1"

    async def stop(self) -> None:
        self._stopping.set()
        # asyncio leaks the socket of an accepted connection without a transport when the server is closed.
        for socket in self._listening.sockets:
            asyncio.get_running_loop().remove_reader(socket)
        await asyncio.sleep(0.01)
        self._listening.close()
        await self._server.shutdown(0.1)
        await asyncio.sleep(0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        received = Received(request.method, request.path, request.headers, await request.read())
        if self.keep:
            self.requests.append(received)
        dialect = dialect_of(request.path)
        if self.api_key and _key_in(request, dialect) != self.api_key:
            return _plain(refusal(401, f"Incorrect API key provided: {_key_in(request, dialect)}"))
        if request.path.endswith("/models"):
            if self.listing is not None:
                return await _sent_raw(request, self.listing) if self.listing.raw else _plain(self.listing)
            listed = [{"id": name, "object": "model"} for name in self.models]
            return web.Response(body=msgspec.json.encode({"data": listed}), content_type="application/json")
        if self.batches is not None:
            answered = await self.batches.respond(request, received.raw, partial(self._reply, received))
            if answered is not None:
                return answered
        if request.method != "POST" or not (dialect or request.path.endswith("/chat/completions")):
            return _plain(refusal(404, "Not Found"))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._respond(request, received)
        finally:
            self.in_flight -= 1

    def _reply(self, received: Received, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the reply to one request of a batch."""
        raw = json.dumps(body).encode()
        answer = self.script(Received("POST", path, received.headers, raw))
        answer = Answer(content=answer) if isinstance(answer, str) else answer
        if answer.body is not None or answer.status != 200:
            return answer.status, json.loads(answer.body or b"{}")
        dialect = dialect_of(path)
        return 200, json.loads(encoded(dialect, answer, streams=False) if dialect else document(answer))

    async def _respond(self, request: web.BaseRequest, received: Received) -> web.StreamResponse:
        answer = self._refused(received) or self.script(received)
        answer = Answer(content=answer) if isinstance(answer, str) else answer
        delay = answer.delay + self._delay()
        if delay > 0:
            await asyncio.sleep(delay)
        if answer.fault == "hang":
            await self._stopping.wait()
        if answer.fault in ("hang", "cut"):
            return _aborted(request)
        if answer.fault == "half_stream":
            return await _half(request, answer)
        if answer.raw is not None:
            return await _sent_raw(request, answer)
        if answer.body is not None or answer.status != 200:
            return _plain(answer)
        # A search in the bytes, because decoding every body would be too expensive for a load test.
        streams = b'"stream":true' in received.raw or b'"stream": true' in received.raw
        if dialect := dialect_of(received.path):
            streams = streams or received.path.endswith(":streamGenerateContent")
            kind = "text/event-stream" if streams else "application/json"
            return web.Response(body=encoded(dialect, answer, streams), headers={"content-type": kind})
        if streams:
            return web.Response(body=streamed(answer), headers={"content-type": "text/event-stream"})
        return web.Response(body=document(answer), headers={"content-type": "application/json"})

    def _refused(self, received: Received) -> Answer | None:
        if not self.refuses:
            return None
        sent = {name for name, value in received.body.items() if value is not None and value is not False}
        named = sorted(self.refuses & sent)
        if not named:
            return None
        if self.terse:
            return refusal(400, "Bad Request")
        hint = " Use 'max_completion_tokens' instead." if named[0] == "max_tokens" else ""
        return refusal(400, f"Unsupported parameter: '{named[0]}' is not supported with this model.{hint}")


class ScriptedJudge:
    """Runs the server in its own thread on a free port, as a context manager.

    `reply` is a text, an Answer, a sequence of them (the last one repeats) or a function of the request.
    """

    def __init__(
        self, reply: str | Answer | Sequence[str | Answer] | Script = "Score: [[7]]", **server: Any
    ) -> None:
        self.server = Server(script=as_script(reply), **server)
        self.url = ""

    @property
    def requests(self) -> list[Received]:
        """The calls so far, without requests for the list of models."""
        return [request for request in self.server.requests if request.method == "POST"]

    def __enter__(self) -> ScriptedJudge:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(10)
        return self

    def __exit__(self, *_error: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def _key_in(request: web.BaseRequest, dialect: Dialect | None) -> str:
    """The key of a request, by the header of its protocol; Azure's differs from that of chat completions."""
    if dialect:
        return dialect.key(request.headers)
    if "/openai/" in request.path:
        return request.headers.get("api-key", "")
    shown = request.headers.get("authorization", "") or request.headers.get("x-api-key", "")
    return (shown or request.headers.get("x-goog-api-key", "")).removeprefix("Bearer ")


def as_script(reply: str | Answer | Sequence[str | Answer] | Script) -> Script:
    if callable(reply):
        return reply
    if isinstance(reply, (str, Answer)):
        return lambda _: reply
    left = list(reply)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@lru_cache(maxsize=4096)
def streamed(answer: Answer) -> bytes:
    """The answer as server-sent events, its text split into about eight of them."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": part} for part in _parts(answer.reasoning)]
    deltas += [{"content": part} for part in _parts(answer.content)]
    if answer.arguments is not None:
        deltas.append({"tool_calls": _tool_calls(answer.arguments)})
    choices: list[list[Any]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}])
    events = [_event(answer.model, {"choices": choice} | _fingerprint(answer)) for choice in choices]
    events.append(_event(answer.model, {"choices": [], "usage": _usage(answer)}))
    return b"".join([*events, b"data: [DONE]\n\n"])


@lru_cache(maxsize=4096)
def document(answer: Answer) -> bytes:
    """The answer as one JSON document."""
    message = {"role": "assistant", "content": answer.content, "reasoning_content": answer.reasoning}
    if answer.arguments is not None:
        message |= {"content": None, "tool_calls": _tool_calls(answer.arguments)}  # type: ignore[dict-item]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    fields = {
        "object": "chat.completion",
        "model": answer.model,
        "choices": [choice],
        "usage": _usage(answer),
    }
    return msgspec.json.encode(fields | _fingerprint(answer))


def _fingerprint(answer: Answer) -> dict[str, str]:
    return {"system_fingerprint": answer.fingerprint} if answer.fingerprint else {}


def _tool_calls(arguments: str) -> list[dict[str, Any]]:
    function = {"name": "give_verdict", "arguments": arguments}
    return [{"index": 0, "id": "call-1", "type": "function", "function": function}]


def _event(model: str, fields: dict[str, Any]) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model, **fields}
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def _parts(text: str | None) -> list[str]:
    if not text:
        return []
    size = -(-len(text) // 8)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _usage(answer: Answer) -> dict[str, int]:
    read, written = answer.tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _plain(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, body=answer.body or b"", headers=dict(answer.headers))


async def _half(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    events = streamed(answer)
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    await response.write(events[: len(events) // 2])
    # The written data must be sent before the connection is aborted.
    await asyncio.sleep(0.05)
    _aborted(request)
    return response


async def _sent_raw(request: web.BaseRequest, answer: Answer) -> web.Response:
    """Send bytes that need not be HTTP, and close the connection."""
    if request.transport is not None and isinstance(request.transport, asyncio.Transport):
        request.transport.write(answer.raw or b"")
        request.transport.close()
    return web.Response()


def _aborted(request: web.BaseRequest) -> web.Response:
    """Abort the connection; the returned response only satisfies aiohttp."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="An OpenAI-compatible server that always gives the same reply."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--reply", default="Score: [[7]]")
    parser.add_argument("--median", type=float, default=0.0, help="seconds before the answer")
    parser.add_argument("--sigma", type=float, default=0.0, help="spread of the log-normal latency; 0: fixed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    latency = Latency(options.median, options.sigma, options.seed)
    server = Server(script=as_script(options.reply), latency=latency, keep=False)
    asyncio.run(serve_forever(server, options.host, options.port))


async def serve_forever(server: Server, host: str, port: int) -> None:
    sys.stdout.write(f"{await server.start(host, port)}\n")
    sys.stdout.flush()
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


if __name__ == "__main__":
    main()
