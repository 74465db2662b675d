"""The scripted judge's replies in the other protocols: what their servers would send for the same answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from judging.core.judges.scripted import Answer

Events = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A protocol as its server speaks it: the key of a request's headers, the text of its last user message, and the
    reply as a document or as events with their names ('': none)."""

    key: Callable[[Mapping[str, str]], str]
    prompt: Callable[[Mapping[str, Any]], str]
    document: Callable[[Answer], dict[str, Any]]
    events: Callable[[Answer], Events]


def dialect_of(path: str) -> Dialect | None:
    """The protocol that a path belongs to; None for chat completions and what is no call."""
    if path.endswith("/messages"):
        return ANTHROPIC
    if path.endswith("/responses"):
        return RESPONSES
    return GEMINI if path.endswith((":generateContent", ":streamGenerateContent")) else None


@lru_cache(maxsize=1024)
def encoded(dialect: Dialect, answer: Answer, streams: bool) -> bytes:
    if not streams:
        return msgspec.json.encode(dialect.document(answer))
    lines = [
        (f"event: {name}\n" if name else "").encode() + b"data: " + msgspec.json.encode(event) + b"\n\n"
        for name, event in dialect.events(answer)
    ]
    return b"".join(lines)


def _parts(text: str | None) -> list[str]:
    size = -(-len(text or "") // 4) or 1
    return [(text or "")[start : start + size] for start in range(0, len(text or ""), size)]


def _last(items: Any, role: str = "user") -> Mapping[str, Any]:
    matches = [item for item in items or () if item.get("role") == role]
    return matches[-1] if matches else {}


def _call(answer: Answer) -> dict[str, Any]:
    return {} if answer.arguments is None else {"name": "give_verdict", "id": "call-1"}


# --- Anthropic messages ---------------------------------------------------------------------------------------------

_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": "c2ln"})
    if answer.arguments is not None:
        value = msgspec.json.decode(answer.arguments)
        blocks.append({"type": "tool_use", **_call(answer), "input": value})
    elif answer.content:
        blocks.append({"type": "text", "text": answer.content})
    return blocks


def _message(answer: Answer) -> dict[str, Any]:
    read, written = answer.tokens
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": _blocks(answer),
        "stop_reason": _STOPS.get(answer.finish_reason, answer.finish_reason),
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }


def _message_events(answer: Answer) -> Events:
    whole = _message(answer)
    usage = {"input_tokens": answer.tokens[0], "output_tokens": 1}
    start = {**whole, "content": [], "stop_reason": None, "usage": usage}
    events: Events = [
        ("message_start", {"type": "message_start", "message": start}),
        ("ping", {"type": "ping"}),
    ]
    for index, block in enumerate(whole["content"]):
        events += _block_events(index, block, answer)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    tokens = {"output_tokens": answer.tokens[1]}
    events.append(("message_delta", {"type": "message_delta", "delta": ending, "usage": tokens}))
    return [*events, ("message_stop", {"type": "message_stop"})]


def _block_events(index: int, block: Mapping[str, Any], answer: Answer) -> Events:
    kind = block["type"]
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    texts = {"text": answer.content, "thinking": answer.reasoning, "tool_use": answer.arguments}
    delta, member = {
        "text": ("text_delta", "text"),
        "thinking": ("thinking_delta", "thinking"),
        "tool_use": ("input_json_delta", "partial_json"),
    }[kind]
    start = {"type": "content_block_start", "index": index, "content_block": {**block, **empty[kind]}}
    pieces = [
        {"type": "content_block_delta", "index": index, "delta": {"type": delta, member: text}}
        for text in _parts(texts[kind])
    ]
    events = [start, *pieces, {"type": "content_block_stop", "index": index}]
    return [(str(event["type"]), event) for event in events]


ANTHROPIC = Dialect(
    lambda headers: headers.get("x-api-key", ""),
    lambda body: _plain(_last(body.get("messages")).get("content")),
    _message,
    _message_events,
)


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")


# --- Gemini ---------------------------------------------------------------------------------------------------------

_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "tool_calls": "STOP"}


def _gemini(answer: Answer, parts: list[dict[str, Any]], finish: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = _REASONS.get(answer.finish_reason, answer.finish_reason)
    read, written = answer.tokens
    usage = {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": answer.model}


def _gemini_parts(answer: Answer) -> list[dict[str, Any]]:
    parts = [{"text": text, "thought": True} for text in _parts(answer.reasoning)]
    if answer.arguments is not None:
        call = {"name": "give_verdict", "args": msgspec.json.decode(answer.arguments)}
        return [*parts, {"functionCall": call}]
    return [*parts, *({"text": text} for text in _parts(answer.content))]


def _gemini_events(answer: Answer) -> Events:
    parts = _gemini_parts(answer)
    events: Events = [("", _gemini(answer, [part], finish=False)) for part in parts]
    return [*events, ("", _gemini(answer, [], finish=True))]


GEMINI = Dialect(
    lambda headers: headers.get("x-goog-api-key", ""),
    lambda body: _plain(_last(body.get("contents")).get("parts")),
    lambda answer: _gemini(answer, _gemini_parts(answer), finish=True),
    _gemini_events,
)


# --- OpenAI responses -----------------------------------------------------------------------------------------------


def _response(answer: Answer) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if answer.arguments is not None:
        call = {"call_id": "call-1", "name": "give_verdict", "arguments": answer.arguments}
        output.append({"type": "function_call", "id": "fc_1", **call})
    elif answer.content:
        content = [{"type": "output_text", "text": answer.content, "annotations": []}]
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish_reason)
    read, written = answer.tokens
    return {
        "id": "resp_1",
        "object": "response",
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "model": answer.model,
        "output": output,
        "usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
    }


def _response_events(answer: Answer) -> Events:
    whole = _response(answer)
    created = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": created}]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        kind, text = {
            "reasoning": ("response.reasoning_summary_text.delta", answer.reasoning),
            "message": ("response.output_text.delta", answer.content),
            "function_call": ("response.function_call_arguments.delta", answer.arguments),
        }[item["type"]]
        events += [{"type": kind, **place, "delta": part} for part in _parts(text)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [(str(event["type"]), {**event, "sequence_number": n}) for n, event in enumerate(events)]


RESPONSES = Dialect(
    lambda headers: headers.get("authorization", "").removeprefix("Bearer "),
    lambda body: _plain(_last(body.get("input")).get("content")),
    _response,
    _response_events,
)
