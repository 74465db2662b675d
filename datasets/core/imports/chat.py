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
_KEPT = ("name", "tool_calls", "tool_call_id")
_TEXT_PARTS = ("text", "input_text", "output_text")


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
    found = Content("")
    for part in parts:
        if part["type"] in _TEXT_PARTS:
            found.text += str(part.get("text") or "")
        elif part["type"] == "reasoning":
            found.reasoning += str(part.get("reasoning") or part.get("summary") or "")
        else:
            found.dropped.append(part["type"])
    return found


def chat(given: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Messages from a user's text or a list of messages, and the types of the dropped parts.

    Returns no messages for any other input.
    """
    if isinstance(given, str):
        known = chat_in_json(given)
        return chat(known) if known else ([{"role": "user", "content": given}], [])
    messages: list[dict[str, Any]] = []
    dropped: list[str] = []
    for one in given if isinstance(given, list) else []:
        role = _ROLES.get(str(one.get("role") or one.get("from")).lower()) if isinstance(one, dict) else None
        if role is None:
            return [], []
        content = content_of(one.get("content", one.get("value", one.get("text"))))
        kept = {name: one[name] for name in _KEPT if one.get(name)}
        messages.append({"role": role, "content": content.text, **kept})
        dropped += content.dropped
    return messages, dropped


def chat_in_json(text: str) -> list[Any] | None:
    """The messages of a prompt that is a chat serialized as JSON; else None."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and chat(found)[0] else None


def answer(message: Any) -> tuple[dict[str, Any], list[str]]:
    """A response from an assistant's message or bare content, and the types of the dropped parts."""
    given = message if isinstance(message, dict) and "content" in message else {"content": message}
    found = content_of(given["content"])
    reasoning = found.reasoning or given.get("reasoning_content") or given.get("reasoning")
    response: dict[str, Any] = {"content": found.text}
    if isinstance(reasoning, str) and reasoning:
        response["reasoning_content"] = reasoning
    if given.get("tool_calls"):
        response["tool_calls"] = given["tool_calls"]
    return response, found.dropped
