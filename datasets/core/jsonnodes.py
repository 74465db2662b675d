"""A JSON text as a tree that is not built: each node knows its place and reads on from there when it is asked.

So a row of millions of values costs no memory beyond its text; of a short value the parts are remembered. Only for
texts that are known to be JSON.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

JsonType = Literal["object", "array", "string", "number", "boolean", "null"]

scanstring: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

BLANK = re.compile(r"[ \t\r\n]*+")
# A scalar, or brackets with nothing but scalars in them: most values end after one match.
_QUOTED = r'"(?:[^"\\]++|\\.)*+"'
_LIST = rf"[\[{{](?:[^\"\[\]{{}}]++|{_QUOTED})*+[\]}}]"
for _ in range(3):
    _LIST = rf"[\[{{](?:[^\"\[\]{{}}]++|{_QUOTED}|{_LIST})*+[\]}}]"
_FLAT = rf"(?:[-+.\w]++|{_QUOTED}|{_LIST})"
_GAP = r"[ \t\r\n]*+"
_ITEM = re.compile(rf"({_FLAT}){_GAP},?{_GAP}", re.DOTALL)
_MEMBER = re.compile(rf"({_QUOTED}){_GAP}:{_GAP}(?:({_FLAT}){_GAP},?{_GAP})?", re.DOTALL)
_TO_BRACKET = re.compile(rf"(?:[^\"\[\]{{}}]++|{_QUOTED})*+", re.DOTALL)
_SEPARATOR = re.compile(rf"{_GAP},?{_GAP}")
_KEY = re.compile(rf'"((?:[^"\\]++|\\.)*+)"{_GAP}:{_GAP}', re.DOTALL)
_TYPES: dict[str, JsonType] = {
    '"': "string",
    "{": "object",
    "[": "array",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}
KEPT = frozenset(
    (
        *("messages", "model_outputs", "conversation", "system", "id", "role", "content", "tool_calls"),
        *("model_name", "responses", "reasoning_content", "prompt", "response", "type", "text"),
    )
)
"""The keys that rules know."""


REMEMBERED = 50_000
"""Characters of a value up to which its parts are kept once they were read."""


class Node:
    """A value with its place: `text[start:end]`. `sound`: it is known that no key or text in it has a flaw."""

    __slots__ = ("_items", "_members", "_pairs", "end", "sound", "start", "text", "type")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.type: JsonType = _TYPES.get(text[start], "number")
        self.sound = False
        self._items: list[Node] | None = None
        self._pairs: list[tuple[Node, Node]] | None = None
        self._members: dict[str, Node] | None = None

    @property
    def column(self) -> int:
        return self.start + 1

    @property
    def source(self) -> str:
        """The value as it is written."""
        return self.text[self.start : self.end]

    def items(self) -> "Iterable[Node]":
        """The items of an array, one after the other; nothing for anything else."""
        if self.end - self.start > REMEMBERED:
            return self._read_items()
        if self._items is None:
            self._items = list(self._read_items())
        return self._items

    def _read_items(self) -> "Iterator[Node]":
        if self.type != "array":
            return
        text, at, last = self.text, _after(BLANK, self.text, self.start + 1), self.end - 1
        while at < last:
            flat = _ITEM.match(text, at)
            if flat:
                yield Node(text, at, flat.end(1))
                at = flat.end()
            else:
                end = _end(text, at)
                yield Node(text, at, end)
                at = _after(_SEPARATOR, text, end)

    def members(self) -> "Iterable[tuple[Node, Node]]":
        """Keys and values of an object, in their order; nothing for anything else."""
        if self.end - self.start > REMEMBERED:
            return self._read_members()
        if self._pairs is None:
            self._pairs = list(self._read_members())
        return self._pairs

    def _read_members(self) -> "Iterator[tuple[Node, Node]]":
        if self.type != "object":
            return
        text, at, last = self.text, _after(BLANK, self.text, self.start + 1), self.end - 1
        while at < last:
            found = _MEMBER.match(text, at)
            assert found  # the text is known to be JSON
            key = Node(text, at, found.end(1))
            if found.end(2) > 0:
                yield key, Node(text, found.start(2), found.end(2))
                at = found.end()
            else:
                end = _end(text, found.end())
                yield key, Node(text, found.end(), end)
                at = _after(_SEPARATOR, text, end)

    def member(self, name: str) -> "Node | None":
        """The value under `name`, the last one if it is there twice; None if this is no object or has none."""
        if name not in KEPT:
            return {key.value: value for key, value in self.members() if key.value == name}.get(name)
        if self._members is None:
            self._members = {}
            for key, value in self.members():
                known = key.value
                if known in KEPT:
                    self._members[known] = value
        return self._members.get(name)

    @property
    def value(self) -> Any:
        """Of an object its (key, value) nodes, of an array its nodes, else what Python's json would give."""
        if self.type == "object":
            return list(self.members())
        return list(self.items()) if self.type == "array" else self.plain()

    def plain(self) -> Any:
        """The value as Python's json would give it."""
        if self.type == "string":
            return scanstring(self.text, self.start + 1, True)[0]
        return json.loads(self.source)


def place_of(text: str, steps: Iterable[str | int]) -> int:
    """Where the value at the end of steps that exist begins, in a text that has no key twice in an object."""
    at = _after(BLANK, text, 0)
    for step in steps:
        at = _after(BLANK, text, at + 1)
        at = _after_items(text, at, step) if isinstance(step, int) else _value_under(text, at, step)
    return at


def _after_items(text: str, at: int, number: int) -> int:
    """Where the item begins that so many stand before, of which the first begins here."""
    for _ in range(number):
        at = _behind(text, at)
    return at


def _value_under(text: str, at: int, name: str) -> int:
    """Where the value of a key begins, looked for from the member on that begins here."""
    while True:
        key = _KEY.match(text, at)
        assert key  # the text is known to be JSON and has this key
        met = key[1]
        if (scanstring(met + '"', 0, True)[0] if "\\" in met else met) == name:
            return key.end()
        at = _behind(text, key.end())


def _behind(text: str, at: int) -> int:
    """Where what follows on the value that begins here begins."""
    flat = _ITEM.match(text, at)
    return flat.end() if flat else _after(_SEPARATOR, text, _end(text, at))


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where the match of a pattern ends that always matches."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _end(text: str, start: int) -> int:
    """Where the object or array that starts at `start` ends."""
    depth, at = 1, start + 1
    while depth:
        at = _after(_TO_BRACKET, text, at)
        depth += 1 if text[at] in "{[" else -1
        at += 1
    return at
