"""A JSON text as a tree that is not built: each node knows its place and reads on from there when it is asked.

So a row of millions of values costs no memory beyond its text. Only for texts that are known to be JSON.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

JsonType = Literal["object", "array", "string", "number", "boolean", "null"]

scanstring: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

BLANK = re.compile(r"[ \t\r\n]*+")
# A scalar, or brackets with nothing but scalars in them.
_FLAT = re.compile(
    r"""[-+.\w]++ | "(?:[^"\\]++|\\.)*+" | (?:\{|\[) (?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+ (?:\]|\})""",
    re.DOTALL | re.VERBOSE,
)
_TO_BRACKET = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\r\n]*+[,:]?[ \t\r\n]*+")
_TYPES: dict[str, JsonType] = {
    '"': "string",
    "{": "object",
    "[": "array",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}
_KEPT = frozenset(
    (
        *("messages", "model_outputs", "conversation", "system", "id", "role", "content", "tool_calls"),
        *("model_name", "responses", "reasoning_content", "prompt", "response"),
    )
)


class Node:
    """A value with its place: `text[start:end]`."""

    __slots__ = ("_members", "end", "start", "text", "type")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.type: JsonType = _TYPES.get(text[start], "number")
        self._members: dict[str, Node] | None = None

    @property
    def column(self) -> int:
        return self.start + 1

    @property
    def source(self) -> str:
        """The value as it is written."""
        return self.text[self.start : self.end]

    def items(self) -> "Iterator[Node]":
        """The items of an array, one after the other; nothing for anything else."""
        if self.type != "array":
            return
        text, at, last = self.text, _after(BLANK, self.text, self.start + 1), self.end - 1
        past_separator = _SEPARATOR.match
        while at < last:
            end = _end(text, at)
            yield Node(text, at, end)
            separator = past_separator(text, end)  # called here, as lists may have millions of items
            at = separator.end() if separator else end

    def members(self) -> "Iterator[tuple[Node, Node]]":
        """Keys and values of an object, in their order; nothing for anything else."""
        if self.type != "object":
            return
        text, at, last = self.text, _after(BLANK, self.text, self.start + 1), self.end - 1
        while at < last:
            key = Node(text, at, _end(text, at))
            at = _after(_SEPARATOR, text, key.end)
            value = Node(text, at, _end(text, at))
            yield key, value
            at = _after(_SEPARATOR, text, value.end)

    def member(self, name: str) -> "Node | None":
        """The value under `name`, the last one if it is there twice; None if this is no object or has none."""
        if name not in _KEPT:
            return {key.value: value for key, value in self.members() if key.value == name}.get(name)
        if self._members is None:
            self._members = {}
            for key, value in self.members():
                known = key.value
                if known in _KEPT:
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


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where the match of a pattern ends that always matches."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _end(text: str, start: int) -> int:
    """Where the value that starts at `start` ends."""
    flat = _FLAT.match(text, start)
    if flat:
        return flat.end()
    depth, at = 1, start + 1
    while depth:
        at = _after(_TO_BRACKET, text, at)
        depth += 1 if text[at] in "{[" else -1
        at += 1
    return at
