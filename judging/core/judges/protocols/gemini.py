"""Gemini's generateContent.

Fields as in ai.google.dev/api/generate-content and /gemini-api/docs/thinking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from judging.core.judges.addresses import call_url
from judging.core.judges.protocols.protocol import (
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

_CONFIG = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "n": "candidateCount",
}
_OF_CHAT = frozenset(
    {"model", "messages", "stream", "stream_options", "separate_reasoning", "stop", "tools", "tool_choice"}
    | {"response_format", "generationConfig", *_CONFIG}
)
_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), CONTENT_FILTER
    ),
}


def url(address: str, request: Mapping[str, Any]) -> str:
    streams = bool(request.get("stream"))
    method = "streamGenerateContent" if streams else "generateContent"
    model = quote(str(request.get("model") or "").removeprefix("models/"), safe="")
    return f"{models_url(address)}/{model}:{method}{'?alt=sse' if streams else ''}"


def models_url(address: str) -> str:
    return call_url(address.split("?", 1)[0], "/models", version="v1beta")


def headers(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


def body(request: Mapping[str, Any]) -> Request:
    system, messages = apart(request["messages"])
    sent: Request = {name: value for name, value in request.items() if name not in _OF_CHAT}
    sent["contents"] = [_content(message) for message in messages]
    if system:
        sent["systemInstruction"] = {"parts": [{"text": system}]}
    if config := _config(request):
        sent["generationConfig"] = config
    if tools := objects(request.get("tools")):
        functions = [_for_gemini(mapping(tool.get("function"))) for tool in tools]
        sent["tools"] = [{"functionDeclarations": functions}]
        if name := required_tool(request):
            sent["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
    return sent


def _config(request: Mapping[str, Any]) -> dict[str, Any]:
    config = {_CONFIG[name]: value for name, value in request.items() if name in _CONFIG}
    if stop := stop_sequences(request):
        config["stopSequences"] = stop
    structure = mapping(request.get("response_format"))
    if structure.get("type") in ("json_object", "json_schema"):
        config["responseMimeType"] = "application/json"
    if schema := mapping(structure.get("json_schema")).get("schema"):
        config["responseSchema"] = _for_gemini(schema)
    if request.get("separate_reasoning"):
        config["thinkingConfig"] = {"includeThoughts": True}
    return {**config, **mapping(request.get("generationConfig"))}


def _for_gemini(value: Any) -> Any:
    """A schema, or a function with one, without the keyword that Gemini's subset of OpenAPI lacks."""
    if isinstance(value, dict):
        return {name: _for_gemini(member) for name, member in value.items() if name != "additionalProperties"}
    return [_for_gemini(item) for item in value] if isinstance(value, list) else value


def _content(message: Mapping[str, Any]) -> dict[str, Any]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        reply = {
            "name": message.get("name") or message.get("tool_call_id"),
            "response": {"result": text_of(content)},
        }
        return {"role": "user", "parts": [{"functionResponse": reply}]}
    parts = _parts(content)
    parts += [
        {"functionCall": {"name": mapping(call.get("function")).get("name"), "args": call_arguments(call)}}
        for call in objects(message.get("tool_calls"))
    ]
    return {"role": "model" if role == "assistant" else "user", "parts": parts or [{"text": ""}]}


def _parts(content: Any) -> list[dict[str, Any]]:
    """A message's text, or its texts and images in order."""
    if not isinstance(content, list):
        return [{"text": text_of(content)}] if text_of(content) else []
    parts: list[dict[str, Any]] = []
    for part in objects(content):
        image = image_of(part)
        if image is None:
            parts += [{"text": str(part["text"])}] if part.get("text") else []
        elif image.data:
            parts.append({"inlineData": {"mimeType": image.media_type, "data": image.data}})
        else:
            parts.append({"fileData": {"fileUri": image.url}})
    return parts


def as_chunk(event: Any) -> Any:
    """The chunk for a response or a part of one; what is neither is returned as it came."""
    if not isinstance(event, dict) or not event.keys() & {"candidates", "promptFeedback", "usageMetadata"}:
        return event
    usage, model = _usage(mapping(event.get("usageMetadata"))), event.get("modelVersion")
    blocked = mapping(event.get("promptFeedback")).get("blockReason")
    if blocked:
        return chunk(delta={"refusal": str(blocked)}, finish=CONTENT_FILTER, usage=usage, model=model)
    first = next((item for item in objects(event.get("candidates")) if not item.get("index")), {})
    parts = objects(mapping(first.get("content")).get("parts"))
    delta = joined(_delta(index, part) for index, part in enumerate(parts))
    reason = first.get("finishReason")
    finish = _FINISH.get(str(reason), str(reason).lower()) if reason else None
    if finish == CONTENT_FILTER:
        delta["refusal"] = str(first.get("finishMessage") or reason)
    return chunk(delta=delta, finish=finish, usage=usage, model=model)


def _delta(index: int, part: Mapping[str, Any]) -> dict[str, Any]:
    if call := mapping(part.get("functionCall")):
        return {
            "tool_calls": [
                tool_call(index, call.get("name"), compact(call.get("args") or {}), call.get("id"))
            ]
        }
    text = part.get("text")
    if not isinstance(text, str):
        return {}
    return {"reasoning_content" if part.get("thought") else "content": text}


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """Thoughts are paid as output and count as such."""
    read, written = usage.get("promptTokenCount"), usage.get("candidatesTokenCount")
    thoughts = usage.get("thoughtsTokenCount")
    counts = {"prompt_tokens": read} if isinstance(read, int) else {}
    if isinstance(written, int) or isinstance(thoughts, int):
        counts["completion_tokens"] = (written or 0) + (thoughts or 0)
    return counts


PROTOCOL = Protocol(
    "gemini",
    "Gemini generateContent",
    url,
    models_url,
    headers,
    body,
    as_chunk,
    {"stream": True, "separate_reasoning": True},
)
