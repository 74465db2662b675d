"""The quick look at a row: proves that there is nothing to say about it, or leaves it to the careful look.

What is decoded here into typed structures is right by the decoder's word: JSON, roles known, texts texts. The
rest is a few comparisons. Whoever changes a rule in checks.py must see that nothing slips through here;
a test compares the two on many rows.
"""

import json
import math
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from datasets.core.formats.keycount import SUSPECT, UNCOUNTABLE
from datasets.core.formats.names import Format, Message
from datasets.core.jsontext import MAX_DEPTH
from datasets.core.tally import TYPE_BITS, Tally


class _Response(Struct):
    content: str
    reasoning_content: str | UnsetType | None = UNSET


class _Output(Struct):
    model_name: str
    responses: list[_Response]


class _Turn(Struct):
    prompt: str
    response: str


class NotQuick(Exception):
    """This row needs the careful look."""


UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, NotQuick)

_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_messages = msgspec.json.Decoder(tuple[Message, ...]).decode
_decode_outputs = msgspec.json.Decoder(list[_Output]).decode
_decode_turns = msgspec.json.Decoder(list[_Turn]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_any = msgspec.json.Decoder().decode

_NULL = TYPE_BITS["null"]
_NUMBER = TYPE_BITS["number"]
_NESTED = TYPE_BITS["array"] | TYPE_BITS["object"]
_BITS = {ord(sign): TYPE_BITS["number"] for sign in "-0123456789"} | {
    ord('"'): TYPE_BITS["string"],
    ord("{"): TYPE_BITS["object"],
    ord("["): TYPE_BITS["array"],
    ord("t"): TYPE_BITS["boolean"],
    ord("f"): TYPE_BITS["boolean"],
    ord("n"): TYPE_BITS["null"],
}
_SHORT_NUMBER = 300
_BEYOND_DOUBLE = 2**1024 - 2**970


class QuickLook:
    """Bound to one format and one tally; a row that passes is counted there, one that does not is not."""

    def __init__(self, fmt: Format, tally: Tally) -> None:
        self._tally = tally
        self._answers = fmt == "judge_only"
        self._legacy = fmt == "legacy_jsonl"

    def passes(self, number: int, line: bytes, keys: int) -> bool:
        """Whether the row has neither errors nor warnings of its own; `keys` is key_counts' figure for it."""
        if keys == SUSPECT:
            return False
        try:
            top = _decode_top(line)
            messages, expected = self._conversation(top) if self._legacy else self._messages(top)
            outputs: list[_Output] = []
            if self._answers:
                outputs, held = self._outputs(top)
                expected += held
            elif "model_outputs" in top:
                return False
            types, nested = self._types(top)
            if expected + nested != keys and not _no_key_twice(line, keys):
                return False
        except UNDECODED:
            return False
        self._count(number, top, types, messages, outputs)
        return True

    def _messages(self, top: dict[str, Raw]) -> tuple[tuple[Message, ...], int]:
        messages = _decode_messages(top["messages"])
        previous = ""
        asked = False
        for message in messages:
            role, content = message.role, message.content
            if role == "user":
                asked = True
            if not content or content.isspace() or role == previous or (role == "system" and previous):
                raise NotQuick
            previous = role
        if not asked or "conversation" in top:
            raise NotQuick
        return messages, len(top) + 2 * len(messages)

    def _outputs(self, top: dict[str, Raw]) -> tuple[list[_Output], int]:
        outputs = _decode_outputs(top["model_outputs"])
        known = self._tally.models
        keys = 2 * len(outputs)
        for output in outputs:
            if output.model_name not in known and not output.model_name.strip():
                raise NotQuick
            keys += len(output.responses)
            for response in output.responses:
                content = response.content
                if not content or content.isspace():
                    raise NotQuick
                if response.reasoning_content is not UNSET:
                    keys += 1
            if not output.responses:
                raise NotQuick
        if not outputs or (
            len(outputs) > 1 and len({output.model_name for output in outputs}) != len(outputs)
        ):
            raise NotQuick
        return outputs, keys

    def _conversation(self, top: dict[str, Raw]) -> tuple[tuple[Message, ...], int]:
        turns = _decode_turns(top["conversation"])
        if not turns or "messages" in top:
            raise NotQuick
        messages: list[Message] = []
        system = _decode_text(top["system"]) if "system" in top else ""
        if system.strip():
            messages.append(Message("system", system))
        for turn in turns:
            if not turn.prompt.strip() or not turn.response.strip():
                raise NotQuick
            messages += (Message("user", turn.prompt), Message("assistant", turn.response))
        return tuple(messages), len(top) + 2 * len(turns)

    def _types(self, top: dict[str, Raw]) -> tuple[list[int], int]:
        """The type bits of the top-level values in order, and how many keys are inside the nested fields."""
        bits = [_BITS[memoryview(raw)[0]] for raw in top.values()]
        keys = 0
        for (name, raw), bit in zip(top.items(), bits, strict=True):
            if bit & _NESTED:
                if name not in ("messages", "model_outputs", "conversation"):
                    keys += count_keys(_decode_any(raw))
            elif bit == _NUMBER and not _is_double(bytes(raw)):
                raise NotQuick
        return bits, keys

    def _count(
        self,
        number: int,
        top: dict[str, Raw],
        types: list[int],
        messages: tuple[Message, ...],
        outputs: list[_Output],
    ) -> None:
        tally = self._tally
        tally.objects += 1
        for name, bit in zip(top, types, strict=True):
            tally.field(name, bit)
        for output in outputs:
            tally.model(output.model_name, len(output.responses))
        identity = top.get("id")
        if identity is not None:
            source = bytes(identity).decode()
            if source != "null":
                tally.ids.add(number, hash(source))
        tally.messages.add(number, hash(messages))


def _is_double(source: bytes) -> bool:
    if len(source) < _SHORT_NUMBER and b"e" not in source and b"E" not in source:
        return True
    return not math.isinf(float(source))


def count_keys(value: Any) -> int:
    """All keys of all objects in a decoded JSON value; raises NotQuick at too deep a nesting or too big a number."""
    keys = 0
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                keys += len(item)
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, int) and abs(item) >= _BEYOND_DOUBLE:
                raise NotQuick
        if not below:
            return keys
        level = below
    raise NotQuick


def _no_key_twice(line: bytes, keys: int) -> bool:
    """The second look at a line whose keys did not add up: fields that nobody described, or texts like keys."""
    if keys != UNCOUNTABLE and count_keys(_decode_any(line)) == keys:
        return True
    try:
        json.loads(line, object_pairs_hook=_distinct, parse_float=_double)
    except (ValueError, RecursionError):
        return False
    count_keys(_decode_any(line))
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")


def _double(source: str) -> float:
    number = float(source)
    if math.isinf(number):
        raise ValueError("beyond a double")
    return number
