"""Messages for display: texts, images, and tool calls with their arguments and results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evalsite.cells import clean_text

MOST_IMAGE = 4_000_000  # characters of a data URL that a page includes
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=\s]+\Z")
_NAMED = 120  # characters shown of an address or an unknown part


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message. `text`: for an `image` its data URL, for a `remote` image, which is never fetched, its
    URL, for an `other` part its JSON."""

    kind: Literal["text", "image", "remote", "other"]
    text: str


@dataclass(slots=True)
class ToolCall:
    """`arguments` are indented if they are JSON; `key` is the id that the result refers to, or ''; `result` is None
    if none was returned."""

    name: str
    arguments: str
    key: str = ""
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message: role, parts and tool calls."""

    role: str
    parts: list[Part]
    calls: list[ToolCall] = field(default_factory=list)


def turns_of(messages: Sequence[dict[str, Any]]) -> list[Turn]:
    """The messages in order; results are attached to their tool calls."""
    turns: list[Turn] = []
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        answered = waiting.pop(str(message.get("tool_call_id")), None) if message["role"] == "tool" else None
        if answered is not None:
            answered.result = indented(_text_of(message.get("content")))
            continue
        calls = calls_of(message.get("tool_calls"))
        waiting |= {call.key: call for call in calls if call.key}
        turns.append(Turn(message["role"], parts_of(message.get("content")), calls))
    return turns


def with_parts(messages: Sequence[dict[str, Any]], row: str, earlier: int) -> list[dict[str, Any]]:
    """The messages with their uploaded parts, which `data.messages` joins to one text. `row`: the row's JSON;
    `earlier`: how many leading messages belong to the response."""
    of_row = json.loads(row).get("messages")
    rest = len(messages) - earlier
    if not isinstance(of_row, list) or len(of_row) < rest:
        return list(messages)  # a legacy row
    own = of_row[len(of_row) - rest :]
    return [
        *messages[:earlier],
        *(
            message | {"content": uploaded["content"]}
            if isinstance(uploaded.get("content"), list)
            else message
            for message, uploaded in zip(messages[earlier:], own, strict=True)
        ),
    ]


def parts_of(content: Any) -> list[Part]:
    """The parts of a message's content; empty if it has none."""
    if isinstance(content, list):
        return [_part(part) for part in content]
    return [Part("text", str(content))] if content else []


def images_in(fields: dict[str, Any]) -> list[tuple[str, Part]]:
    """The fields that contain an image as a data URL."""
    return [
        (name, Part("image", value))
        for name, value in fields.items()
        if isinstance(value, str) and value.startswith("data:image/") and _can_show(value)
    ]


def calls_of(calls: Any) -> list[ToolCall]:
    """The tool calls of a message or an answer; empty unless `calls` is a list."""
    return [_call(call) for call in calls] if isinstance(calls, list) else []


def indented(text: str) -> str:
    """Indent JSON; return other text unchanged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return pretty(value) if isinstance(value, dict | list) else text


def _call(call: Any) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return ToolCall("", pretty(call))
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else pretty(arguments)
    return ToolCall(str(function.get("name") or ""), indented(text), str(call.get("id") or ""))


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return Part("text", part)
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return Part("text", part["text"])
    address = _address(part) if isinstance(part, dict) else ""
    if not address:
        return Part("other", pretty(part))
    if not address.startswith("data:"):
        return Part("remote", address[:_NAMED])
    return Part("image", address) if _can_show(address) else Part("other", f"{address[:_NAMED]}…")


def _address(part: dict[str, Any]) -> str:
    """The URL of an image part's image; '' for other parts."""
    image = part.get("image_url") or (part.get("url") if part.get("type") == "image" else None)
    address = image.get("url") if isinstance(image, dict) else image
    return address if isinstance(address, str) else ""


def _can_show(address: str) -> bool:
    return len(address) <= MOST_IMAGE and _IMAGE.match(address) is not None


def _text_of(content: Any) -> str:
    return "".join(part.text for part in parts_of(content))


def pretty(value: Any) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False, indent=2))
