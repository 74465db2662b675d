"""Lazy tree over a JSON text: a node stores its position and parses its parts on demand.

A row of millions of values needs no memory beyond its text; the parts of short values are cached. The text must be
valid JSON.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from datasets.core.json_tokens import QUOTED

JsonType = Literal["object", "array", "string", "number", "boolean", "null"]
Steps = tuple[str | int, ...]

scanstring: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

_BLANK = re.compile(r"[ \t\r\n]*+")
_FLAT = re.compile(rf"[-+.\w]++|{QUOTED}", re.DOTALL)
_TO_BRACKET = re.compile(rf"(?:[^\"\[\]{{}}]++|{QUOTED})*+[\[\]{{}}]", re.DOTALL)
_KEY = re.compile(rf"({QUOTED})[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\r\n]*+,?[ \t\r\n]*+")
_TYPES: dict[str, JsonType] = {
    '"': "string",
    "{": "object",
    "[": "array",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}
REMEMBERED = 50_000
"""Maximum length in characters of a value whose parts are cached."""


class Node:
    """A value at `text[start:end]`; the end is determined only when needed."""

    __slots__ = ("_end", "_known", "start", "text", "type")

    def __init__(self, text: str, start: int, end: int | None = None) -> None:
        self.text = text
        self.start = start
        self._end = end
        self.type: JsonType = _TYPES.get(text[start], "number")
        self._known: list[tuple[Node, Node]] | None = None

    @property
    def end(self) -> int:
        if self._end is None:
            self._end = _end(self.text, self.start)
        return self._end

    @property
    def column(self) -> int:
        return self.start + 1

    def items(self) -> "Iterable[Node]":
        """The items of an array in order; empty for any other type."""
        return (value for _key, value in self._parts()) if self.type == "array" else ()

    def members(self) -> "Iterable[tuple[Node, Node]]":
        """Keys and values of an object in order; empty for any other type."""
        return self._parts() if self.type == "object" else ()

    def _parts(self) -> "Iterable[tuple[Node, Node]]":
        if self.end - self.start > REMEMBERED:
            return self._read_parts()
        if self._known is None:
            self._known = list(self._read_parts())
        return self._known

    def _read_parts(self) -> "Iterator[tuple[Node, Node]]":
        """Keys and values of an object; for an array, each item as its own key."""
        text, at = self.text, _after(_BLANK, self.text, self.start + 1)
        while text[at] not in "]}":
            key = _KEY.match(text, at) if self.type == "object" else None
            value = Node(text, key.end() if key else at)
            yield (Node(text, at, key.end(1)) if key else value), value
            at = _after(_SEPARATOR, text, value.end)

    def member(self, name: str) -> "Node | None":
        """The last value under `name`; None if there is none or this is not an object."""
        value_node = None
        for key, value in self.members():
            if key.plain() == name:
                value_node = value
        return value_node

    def first_member(self, name: str) -> "Node":
        """The first value under `name`, which must exist; the rest is not read."""
        return next(value for key, value in self._read_parts() if key.plain() == name)

    def plain(self) -> Any:
        """The value as Python's json module returns it."""
        if self.type == "string":
            return scanstring(self.text, self.start + 1, True)[0]
        return json.loads(self.text[self.start : self.end])


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of the match of a pattern that always matches."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _end(text: str, start: int) -> int:
    """The end of the value that starts at `start`."""
    flat = _FLAT.match(text, start)
    if flat:
        return flat.end()
    depth = 0
    for match in _TO_BRACKET.finditer(text, start):
        depth += 1 if text[match.end() - 1] in "{[" else -1
        if not depth:
            return match.end()
    raise ValueError("brackets that do not match")


class NodePositions:
    """Finds nodes by their steps; fast if they are looked up in the order of the text.

    `unique_keys`: the text has no duplicate keys.
    """

    def __init__(self, root: Node, *, unique_keys: bool = False) -> None:
        self._root = root
        self._unique_keys = unique_keys
        self._reading: dict[Steps, tuple[Iterator[Node], int, Node]] = {}

    def node(self, steps: Steps) -> Node:
        """The node at the end of existing steps."""
        if not steps:
            return self._root
        *_, last = steps
        above = steps[:-1]
        if isinstance(last, str):
            holder = self.node(above)
            member = holder.first_member(last) if self._unique_keys else holder.member(last)
            assert member
            return member
        reading = self._reading.get(above)
        if reading is None or reading[1] > last:
            reading = (iter(self.node(above).items()), -1, self._root)
        items, at, node = reading
        while at < last:
            at, node = at + 1, next(items)
        self._reading[above] = (items, at, node)
        return node
