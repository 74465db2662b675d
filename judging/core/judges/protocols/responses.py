"""OpenAI's responses, for servers that offer only these.

Fields and events as in developers.openai.com/api/reference/resources/responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judging.core.judges.addresses import call_url
from judging.core.judges.protocols.protocol import (
    Protocol,
    Request,
    apart,
    bearer,
    chunk,
    image_of,
    mapping,
    objects,
    required_tool,
    text_of,
    tool_call,
)
from judging.core.judges.reply import CONTENT_FILTER

_OF_CHAT = (
    *("messages", "stream_options", "separate_reasoning", "response_format", "tools", "tool_choice"),
    *("max_tokens", "max_completion_tokens", "reasoning_effort"),
)


def url(address: str, _request: Mapping[str, Any]) -> str:
    return call_url(address, "/responses")


def models_url(address: str) -> str:
    return url(address, {}).replace("/responses", "/models")


def body(request: Mapping[str, Any]) -> Request:
    system, messages = apart(request["messages"])
    sent: Request = {name: value for name, value in request.items() if name not in _OF_CHAT}
    sent["input"] = [item for message in messages for item in _items(message)]
    if system:
        sent["instructions"] = system
    if limit := request.get("max_tokens") or request.get("max_completion_tokens"):
        sent["max_output_tokens"] = limit
    reasoning = {"summary": "auto"} if request.get("separate_reasoning") else {}
    if effort := request.get("reasoning_effort"):
        reasoning["effort"] = effort
    if reasoning:
        sent["reasoning"] = {**reasoning, **mapping(request.get("reasoning"))}
    if structure := mapping(request.get("response_format")):
        named = mapping(structure.get("json_schema"))
        sent["text"] = {"format": {"type": structure.get("type"), **named}}
    if tools := objects(request.get("tools")):
        sent["tools"] = [{"type": "function", **mapping(tool.get("function"))} for tool in tools]
        if name := required_tool(request):
            sent["tool_choice"] = {"type": "function", "name": name}
    return sent


def _items(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if message.get("role") == "tool":
        result = {"call_id": message.get("tool_call_id"), "output": text_of(content)}
        return [{"type": "function_call_output", **result}]
    items: list[dict[str, Any]] = []
    if content or not message.get("tool_calls"):
        items.append({"role": message.get("role"), "content": _content(content)})
    for call in objects(message.get("tool_calls")):
        items.append({"type": "function_call", "call_id": call.get("id"), **mapping(call.get("function"))})
    return items


def _content(content: Any) -> Any:
    """A message's text, or its texts and images in order if it has any image."""
    if not any(image_of(part) for part in objects(content)):
        return text_of(content)
    parts = ((part, image_of(part)) for part in objects(content))
    return [
        {"type": "input_image", "image_url": image.url}
        if image
        else {"type": "input_text", "text": str(part.get("text") or "")}
        for part, image in parts
    ]


def as_chunk(event: Any) -> Any:
    """The chunk for an event of a stream or a whole response; what is neither is returned as it came."""
    if not isinstance(event, dict):
        return event
    kind = str(event.get("type") or "")
    if kind == "response.output_text.delta":
        return chunk(delta={"content": str(event.get("delta") or "")})
    if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        return chunk(delta={"reasoning_content": str(event.get("delta") or "")})
    if kind == "response.refusal.delta":
        return chunk(delta={"refusal": str(event.get("delta") or "")}, finish=CONTENT_FILTER)
    if kind == "response.output_item.done":
        calls = _calls([mapping(event.get("item"))], first=event.get("output_index"))
        return chunk(delta={"tool_calls": calls} if calls else None)
    if kind in ("response.completed", "response.incomplete", "response.failed"):
        response = mapping(event.get("response"))
        return _failure(response) or _ended(response, {})
    if kind.startswith("response."):
        return chunk()
    if event.get("object") == "response":
        return _failure(event) or _ended(event, _delta(objects(event.get("output"))))
    return event


def _failure(response: Mapping[str, Any]) -> dict[str, Any] | None:
    return {"error": response["error"]} if response.get("error") else None


def _ended(response: Mapping[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    usage = mapping(response.get("usage"))
    counts = {
        name: usage[theirs]
        for name, theirs in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
        if isinstance(usage.get(theirs), int)
    }
    reason = mapping(response.get("incomplete_details")).get("reason")
    finish = (
        "length" if reason == "max_output_tokens" else CONTENT_FILTER if reason == CONTENT_FILTER else None
    )
    if delta.get("refusal"):
        finish = CONTENT_FILTER
    # A stream that was refused has ended with its refusal already.
    finish = finish or ("stop" if delta or not _refused(response) else None)
    return chunk(delta=delta, finish=finish, usage=counts, model=response.get("model"))


def _refused(response: Mapping[str, Any]) -> bool:
    parts = [part for item in objects(response.get("output")) for part in objects(item.get("content"))]
    return any(part.get("type") == "refusal" for part in parts)


def _delta(items: list[Mapping[str, Any]]) -> dict[str, Any]:
    content = [
        part for item in items for part in objects(item.get("content")) if item.get("type") == "message"
    ]
    summaries = [part for item in items for part in objects(item.get("summary"))]
    delta: dict[str, Any] = {
        "content": _texts(content, "output_text", "text"),
        "refusal": _texts(content, "refusal", "refusal"),
        "reasoning_content": _texts(summaries, "summary_text", "text"),
        "tool_calls": _calls(items),
    }
    return {name: value for name, value in delta.items() if value}


def _texts(parts: list[Mapping[str, Any]], kind: str, name: str) -> str:
    return "".join(str(part.get(name) or "") for part in parts if part.get("type") == kind)


def _calls(items: list[Mapping[str, Any]], first: Any = 0) -> list[dict[str, Any]]:
    start = first if isinstance(first, int) else 0
    return [
        tool_call(index, item.get("name"), str(item.get("arguments") or ""), item.get("call_id"))
        for index, item in enumerate(items, start)
        if item.get("type") == "function_call"
    ]


PROTOCOL = Protocol(
    "responses",
    "OpenAI responses",
    url,
    models_url,
    bearer,
    body,
    as_chunk,
    {"stream": True, "separate_reasoning": True, "store": False},
    batch_path="/v1/responses",
)
