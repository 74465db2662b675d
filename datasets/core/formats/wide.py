"""Messages with anything beside a role and a text, decoded in one go once it is known what a file's messages hold.

Each look tells whether the rules may have anything to say about them; it raises NotQuick where it cannot.
"""

from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from datasets.core.formats.checks import Check, check_messages
from datasets.core.formats.extras import Extras
from datasets.core.formats.facts import joined, messages_identity
from datasets.core.formats.names import ROLE_AND_TEXT, ROLES, Message, Part
from datasets.core.formats.shapes import Turn
from datasets.core.formats.sound import NotQuick, keys_of, keys_of_json

Known = tuple[Any, int, bool]
"""By what same messages are known, how many keys they hold, and whether the rules must be asked about them."""
_PART = {"type", "text"}
_encode = msgspec.json.Encoder(order="deterministic").encode


_CONTENT = str | GenericAlias(list, (Part,)) | UnsetType | None


class Messages:
    """The type of `messages`, with all keys that messages were found to have.

    `look` is asked of what was decoded. Where parts hold more than a text the messages are decoded as plain objects.
    """

    def __init__(self) -> None:
        self._extras = Extras("role", "content")
        self.type: Any = tuple[Message, ...]
        self.look: Callable[[Any], Known] = _simple

    def learn(self, messages: list[dict[str, Any]]) -> bool:
        """From now on messages with what these hold are decoded too; False if they were already."""
        if self.look == _any or all(_is_simple(message) for message in messages):
            return False
        new = self._extras.learn(messages)
        if not self._extras.can_be_known or not all(_has_known_parts(message) for message in messages):
            self.type, self.look = list[dict[str, Any]], _any
        elif self.look == self._wide and not new:
            return False
        else:
            role = str | UnsetType
            known = {"role": ("role", role, UNSET), "content": ("content", _CONTENT, UNSET)}
            wide = self._extras.structure(known, forbid_unknown_fields=True)
            self.type, self.look = GenericAlias(list, (wide,)), self._wide
        return True

    def seen(self, messages: Any) -> tuple[Any, ...] | None:
        """All that the rules look at in messages, hashable; None if that is not known."""
        return None if self.look == _any else tuple(map(_seen, messages))

    def _wide(self, messages: list[Any]) -> Known:
        further, nothing_further = self._extras.values, self._extras.absent
        previous, asked, keys = "", False, 2 * len(messages)
        doubtful = False
        texts: list[str | UnsetType] | None = []
        for message in messages:
            role, text = message.role, message.content
            if type(text) is list:
                keys += 2 * len(text)
                text = "".join([part.text for part in text])
            if not text or type(text) is not str or text.isspace():
                keys -= text is UNSET
                if role != "assistant" or message.tool_calls is UNSET or message.tool_calls is None:
                    doubtful = True
            if role == previous:
                if role != "tool":
                    keys -= role is UNSET
                    doubtful = True
            elif role == "user":
                asked = True
            elif role not in ROLES or (role == "system" and previous):
                keys -= role is UNSET
                doubtful = True
            previous = role
            values = further(message)
            if values != nothing_further:
                keys += self._extras.keys(values)
                texts = None
            if text is None:
                texts = None
            elif texts is not None:
                texts.append(text)
        doubtful = doubtful or not asked
        if texts is None:
            return _encode(messages), keys, doubtful
        same = [Message(one.role, text) for one, text in zip(messages, texts, strict=True)]
        return tuple(same), keys, doubtful


def _seen(message: Any) -> tuple[Any, ...]:
    """Its role, whether it has a text, or what it has instead, and whether it calls a tool."""
    content, calls = message.content, message.tool_calls
    text = joined(content) if type(content) is list else content
    said = not text.isspace() and text != "" if type(text) is str else text
    return message.role, said, calls is not UNSET and calls is not None


def _simple(messages: tuple[Message, ...]) -> Known:
    previous: str | UnsetType = ""
    asked = doubtful = False
    keys = 2 * len(messages)
    for message in messages:
        role, content = message.role, message.content
        if role == "user":
            asked = True
        elif role not in ROLES:
            keys -= role is UNSET
            doubtful = True
        if not content or role == previous or content.isspace() or (role == "system" and previous):
            keys -= content is UNSET
            doubtful = True
        previous = role
    return messages, keys, doubtful or not asked


def _any(messages: list[dict[str, Any]]) -> Known:
    check = Check()
    check_messages(check, messages)
    identity = messages_identity(messages)
    keys = keys_of_json(identity) if type(identity) is bytes else keys_of(messages)
    return identity, keys, bool(check.faults)


def _is_simple(message: dict[str, Any]) -> bool:
    return message.keys() <= ROLE_AND_TEXT and all(type(value) is str for value in message.values())


def _has_known_parts(message: dict[str, Any]) -> bool:
    content = message.get("content")
    parts: Iterable[Any] = content if isinstance(content, list) else ()
    return all(part.keys() == _PART for part in parts)


def seen_turns(turns: list[Turn]) -> tuple[Any, ...]:
    """The same as Messages.seen of a legacy row's that are known."""
    return tuple([(bool(turn.prompt.strip()), bool(turn.response.strip())) for turn in turns])


def known_turns(turns: list[Turn], system: Any) -> Known:
    """The same of a legacy row's, of which a system that is no text is not counted."""
    if not turns or not (system is UNSET or isinstance(system, str)):
        raise NotQuick
    messages = [Message("system", system)] if system is not UNSET and system.strip() else []
    doubtful = False
    for turn in turns:
        prompt, response = turn.prompt, turn.response
        if not prompt or not response or prompt.isspace() or response.isspace():
            doubtful = True
        messages += (Message("user", prompt), Message("assistant", response))
    return tuple(messages), 2 * len(turns), doubtful
