"""Builds `data` and `response`, the variables of templates and scripts, from a row and a response."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from datasets.core.formats import LEGACY, LEGACY_COLUMNS, Format, structural_keys

EARLIER = "earlier_messages"
"""The key in a response for the messages before the last question of its own conversation."""

_LABELS = {"system": "[SYSTEM]", "user": "[USER]", "assistant": "[BOT]", "tool": "[TOOL]"}


def row_data(text: str, fmt: Format) -> dict[str, Any]:
    """Build `data` for a valid row.

    `text` is the row's JSON (RawRow.data). The result has `messages` ({role, content, …}, parts joined), then the
    custom fields in their order and as uploaded, then `ref_answer` (None if absent), and `question`, `gt`, `history`
    (string or None), which override fields of the same names.
    """
    row: dict[str, Any] = json.loads(text)
    messages = messages_of(row, fmt)
    hidden = {"messages", *LEGACY_COLUMNS} if fmt == "legacy_csv" else structural_keys(fmt)
    data: dict[str, Any] = {"messages": messages}
    data |= {name: value for name, value in row.items() if name not in hidden}
    data.setdefault("ref_answer", None)
    return data | computed(messages)


def reference_data(text: str, fmt: Format, decode: Callable[[str], Any]) -> dict[str, Any]:
    """The part of `data` that rules compare with: `ref_answer` or, if that is not a reference, `gt`.

    `decode` parses JSON.
    """
    row: dict[str, Any] = decode(text)
    reference = row.get("ref_answer")
    return (
        {"ref_answer": reference}
        if is_reference(reference)
        else {"gt": computed(messages_of(row, fmt))["gt"]}
    )


def is_reference(value: Any) -> bool:
    """Whether the value can be a reference: None and blank strings cannot; 0 and False can."""
    return value is not None and not (isinstance(value, str) and not value.strip())


def reference_in(data: Mapping[str, Any]) -> Any:
    """The reference for an answer: `ref_answer`, or else `gt`; None if neither is a reference."""
    return next((data[name] for name in ("ref_answer", "gt") if is_reference(data.get(name))), None)


def messages_of(row: dict[str, Any], fmt: Format) -> list[dict[str, Any]]:
    """The messages of a decoded valid row; for a legacy row, built from its system text and turns."""
    if "messages" in row and fmt not in LEGACY:
        return [message | {"content": joined(message.get("content"))} for message in row["messages"]]
    system = row.get("system") or ""
    messages = [{"role": "system", "content": system}] if system.strip() else []
    for turn in [row] if fmt == "legacy_csv" else row["conversation"]:
        messages.append({"role": "user", "content": turn["prompt"]})
        messages.append({"role": "assistant", "content": turn["response"]})
    return messages


def joined(content: Any) -> str:
    """A message's content as one string: parts are concatenated, '' for null or missing."""
    if content is None:
        return ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def computed(messages: list[dict[str, Any]]) -> dict[str, str | None]:
    """`question` (last user message), `gt` (last message if from the assistant), `history` (all others)."""
    left = list(messages)
    gt = left.pop()["content"] if left and left[-1]["role"] == "assistant" else None
    index = _last_question(left)
    question = left.pop(index)["content"] if index < len(left) else None
    history = "\n".join(f"{_LABELS[message['role']]} {message['content']}" for message in left)
    return {"question": question, "gt": gt, "history": history if left else None}


def before_question(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages before the last question."""
    return messages[: _last_question(messages)]


def has_earlier_answers(messages: list[dict[str, Any]]) -> bool:
    """Whether the assistant answered before the last question."""
    return any(message["role"] == "assistant" for message in before_question(messages))


def earlier_of(response: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The response's own messages before the last question; None if it has none and the row's apply."""
    earlier = response.get(EARLIER)
    if not isinstance(earlier, list) or not all(map(_is_message, earlier)):
        return None
    return [{"role": message["role"], "content": message["content"]} for message in earlier]


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("role") in list(_LABELS)
        and isinstance(message.get("content"), str)
    )


def conversation_for(messages: list[dict[str, Any]], response: dict[str, Any]) -> list[dict[str, Any]]:
    """A row's messages for one response: its own earlier turns, then the rest of the row from the last question."""
    earlier = earlier_of(response)
    return messages if earlier is None else earlier + messages[_last_question(messages) :]


def data_for(data: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """`data` of a row for one response: `messages` and `history` contain the response's own conversation."""
    if earlier_of(response) is None:
        return data
    messages = conversation_for(data["messages"], response)
    return data | {"messages": messages, "history": computed(messages)["history"]}


def row_and_response(data: dict[str, Any], text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build `data` and `response` from a row's data and the JSON of one answer to it."""
    response = response_data(text)
    return data_for(data, response), response


def _last_question(messages: list[dict[str, Any]]) -> int:
    """The index of the last user message; the length of the list if there is none."""
    user_messages = [index for index, message in enumerate(messages) if message["role"] == "user"]
    return user_messages[-1] if user_messages else len(messages)


def response_data(text: str) -> dict[str, Any]:
    """Build `response` from the JSON of an answer; '' stands for an answer not generated yet.

    `content` is '' if null or absent, `reasoning_content` and `tool_calls` None if absent; other fields are unchanged.
    """
    response: dict[str, Any] = json.loads(text) if text else {}
    fields = {"content": "", "reasoning_content": None, "tool_calls": None} | response
    fields["content"] = fields["content"] or ""
    return fields
