"""A row as plain values, for the rules: a short one whole, of a long one what rules ask for, read as they go.

So a row of millions of values costs no memory beyond its text here either.
"""

from collections.abc import Iterator
from typing import Any

from datasets.core.formats.shapes import json_type
from datasets.core.jsonnodes import KEPT, REMEMBERED, JsonType, Node
from datasets.core.spelling import is_misspelling

Steps = tuple[str | int, ...]


class Items:
    """The items of a long array, each made plain when its turn comes."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def __iter__(self) -> Iterator[Any]:
        return map(outline, self._node.items())

    def __bool__(self) -> bool:
        return any(True for _ in self._node.items())


def outline(node: Node) -> Any:
    """The value of a node; of a long object only the keys that rules know, of a long array its Items."""
    if node.end - node.start <= REMEMBERED or node.type not in ("array", "object"):
        return node.plain()
    if node.type == "array":
        return Items(node)
    return {key.value: outline(value) for key, value in node.members() if _matters(key.value)}


def _matters(name: str) -> bool:
    """Whether rules know a key of this name, or one that it may be a misspelling of."""
    return name in KEPT or any(is_misspelling(name, known) for known in KEPT)


def type_of(value: Any) -> JsonType:
    """The JSON type of a plain value or of Items."""
    return "array" if type(value) is Items else json_type(value)


class Places:
    """Finds nodes by the steps that lead to them; fast as long as they are asked for in the order of the text."""

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
