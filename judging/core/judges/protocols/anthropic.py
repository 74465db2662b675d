"""Anthropic's messages.

Fields and events as in platform.claude.com/docs, "Create a message" and "Streaming messages".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judging.core.judges.addresses import call_url
from judging.core.judges.protocols.protocol import (
    END,
    JSON_SCHEMA,
    TOOL,
    Protocol,
    Request,
    apart,
    call_arguments,
    chunk,
    compact,
    image_of,
    joined,
    mapping,
    objects,
    required_tool,
    stop_sequences,
    text_of,
    tool_call,
)
from judging.core.judges.reply import CONTENT_FILTER

MAX_TOKENS = 4096
"""The limit of a reply where the generation parameters set none: this protocol requires one."""

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": CONTENT_FILTER,
}
_BOUNDS = ("minimum", "maximum")
_OF_CHAT = (
    "messages",
    "stream_options",
    "separate_reasoning",
    "max_completion_tokens",
    "stop",
    "tools",
    "tool_choice",
)


def url(address: str, _request: Mapping[str, Any]) -> str:
    return call_url(address, "/messages")


def models_url(address: str) -> str:
    return url(address, {}).replace("/messages", "/models")


def headers(key: str) -> dict[str, str]:
    return {"x-api-key": key, "anthropic-version": "2023-06-01"}


def body(request: Mapping[str, Any]) -> Request:
    system, messages = apart(request["messages"])
    sent: Request = {name: value for name, value in request.items() if name not in _OF_CHAT}
    limit = request.get("max_tokens") or request.get("max_completion_tokens") or MAX_TOKENS
    sent |= {"max_tokens": limit, "messages": [_message(message) for message in messages]}
    if system:
        sent["system"] = system
    if stop := stop_sequences(request):
        sent["stop_sequences"] = stop
    if tools := objects(request.get("tools")):
        sent["tools"] = [_tool(mapping(tool.get("function"))) for tool in tools]
        if name := required_tool(request):
            sent["tool_choice"] = {"type": "tool", "name": name}
    structure = mapping(request.get("response_format"))
    if structure.get("type") == JSON_SCHEMA:
        del sent["response_format"]
        schema = _for_anthropic(mapping(structure.get("json_schema")).get("schema"))
        form = {"type": "json_schema", "schema": schema}
        sent["output_config"] = {**mapping(request.get("output_config")), "format": form}
    return sent


def _for_anthropic(value: Any) -> Any:
    """A schema whose bounds of numbers are told in words, since output_config.format takes no such keywords."""
    if isinstance(value, list):
        return [_for_anthropic(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {name: _for_anthropic(member) for name, member in value.items() if name not in _BOUNDS}
    if bounds := [f"{name}: {value[name]}" for name in _BOUNDS if isinstance(value.get(name), (int, float))]:
        schema["description"] = ", ".join(bounds)
    return schema


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    described = {"description": function["description"]} if function.get("description") else {}
    schema = function.get("parameters") or {"type": "object"}
    return {"name": function.get("name"), **described, "input_schema": schema}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if message.get("role") == "tool":
        block = {
            "type": "tool_result",
            "tool_use_id": message.get("tool_call_id"),
            "content": text_of(content),
        }
        return {"role": "user", "content": [block]}
    calls = objects(message.get("tool_calls"))
    if not calls:
        return {"role": message.get("role"), "content": _content(content)}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text_of(content)}] if text_of(content) else []
    blocks += [
        {
            "type": "tool_use",
            "id": call.get("id"),
            "name": mapping(call.get("function")).get("name"),
            "input": call_arguments(call),
        }
        for call in calls
    ]
    return {"role": message.get("role"), "content": blocks}


def _content(content: Any) -> Any:
    """A message's text, or its parts with images in this protocol's form."""
    if not isinstance(content, list):
        return content if content is not None else ""
    return [_block(part) for part in objects(content)]


def _block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    image = image_of(part)
    if image is None:
        return part
    if image.data:
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    else:
        source = {"type": "url", "url": image.url}
    return {"type": "image", "source": source}


def as_chunk(event: Any) -> Any:
    """The chunk for an event of a stream or a whole message; what is neither is returned as it came."""
    kind = mapping(event).get("type")
    if kind == "message_start":
        message = mapping(event.get("message"))
        return chunk(model=message.get("model"), usage=_read(message.get("usage")))
    if kind == "content_block_start":
        block = {**mapping(event.get("content_block")), "input": None}
        return chunk(delta=_delta(event.get("index"), block))
    if kind == "content_block_delta":
        return chunk(delta=_delta(event.get("index"), mapping(event.get("delta"))))
    if kind == "message_delta":
        finish = _finish(mapping(event.get("delta")).get("stop_reason"))
        return chunk(finish=finish, usage=_written(event.get("usage")))
    if kind == "message_stop":
        return END
    if kind in ("ping", "content_block_stop"):
        return chunk()
    if kind == "message":
        return _whole(event)
    return event


def _whole(message: Mapping[str, Any]) -> dict[str, Any]:
    delta = joined(_delta(index, block) for index, block in enumerate(objects(message.get("content"))))
    usage = {**_read(message.get("usage")), **_written(message.get("usage"))}
    return chunk(
        delta=delta, finish=_finish(message.get("stop_reason")), usage=usage, model=message.get("model")
    )


def _delta(index: Any, block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block.get("type")
    if kind in ("text", "text_delta"):
        return {"content": block.get("text") or ""}
    if kind in ("thinking", "thinking_delta"):
        return {"reasoning_content": block.get("thinking") or ""}
    if kind == "input_json_delta":
        return {"tool_calls": [tool_call(index, None, str(block.get("partial_json") or ""))]}
    if kind == "tool_use":
        given = block.get("input")
        arguments = "" if given is None else compact(given)
        return {"tool_calls": [tool_call(index, block.get("name"), arguments, block.get("id"))]}
    return {}


def _finish(reason: Any) -> str | None:
    return _FINISH.get(str(reason), str(reason)) if reason else None


def _read(usage: Any) -> dict[str, int]:
    """Input tokens, those read from and written to the server's cache included."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [mapping(usage).get(name) for name in names]
    return {"prompt_tokens": sum(count for count in counts if isinstance(count, int))} if usage else {}


def _written(usage: Any) -> dict[str, int]:
    count = mapping(usage).get("output_tokens")
    return {"completion_tokens": count} if isinstance(count, int) else {}


PROTOCOL = Protocol(
    "anthropic",
    "Anthropic messages",
    url,
    models_url,
    headers,
    body,
    as_chunk,
    {"stream": True},
    structured=(JSON_SCHEMA, TOOL),
)
