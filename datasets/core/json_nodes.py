"""A JSON text as a tree that is not built: a node knows its place and reads its parts when they are needed.

A row of millions of values costs no memory beyond its text; the parts of a short value are remembered. Only for texts
that are known to be JSON.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

JsonType = Literal["object", "array", "string", "number", "boolean", "null"]
Steps = tuple[str | int, ...]

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
_TYPES: dict[str, JsonType] = {
    '"': "string",
    "{": "object",
    "[": "array",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}
REMEMBERED = 50_000
"""Characters of a value up to which its parts are kept once they were read."""


class Node:
    """A value with its place: `text[start:end]`. `sound`: it is known that no key or text in it has a flaw."""

    __slots__ = ("_items", "_pairs", "end", "sound", "start", "text", "type")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.type: JsonType = _TYPES.get(text[start], "number")
        self.sound = False
        self._items: list[Node] | None = None
        self._pairs: list[tuple[Node, Node]] | None = None

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
        found = None
        for key, value in self.members():
            if key.value == name:
                found = value
        return found

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


class Places:
    """Finds nodes by the steps that lead to them; fast as long as they are looked up in the order of the text."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._reading: dict[Steps, tuple[Iterator[Node], int, Node]] = {}

    def node(self, steps: Steps) -> Node:
        """The node at the end of steps that exist."""
        if not steps:
            return self._root
        *_, last = steps
        above = steps[:-1]
        if isinstance(last, str):
            found = self.node(above).member(last)
            assert found
            return found
        reading = self._reading.get(above)
        if reading is None or reading[1] > last:
            reading = (iter(self.node(above).items()), -1, self._root)
        items, at, node = reading
        while at < last:
            at, node = at + 1, next(items)
        self._reading[above] = (items, at, node)
        return node
