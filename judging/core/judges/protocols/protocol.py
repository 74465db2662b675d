"""What a protocol is, and what the modules of several share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Request = dict[str, Any]
"""A request in the form of chat completions."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]+)*;base64,", re.IGNORECASE)

END = "[DONE]"
"""What a translated event is after which nothing follows."""

JSON_SCHEMA, JSON_OBJECT, TOOL = "json_schema", "json_object", "tool"
STRUCTURED = (JSON_SCHEMA, JSON_OBJECT, TOOL)
"""The forms of structured output that chat completions have, the strictest first."""

ADDED_TO_CHAT = {"stream": True, "stream_options": {"include_usage": True}, "separate_reasoning": True}


@dataclass(frozen=True, slots=True)
class Protocol:
    """How servers of one kind are asked.

    `url`: the URL of a call, from the endpoint's address and the request; `models_url`: that of the list of models;
    `headers`: those that carry the key; `body`: what is sent for a request. `as_chunk`: the chunk of chat completions
    that an event of a stream or a whole document stands for; None where servers send such chunks themselves. `added`:
    parameters of every request, unless the server rejects them. `batch_path`: the path that requests of a batch in
    OpenAI's form name; '' where there are none. `structured`: the forms of structured output that the protocol has.
    """

    code: str
    name: str
    url: Callable[[str, Mapping[str, Any]], str]
    models_url: Callable[[str], str]
    headers: Callable[[str], dict[str, str]]
    body: Callable[[Mapping[str, Any]], Request]
    as_chunk: Callable[[Any], Any] | None
    added: Mapping[str, Any]
    batch_path: str = ""
    structured: tuple[str, ...] = STRUCTURED


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def chunk(
    *,
    delta: Mapping[str, Any] | None = None,
    finish: str | None = None,
    usage: Mapping[str, Any] | None = None,
    model: Any = None,
) -> dict[str, Any]:
    """A chunk of chat completions."""
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}] if delta or finish else []
    return {
        "choices": choices,
        "usage": dict(usage) if usage else None,
        "model": model if isinstance(model, str) else None,
    }


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; [] if the value is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in objects(content))
    return str(content or "")


class Image(NamedTuple):
    """An image of a message: base64 `data` of a media type, or the `url` of one that the server fetches."""

    url: str
    media_type: str = ""
    data: str = ""


def image_of(part: Mapping[str, Any]) -> Image | None:
    """The image that a part of a message's content stands for, in the form of chat completions; None if none."""
    reference = part.get("image_url")
    url = reference if isinstance(reference, str) else mapping(reference).get("url")
    if part.get("type") != "image_url" or not isinstance(url, str) or not url:
        return None
    match = _DATA_URL.match(url)
    return Image(url, match[1] or "image/png", url[match.end() :]) if match else Image(url)


def apart(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Mapping[str, Any]]]:
    """The text of the system messages, and the other messages."""
    system = [text_of(message.get("content")) for message in messages if message.get("role") == "system"]
    return "\n\n".join(filter(None, system)), [
        message for message in messages if message.get("role") != "system"
    ]


def call_arguments(call: Mapping[str, Any]) -> Any:
    """The arguments of a tool call as a JSON value; {} if they are none."""
    try:
        return json.loads(str(mapping(call.get("function")).get("arguments") or "{}"))
    except ValueError:
        return {}


def joined(deltas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The deltas of one message as a single one: texts and tool calls one after the other."""
    whole: dict[str, Any] = {}
    for delta in deltas:
        for name, value in delta.items():
            whole[name] = whole[name] + value if name in whole else value
    return whole


def stop_sequences(request: Mapping[str, Any]) -> list[str]:
    """The texts that end a reply, which a request may hold as one text; [] if it names none."""
    stop = request.get("stop") or []
    return [stop] if isinstance(stop, str) else list(stop)


def required_tool(request: Mapping[str, Any]) -> Any:
    """The name of the function that the model must call; None if the request names none."""
    return mapping(mapping(request.get("tool_choice")).get("function")).get("name")


def tool_call(index: int, name: Any, arguments: str, identifier: Any = None) -> dict[str, Any]:
    """A piece of a tool call in the form of chat completions."""
    return {
        "index": index,
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
