"""The facts of a row that the version's tally wants, and by what same messages are known."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from datasets.core.formats.names import ROLE_AND_TEXT, Message, Part
from datasets.core.formats.outline import Items
from datasets.core.jsontext import JsonType, Node

MOST_KEYS = 20_000
"""Further keys of one row are no fields that a tally would count apart."""
WHOLE = 100_000
"""Characters of a value up to which it is decoded to be compared; of a longer odd one the text is compared."""


@dataclass(slots=True)
class Facts:
    """Of one object or record, faulty or not: what warnings on the whole version are made of.

    `types` maps each top-level key to its JSON type, `models` each model to its number of responses,
    `identity` is the value of `id`, `messages` anything hashable that equals only for equal messages.
    """

    types: dict[str, JsonType] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    identity: Any = None
    messages: Any = None


def facts_of(root: Node) -> Facts:
    facts = Facts()
    for key, value in root.members():
        name = key.value
        if len(facts.types) < MOST_KEYS or name in facts.types:
            facts.types[name] = value.type
    identity, messages, conversation = (root.member(name) for name in ("id", "messages", "conversation"))
    if identity and identity.type != "null":
        facts.identity = identity.plain() if identity.end - identity.start < WHOLE else identity.source
    if messages:
        facts.messages = _messages_identity_of(messages)
    elif conversation:
        facts.messages = _conversation_identity_of(conversation, root.member("system"))
    _count_models(facts, root.member("model_outputs"))
    return facts


def identity_of(row: dict[str, Any]) -> Any:
    """By what the messages of a decoded row are known; None if it has none."""
    if "messages" in row:
        return messages_identity(row["messages"])
    if "conversation" in row:
        return conversation_identity(row["conversation"], row.get("system"))
    return None


def models_of(row: dict[str, Any]) -> dict[str, int]:
    """How many responses a decoded row has of each model."""
    models: dict[str, int] = {}
    outputs = row.get("model_outputs")
    for output in outputs if isinstance(outputs, list) else ():
        name = output.get("model_name") if isinstance(output, dict) else None
        if isinstance(name, str) and name.strip():
            responses = output.get("responses")
            number = len(responses) if isinstance(responses, list) else 0
            models[name] = models.get(name, 0) + number
    return models


def _count_models(facts: Facts, outputs: Node | None) -> None:
    for output in outputs.items() if outputs else ():
        name, responses = output.member("model_name"), output.member("responses")
        if name and name.type == "string" and name.value.strip():
            number = sum(1 for _ in responses.items()) if responses else 0
            facts.models[name.value] = facts.models.get(name.value, 0) + number


def _messages_identity_of(messages: Node) -> Any:
    """The same for a node; of a huge one that is out of the ordinary its text as it is written."""
    try:
        return _decode_messages(messages.source)
    except (msgspec.MsgspecError, UnicodeError):
        large = messages.end - messages.start >= WHOLE
        return messages.source if large else messages_identity(messages.plain())


def _conversation_identity_of(conversation: Node, system: Node | None) -> Any:
    if conversation.end - conversation.start >= WHOLE:
        return conversation.source
    return conversation_identity(conversation.plain(), system.plain() if system else None)


_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_messages = msgspec.json.Decoder(tuple[Message, ...]).decode


def messages_identity(messages: Any) -> Any:
    """Hashable, and the same for messages that read the same; a plain tuple of Message where that says it all."""
    if isinstance(messages, list) and all(map(_is_plain, messages)):
        return tuple([Message(message.get("role", UNSET), _text_of(message)) for message in messages])
    return _sorted_json(messages)


def _text_of(message: dict[str, Any]) -> str | UnsetType:
    return joined(message["content"]) if "content" in message else UNSET


def _sorted_json(value: Any) -> bytes:
    try:
        return _encode_sorted(value)
    except UnicodeError:  # half characters
        return json.dumps(value, sort_keys=True).encode()


def conversation_identity(conversation: Any, system: Any) -> Any:
    """The same for the messages that a legacy row becomes."""
    turns = conversation if isinstance(conversation, list) else [conversation]
    if not all(_is_turn(turn) for turn in turns):
        return json.dumps((system, conversation), sort_keys=True)
    start = (Message("system", system),) if isinstance(system, str) and system.strip() else ()
    pairs = ((Message("user", turn["prompt"]), Message("assistant", turn["response"])) for turn in turns)
    return start + tuple(message for pair in pairs for message in pair)


def _is_plain(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.keys() <= ROLE_AND_TEXT
        and isinstance(message.get("role", ""), str)
        and readable(message.get("content", ""))
    )


def _is_turn(turn: Any) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("prompt"), str)
        and isinstance(turn.get("response"), str)
    )


def readable(content: Any) -> bool:
    """Whether a message's content is a string or a list of text parts."""
    if isinstance(content, str):
        return True
    if not isinstance(content, list | Items):
        return False
    return all(map(_is_text, content))


def _is_text(part: Any) -> bool:
    if isinstance(part, Part):
        return True
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def joined(content: Any) -> str:
    """A readable content as one text."""
    if isinstance(content, str):
        return content
    return "".join([part.text if isinstance(part, Part) else part["text"] for part in content])
