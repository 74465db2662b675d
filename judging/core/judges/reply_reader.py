"""Parses the bytes of a response into a Reply: server-sent events as they arrive, or one JSON document.

This is the hot path of a run: one typed decode per event; anything unusual is handled after an exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from judging.core.json_size import TooLarge, check_json_size
from judging.core.judges.error_responses import error_in_body, server_words
from judging.core.judges.errors import Interrupted, Refused, Unusable
from judging.core.judges.reply import Reply, Usage

MAX_BYTES = 64 * 2**20  # on the wire, where one token costs 200–400 bytes
MAX_TEXT = 2**20  # characters of content, reasoning and tool calls together
MAX_LINE = 4 * 2**20  # bytes of one event, or of a whole reply that is not streamed

MAX_DEPTH = 100  # of nested brackets
MAX_MARKS = 500_000  # strings, commas and brackets in one event

OnText = Callable[[Literal["content", "reasoning"], str], None]


class _Message(msgspec.Struct, gc=False):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int | None = 0
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: str | None = None
    error: Any = None
    object: str | None = None


_CHUNK = msgspec.json.Decoder(_Chunk)
_decode = _CHUNK.decode


class ReplyReader:
    """Assembles one reply: `feed` it bytes as they arrive, `finish` at the end of the stream."""

    def __init__(self, status: int = 200, on_text: OnText | None = None) -> None:
        self.status = status
        self.done = False  # the end mark was read
        self.size = 0  # characters of text so far
        self._on_text = on_text
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._tool_calls: list[Any] = []
        self._finish_reason: str | None = None
        self._usage: Any = None
        self._model: str | None = None
        self._is_document: bool | None = None  # False: server-sent events; None until the first byte
        self._tail = b""  # an incomplete line
        self._held = b""  # lines of an event that is not complete JSON yet
        self._bytes = 0
        self._understood = False
        self._odd = False

    def feed(self, data: bytes) -> None:
        """Process received bytes. Raises JudgeError for an error in the stream, or if the reply is too long."""
        self._bytes += len(data)
        if self._tail:
            data = self._tail + data
        if self._is_document is None:
            start = data.lstrip()[:1]
            self._is_document = start == b"{" if start else None
        if self._is_document:
            self._tail = data
        else:
            lines = data.split(b"\n")
            self._tail = lines.pop()
            self._read_lines(lines)
        if len(self._tail) > MAX_LINE or self._bytes > MAX_BYTES:
            raise Unusable("too_long", status=self.status)

    def finish(self, seconds: float, first_token_seconds: float | None) -> Reply:
        """Build the reply. Raises Interrupted `cut` if it is incomplete, another JudgeError if it is unusable."""
        if self._is_document:
            self._read(self._tail)
        elif not self.done:
            self._read_lines([self._tail])
        if self._understood and not (self.done or self._is_document or self._finish_reason):
            raise Interrupted("cut", status=self.status)
        if self._held or not self._understood:
            raise Unusable("bad_reply", _beginning(self._held or self._tail), status=self.status)
        reply = Reply(
            content=self._joined("".join(self._content)),
            reasoning_content=self._joined("".join(self._reasoning)) or None,
            tool_calls=self._calls() or None,
            finish_reason=self._joined(self._finish_reason or "") or None,
            usage=_usage(self._usage),
            model=self._joined(self._model or "") or None,
            seconds=seconds,
            first_token_seconds=first_token_seconds,
            status=self.status,
            streamed=not self._is_document,
        )
        return self._checked(reply)

    def _checked(self, reply: Reply) -> Reply:
        if reply.content.strip() or reply.tool_calls:
            return reply
        if self._refusal or reply.finish_reason == "content_filter":
            raise Refused("content_filter", "".join(self._refusal)[:500], status=self.status, reply=reply)
        code = "truncated" if reply.finish_reason == "length" else "empty_reply"
        raise Unusable(code, status=self.status, reply=reply)

    def _read_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if line[:5] == b"data:":
                self._read(line[5:])

    def _read(self, payload: bytes) -> None:
        self._check_size(payload)
        try:
            chunk = _decode(payload)
        except (ValueError, RecursionError):
            self._read_odd(payload)
        else:
            self._take(chunk, payload)

    def _read_odd(self, payload: bytes) -> None:
        """Handle the end mark, a lone surrogate, an event over several lines, or invalid data."""
        if payload.strip() == b"[DONE]":
            self.done = True
            return
        self._odd = True
        whole = self._held + b"\n" + payload if self._held else payload
        self._check_size(whole)
        try:
            value = json.loads(whole.decode("utf-8", "replace"), parse_constant=lambda _: None)
            chunk = msgspec.convert(value, _CHUNK.type, strict=False)
        except (ValueError, RecursionError):
            self._held = whole
            if len(whole) > MAX_LINE:
                raise Unusable("bad_reply", _beginning(whole), status=self.status) from None
        else:
            self._held = b""
            self._take(chunk, whole)

    def _check_size(self, payload: bytes) -> None:
        try:
            check_json_size(payload, depth=MAX_DEPTH, marks=MAX_MARKS)
        except TooLarge:
            raise Unusable("bad_reply", _beginning(payload), status=self.status) from None

    def _take(self, chunk: _Chunk, payload: bytes) -> None:
        if chunk.error or chunk.object == "error":
            raise error_in_body(json.loads(payload.decode("utf-8", "replace")), self.status)
        if chunk.model:
            self._model = chunk.model
        if chunk.usage:
            self._usage = chunk.usage
        if chunk.choices is None:
            return
        self._understood = True
        for choice in chunk.choices:
            # Other indices are further answers, requested with n > 1; only the first one counts.
            if not choice.index:
                self._take_choice(choice)

    def _take_choice(self, choice: _Choice) -> None:
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        message = choice.delta or choice.message
        if message is None:
            return
        if message.content:
            self._say("content", self._content, _plain(message.content))
        reasoning = message.reasoning_content or message.reasoning
        if reasoning:
            self._say("reasoning", self._reasoning, reasoning)
        if message.tool_calls:
            self._tool_calls += message.tool_calls
            self._count(len(json.dumps(message.tool_calls)))
        if message.refusal:
            self._refusal.append(message.refusal)

    def _say(self, kind: Literal["content", "reasoning"], parts: list[str], text: str) -> None:
        parts.append(text)
        self._count(len(text))
        if self._on_text is not None:
            self._on_text(kind, text)

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > MAX_TEXT:
            raise Unusable("too_long", status=self.status)

    def _calls(self) -> list[Any]:
        calls = _merged(self._tool_calls)
        return json.loads(self._joined(json.dumps(calls, ensure_ascii=False))) if self._odd else calls

    def _joined(self, text: str) -> str:
        # The halves of a surrogate pair may arrive in two events; a lone half is not a character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if self._odd else text


def _plain(content: str | list[Any]) -> str:
    """The text of content, which may be a list of parts: [{"type": "text", "text": "…"}]."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "".join(text for text in texts if isinstance(text, str))


def _merged(pieces: list[Any]) -> list[Any]:
    """Merge the pieces of tool calls: pieces of one call share an `index`, and their arguments are concatenated."""
    calls: dict[Any, Any] = {}
    for number, piece in enumerate(pieces):
        if not isinstance(piece, dict):
            continue
        key = piece.get("index", f"piece {number}")
        key = key if isinstance(key, (int, str)) else f"piece {number}"
        known = calls.setdefault(key, {})
        function = {**known.get("function", {}), **_arguments_appended(known, piece.get("function"))}
        known.update({name: value for name, value in piece.items() if name != "index" and value is not None})
        known["function"] = function
    return list(calls.values())


def _arguments_appended(known: dict[str, Any], function: Any) -> dict[str, Any]:
    if not isinstance(function, dict):
        return {}
    fresh = {name: value for name, value in function.items() if value is not None}
    if isinstance(fresh.get("arguments"), str):
        fresh["arguments"] = str(known.get("function", {}).get("arguments", "")) + fresh["arguments"]
    return fresh


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 2**31 else None


def _beginning(payload: bytes) -> str:
    return server_words(payload[:2000].decode("utf-8", "replace"))
