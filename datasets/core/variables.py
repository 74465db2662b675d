"""A row and a response as templates and scripts see them: `data` and `response`."""

import json
from collections.abc import Callable
from typing import Any

from datasets.core.formats.names import LEGACY_COLUMNS, Format, structural_keys

_LABELS = {"system": "[SYSTEM]", "user": "[USER]", "assistant": "[BOT]", "tool": "[TOOL]"}


def row_data(text: str, fmt: Format) -> dict[str, Any]:
    """What `data` is for a valid row.

    `text` is the row's JSON (RawRow.data). First `messages` ({role, content, …}, parts joined), then the custom
    fields in their order and as uploaded, then `ref_answer` (None if absent), and `question`, `gt`, `history`
    (each a text or None), which win over fields of these names.
    """
    row: dict[str, Any] = json.loads(text)
    messages = messages_of(row, fmt)
    hidden = {"messages", *LEGACY_COLUMNS} if fmt == "legacy_csv" else structural_keys(fmt)
    data: dict[str, Any] = {"messages": messages}
    data |= {name: value for name, value in row.items() if name not in hidden}
    data.setdefault("ref_answer", None)
    return data | computed(messages)


def reference_data(text: str, fmt: Format, decode: Callable[[str], Any]) -> dict[str, Any]:
    """Of what `data` is `ref_answer` and, where that is None, `gt`: all that a rule program compares with. `decode`
    reads JSON."""
    row: dict[str, Any] = decode(text)
    given = row.get("ref_answer")
    return {"ref_answer": given} if given is not None else {"gt": computed(messages_of(row, fmt))["gt"]}


def messages_of(row: dict[str, Any], fmt: Format) -> list[dict[str, Any]]:
    """The messages of a decoded valid row; a legacy row's are made from its system text and its turns."""
    if "messages" in row and fmt not in ("legacy_jsonl", "legacy_csv"):
        return [message | {"content": joined(message.get("content"))} for message in row["messages"]]
    system = row.get("system") or ""
    messages = [{"role": "system", "content": system}] if system.strip() else []
    for turn in [row] if fmt == "legacy_csv" else row["conversation"]:
        messages.append({"role": "user", "content": turn["prompt"]})
        messages.append({"role": "assistant", "content": turn["response"]})
    return messages


def joined(content: Any) -> str:
    """A message's content as one text: parts joined with nothing between, '' for null or none."""
    if content is None:
        return ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def computed(messages: list[dict[str, Any]]) -> dict[str, str | None]:
    """`question` (last user message), `gt` (last message if the assistant's), `history` (all but those two)."""
    asked = [index for index, message in enumerate(messages) if message["role"] == "user"]
    question = asked[-1] if asked else None
    gt = len(messages) - 1 if messages and messages[-1]["role"] == "assistant" else None
    left = [
        f"{_LABELS[message['role']]} {message['content']}"
        for index, message in enumerate(messages)
        if index not in (question, gt)
    ]
    return {
        "question": None if question is None else messages[question]["content"],
        "gt": None if gt is None else messages[gt]["content"],
        "history": "\n".join(left) if left else None,
    }


def response_data(text: str) -> dict[str, Any]:
    """What `response` is, from the JSON of an uploaded or returned answer; '' of one that is not there yet.

    `content` is '' if null or absent, `reasoning_content` and `tool_calls` None if absent, further fields as they are.
    """
    response: dict[str, Any] = json.loads(text) if text else {}
    given = {"content": "", "reasoning_content": None, "tool_calls": None} | response
    given["content"] = given["content"] or ""
    return given
