"""Parses the bytes of a response into a Reply: server-sent events as they arrive, or one JSON document.

This is the hot path of a run: one typed decode per event; anything unusual is handled after an exception. No byte is
looked at more than a few times, whatever a server sends: a worker's event loop waits for this code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from judging.core.json_size import TooLarge, check_json_size
from judging.core.judges.error_responses import error_in_body, is_error, server_words
from judging.core.judges.errors import Interrupted, Refused, Unusable
from judging.core.judges.outside_text import MAX_NAME, clean, clean_json
from judging.core.judges.reply import REFUSED, Reply, Usage

MAX_BYTES = 64 * 2**20  # on the wire, where one token costs 200–400 bytes
MAX_TEXT = 2**20  # characters of content, reasoning and tool calls together
MAX_LINE = 4 * 2**20  # bytes of one event, or of a whole reply that is not streamed

MAX_EVENT_LINES = 10_000
MAX_EMPTY_EVENTS = 10_000  # without an answer

MAX_DEPTH = 100  # of nested brackets
MAX_MARKS = 500_000  # strings, commas and brackets in one event

_BOM = b"\xef\xbb\xbf"
_MOST_UNREAD = 2000  # bytes of lines that are no events, for the error message

ONLY_REASONING = "the text is in the reasoning"
"""The message of an `empty_reply` whose reasoning is not empty."""

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
    system_fingerprint: Any = None
    error: Any = None
    base_resp: Any = None
    object: str | None = None


_CHUNK = msgspec.json.Decoder(_Chunk)
_decode = _CHUNK.decode


class ReplyReader:
    """Assembles one reply: `feed` it bytes as they arrive, `finish` at the end of the stream."""

    def __init__(
        self,
        status: int = 200,
        on_text: OnText | None = None,
        request: Mapping[str, Any] | None = None,
        as_chunk: Callable[[Any], Any] | None = None,
    ) -> None:
        self.status = status
        self._as_chunk = as_chunk  # None: the server sends chunks of chat completions
        self.done = False  # the end mark was read
        self.size = 0  # characters of text so far
        self._on_text = on_text
        self._request = request
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._tool_calls: list[Any] = []
        self._finish_reason: str | None = None
        self._usage: Any = None
        self._model: str | None = None
        self._fingerprint: str | None = None
        self._is_document: bool | None = None  # False: server-sent events; None until the first byte
        self._tail = bytearray()  # an incomplete line, or a document so far
        self._after_cr = False
        self._event = b""  # the current event's name
        self._held: list[bytes] = []  # its data lines that are to be decoded together, at the next empty line
        self._held_bytes = 0
        self._unread = bytearray()
        self._broken = False  # an event could not be decoded; an error may still follow
        self._bytes = 0
        self._understood = False
        self._empty_events = 0

    def feed(self, data: bytes) -> None:
        """Process received bytes. Raises JudgeError for an error in the stream, or if the reply is too long."""
        self._bytes += len(data)
        if self._is_document is None:
            data = data.lstrip(_BOM + b" \t\r\n")
            self._is_document = data[:1] in (b"{", b"[") if data else None
        if self._is_document:
            self._tail += data
        elif data:
            self._read_lines(self._lines(data))
        if len(self._tail) > MAX_LINE or self._bytes > MAX_BYTES:
            raise Unusable("too_long", status=self.status)

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes; they end in LF, CR LF or CR."""
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
        self._after_cr = data[-1:] == b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            lines[0] = bytes(self._tail) + lines[0]
            self._tail.clear()
        self._tail += rest
        return lines

    def finish(self, seconds: float, first_token_seconds: float | None) -> Reply:
        """Build the reply. Raises Interrupted `cut` if it is incomplete, another JudgeError if it is unusable."""
        if self._is_document:
            self._read_document(bytes(self._tail))
        elif not self.done:
            if self._tail:
                self._read_lines([bytes(self._tail)])
            self._end_event(at_end=True)
        if self._understood and not (self.done or self._is_document or self._finish_reason):
            raise Interrupted("cut", status=self.status)
        if self._broken or not self._understood:
            raise self._bad_reply(bytes(self._unread))
        reply = Reply(
            content=clean("".join(self._content)),
            reasoning_content=clean("".join(self._reasoning)) or None,
            tool_calls=clean_json(_merged(self._tool_calls)) or None,
            finish_reason=clean(self._finish_reason or "")[:MAX_NAME] or None,
            usage=_usage(self._usage),
            model=clean(self._model or "")[:MAX_NAME] or None,
            fingerprint=clean(self._fingerprint or "")[:MAX_NAME] or None,
            seconds=seconds,
            first_token_seconds=first_token_seconds,
            status=self.status,
            streamed=not self._is_document,
        )
        return self._checked(reply)

    def _checked(self, reply: Reply) -> Reply:
        if reply.content.strip() or reply.tool_calls:
            return reply
        if self._refusal or reply.finish_reason in REFUSED:
            raise Refused("content_filter", "".join(self._refusal), status=self.status, reply=reply)
        code = "truncated" if reply.finish_reason == "length" else "empty_reply"
        words = ONLY_REASONING if code == "empty_reply" and (reply.reasoning_content or "").strip() else ""
        raise Unusable(code, words, status=self.status, reply=reply)

    def _read_document(self, payload: bytes) -> None:
        self._check_size(payload)
        payload = self._translated(payload)
        try:
            chunk = _decode(payload)
        except (ValueError, RecursionError):
            lenient = _decode_leniently(payload)
            if lenient is None:
                raise self._bad_reply(payload) from None
            chunk = lenient
        self._take(chunk, payload)

    def _read_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if line[:5] == b"data:":
                self._read_data(line[5:])
            elif not line:
                if self._held or self._event:
                    self._end_event()
            elif line[:3] == _BOM:
                self._read_lines([line.lstrip(_BOM)])
            elif line[:6] == b"event:":
                self._event = line[6:].strip()
            elif line[:1] != b":":
                self._leave_unread(line)

    def _read_data(self, payload: bytes) -> None:
        if self._held or self._event == b"error":
            return self._hold(payload)
        self._check_size(payload)
        payload = self._translated(payload)
        try:
            chunk = _decode(payload)
        except (ValueError, RecursionError):
            self._read_odd(payload)
        else:
            self._take(chunk, payload)

    def _read_odd(self, payload: bytes) -> None:
        """Handle the end mark, a lone surrogate, the first line of an event over several lines, or invalid data."""
        if _is_end_mark(payload):
            self.done = True
        elif payload.strip():
            chunk = _decode_leniently(payload)
            if chunk is None:
                self._hold(payload)
            else:
                self._take(chunk, payload)

    def _hold(self, payload: bytes) -> None:
        """Keep a line of an event over several lines until the event ends."""
        if _is_end_mark(payload):
            self._end_event()
            self.done = True
            return
        self._held.append(payload)
        self._held_bytes += len(payload) + 1
        if len(self._held) > MAX_EVENT_LINES or self._held_bytes > MAX_LINE:
            raise self._bad_reply(self._held[0])

    def _end_event(self, *, at_end: bool = False) -> None:
        """Decode the held lines of an event once. `at_end`: the stream ended, and the event may be incomplete."""
        name, self._event = self._event, b""
        if not self._held:
            return
        whole, self._held, self._held_bytes = b"\n".join(self._held), [], 0
        self._check_size(whole)
        whole = self._translated(whole)
        if name == b"error":
            raise error_in_body(_value(whole), self.status, self._request)
        chunk = _decode_leniently(whole)
        if chunk is not None:
            self._take(chunk, whole)
        elif at_end and self._understood:
            raise Interrupted("cut", status=self.status)
        else:
            self._broken = True
            self._leave_unread(whole)
            self._count_empty(whole)

    def _translated(self, payload: bytes) -> bytes:
        """An event or document of another protocol as a chunk of chat completions; what is neither stays as it is."""
        if self._as_chunk is None:
            return payload
        event = _value(payload)
        chunk = event if isinstance(event, str) else self._as_chunk(event)
        return (
            payload if chunk is event else str(chunk).encode() if isinstance(chunk, str) else _encoded(chunk)
        )

    def _count_empty(self, payload: bytes) -> None:
        self._empty_events += 1
        if self._empty_events > MAX_EMPTY_EVENTS:
            raise self._bad_reply(payload)

    def _leave_unread(self, line: bytes) -> None:
        if len(self._unread) < _MOST_UNREAD:
            self._unread += line[:_MOST_UNREAD] + b"\n"

    def _bad_reply(self, payload: bytes) -> Unusable:
        return Unusable("bad_reply", server_words(payload.decode("utf-8", "replace")), status=self.status)

    def _check_size(self, payload: bytes) -> None:
        try:
            check_json_size(payload, depth=MAX_DEPTH, marks=MAX_MARKS)
        except TooLarge:
            raise self._bad_reply(payload) from None

    def _take(self, chunk: _Chunk, payload: bytes) -> None:
        if chunk.error or chunk.base_resp or not chunk.choices:
            self._raise_error_in(payload)
        if chunk.model:
            self._model = chunk.model
        if isinstance(chunk.system_fingerprint, str):
            self._fingerprint = chunk.system_fingerprint
        if chunk.usage:
            self._usage = {**_counts(self._usage), **_counts(chunk.usage)}
        if chunk.choices is None:
            return self._leave_unread(payload)
        self._understood = True
        for choice in chunk.choices:
            # Other indices are further answers, requested with n > 1; only the first one counts.
            if not choice.index:
                self._take_choice(choice)

    def _raise_error_in(self, payload: bytes) -> None:
        """Raise the error that an event or document without an answer reports, if it does."""
        self._count_empty(payload)
        body = _value(payload)
        if is_error(body):
            raise error_in_body(body, self.status, self._request)

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
            self._count(len(message.refusal))

    def _say(self, kind: Literal["content", "reasoning"], parts: list[str], text: str) -> None:
        parts.append(text)
        self._count(len(text))
        if self._on_text is not None:
            self._on_text(kind, text)

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > MAX_TEXT:
            raise Unusable("too_long", status=self.status)


def _plain(content: str | list[Any]) -> str:
    """The text of content, which may be a list of parts: [{"type": "text", "text": "…"}]."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "".join(text for text in texts if isinstance(text, str))


def _merged(pieces: list[Any]) -> list[Any]:
    """Merge the pieces of tool calls: pieces of one call share an `index`, and their arguments are concatenated."""
    calls: dict[Any, dict[str, Any]] = {}
    arguments: dict[Any, list[str]] = {}
    for number, piece in enumerate(pieces):
        if not isinstance(piece, dict):
            continue
        key = piece.get("index", f"piece {number}")
        key = key if isinstance(key, (int, str)) else f"piece {number}"
        call = calls.setdefault(key, {"function": {}})
        function = _without_none(piece.get("function"))
        if isinstance(function.get("arguments"), str):
            arguments.setdefault(key, []).append(function.pop("arguments"))
        call["function"].update(function)
        call.update({name: value for name, value in _without_none(piece).items() if name not in _MERGED})
    for key, parts in arguments.items():
        calls[key]["function"]["arguments"] = "".join(parts)
    return list(calls.values())


_MERGED = ("index", "function")


def _without_none(value: Any) -> dict[str, Any]:
    value = value if isinstance(value, dict) else {}
    return {name: member for name, member in value.items() if member is not None}


def _counts(usage: Any) -> dict[str, Any]:
    return usage if isinstance(usage, dict) else {}


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 2**31 else None


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value).encode()


def _is_end_mark(payload: bytes) -> bool:
    return payload.strip() == b"[DONE]"


def _value(payload: bytes) -> Any:
    """The JSON value, alone or as the only item of a list; the text itself if it is no JSON."""
    text = payload.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return text
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _decode_leniently(payload: bytes) -> _Chunk | None:
    """Decode an event that strict JSON does not allow, for example with a lone surrogate; None if it can't be."""
    try:
        return msgspec.convert(_value(payload), _CHUNK.type, strict=False)
    except (msgspec.ValidationError, ValueError, RecursionError):
        return None
