"""Converts messages and answers of other tools to the native shape."""

import json
from dataclasses import dataclass, field
from typing import Any

_ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "gpt", "bot", "model", "chatgpt", "function_call"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation"), "tool"),
}
_CONTENT = ("content", "value", "text")
_EXTRAS = ("name", "tool_calls", "tool_call_id")
_TEXT_PARTS = ("text", "input_text", "output_text")
TEXT_KEYS = ("text", "content", "output")


@dataclass(slots=True)
class Content:
    """A message's text and reasoning; `dropped` lists the types of its non-text parts."""

    text: str
    reasoning: str = ""
    dropped: list[str] = field(default_factory=list)


def content_of(content: Any) -> Content:
    """Convert a text or a list of parts; any other JSON value is kept as JSON text."""
    if content is None or isinstance(content, str):
        return Content(content or "")
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        return Content(json.dumps(content, ensure_ascii=False))
    result = Content("")
    for part in parts:
        if part["type"] in _TEXT_PARTS:
            result.text += str(part.get("text") or "")
        elif part["type"] == "reasoning":
            result.reasoning += str(part.get("reasoning") or part.get("summary") or "")
        else:
            result.dropped.append(part["type"])
    return result


def chat(value: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Messages from a user's text or a list of messages, and the types of the dropped parts.

    Returns no messages for any other input.
    """
    if isinstance(value, str):
        parsed = chat_in_json(value)
        return chat(parsed) if parsed else ([{"role": "user", "content": value}], [])
    messages: list[dict[str, Any]] = []
    dropped: list[str] = []
    for message in value if isinstance(value, list) else []:
        role = (
            _ROLES.get(str(message.get("role") or message.get("from")).lower())
            if isinstance(message, dict)
            else None
        )
        if role is None:
            return [], []
        content = content_of(next((message[name] for name in _CONTENT if name in message), None))
        extras = {name: message[name] for name in _EXTRAS if message.get(name)}
        messages.append({"role": role, "content": content.text, **extras})
        dropped += content.dropped
    return messages, dropped


def chat_in_json(text: str) -> list[Any] | None:
    """The messages of a prompt that is a chat serialized as JSON; else None."""
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and chat(value)[0] else None


def text_in(value: Any) -> str | None:
    """The text that a value holds: an object's under `text`, `content` or `output`, a list's last reply, or its parts.

    None if it is another object or list.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        texts = (_text_or_parts(value[name]) for name in TEXT_KEYS if name in value)
        return next((text for text in texts if text is not None), None)
    if messages := chat(value)[0] if isinstance(value, list) else []:
        return next(
            (message["content"] for message in reversed(messages) if message["role"] == "assistant"), None
        )
    return _text_or_parts(value)


def _text_or_parts(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) and value else [None]
    is_text = all(isinstance(part, dict) and part.get("type") in _TEXT_PARTS for part in parts)
    return content_of(value).text if is_text else None


def answer(message: Any) -> tuple[dict[str, Any], list[str]]:
    """A response from an assistant's message or bare content, and the types of the dropped parts."""
    fields = message if isinstance(message, dict) and "content" in message else {"content": message}
    content = content_of(fields["content"])
    reasoning = content.reasoning or fields.get("reasoning_content") or fields.get("reasoning")
    fields.get("role")  # implied by an answer
    response: dict[str, Any] = {"content": content.text}
    if isinstance(reasoning, str) and reasoning:
        response["reasoning_content"] = reasoning
    if fields.get("tool_calls"):
        response["tool_calls"] = fields["tool_calls"]
    return response, content.dropped
