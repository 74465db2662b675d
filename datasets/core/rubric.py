"""A row's rubric: the criteria of a checklist with their points, and the value that met criteria give."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

RUBRIC = "rubric"
"""The custom field that holds it."""

_MARK = re.compile(r"\s*(?:[-*+•·]\s+|\[[ xX]?\]\s*|\(?\d{1,3}[.)]\s+|\d{1,3}[、．]\s*|（\d{1,3}）\s*)+")
_POINTS = re.compile(r"\s*([-+−]?\d{1,9}(?:\.\d{1,9})?)\s*(?:points?|pts?|分)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Criterion:
    """A leaf of a rubric. `id`: its own, else its number from 1; `path`: where it stands in the row."""

    id: str
    text: str
    points: float
    tags: tuple[str, ...]
    path: str
    has_own_id: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A group of criteria with a weight of its own; the root's weight has no meaning."""

    weight: float
    children: tuple[Node | Criterion, ...]


@dataclass(frozen=True, slots=True)
class Rubric:
    """All criteria of a row in the order in which they stand, and the tree that they are the leaves of."""

    criteria: tuple[Criterion, ...]
    root: Node

    def bounds(self, met: Sequence[bool | None]) -> tuple[float, float]:
        """The least and the greatest value that the open criteria (None) allow; equal where none counts.

        A group's value is Σ weight × value of its children ÷ Σ of their positive weights. Not cut to 0…1.
        """
        return _bounds(self.root, iter(met))

    @property
    def least(self) -> float:
        """The value of the worst answer: 0 unless points are negative."""
        return self.bounds([None] * len(self.criteria))[0]


def _bounds(node: Node | Criterion, met: Iterator[bool | None]) -> tuple[float, float]:
    if isinstance(node, Criterion):
        is_met = next(met)
        return (0.0, 1.0) if is_met is None else (float(is_met), float(is_met))
    lows: list[float] = []
    highs: list[float] = []
    for child in node.children:
        low, high = _bounds(child, met)
        weight = _weight(child)
        lows.append(weight * (low if weight >= 0 else high))
        highs.append(weight * (high if weight >= 0 else low))
    total = _positive(node)
    return math.fsum(lows) / total, math.fsum(highs) / total


def _weight(node: Node | Criterion) -> float:
    return node.points if isinstance(node, Criterion) else node.weight


def _positive(node: Node) -> float:
    return math.fsum(max(0.0, _weight(child)) for child in node.children)


@dataclass(frozen=True, slots=True)
class RubricProblem:
    """What is wrong in a rubric: a code of the findings, the path, and what stands there."""

    code: str
    path: str
    value: Any = None


@dataclass(slots=True)
class _Reading:
    criteria: list[Criterion] = field(default_factory=list)
    problems: list[RubricProblem] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def nodes(self, items: Sequence[Any], path: str) -> tuple[Node | Criterion, ...]:
        nodes = tuple(self._node(item, f"{path}[{index}]") for index, item in enumerate(items))
        if not any(_weight(node) > 0 for node in nodes):
            self._report("rubric.nothing_positive", path)
        return nodes

    def _node(self, item: Any, path: str) -> Node | Criterion:
        if not isinstance(item, dict):
            return self._leaf({"criterion": item}, path, path)
        children = item.get("children")
        if isinstance(children, list) and children:
            return Node(self._points(item, path), self.nodes(children, f"{path}.children"))
        return self._leaf(item, path, f"{path}.criterion")

    def _leaf(self, item: dict[str, Any], path: str, text_path: str) -> Criterion:
        text = item.get("criterion")
        if not isinstance(text, str) or not text.strip():
            self._report("rubric.criterion_blank", text_path if "criterion" in item else path, text)
            text = ""
        tags = item.get("tags")
        named = tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()
        own = item.get("id")
        has_own = isinstance(own, str | int) and not isinstance(own, bool) and str(own).strip() != ""
        name = self._id(str(own) if has_own else "", path, text.strip())
        criterion = Criterion(name, text, self._points(item, path), named, path, has_own)
        self.criteria.append(criterion)
        return criterion

    def _id(self, own: str, path: str, text: str) -> str:
        """The criterion's id; one that is taken gets a number, so that each id names one criterion."""
        if own in self.ids or (text and text in self.texts):
            self._report("rubric.duplicate", path, own if own in self.ids else text)
        self.texts.add(text)
        wanted = name = own or str(len(self.criteria) + 1)
        again = 2
        while name in self.ids:
            name, again = f"{wanted} ({again})", again + 1
        self.ids.add(name)
        return name

    def _points(self, item: dict[str, Any], path: str) -> float:
        key = "points" if "points" in item else "weight"
        points = item.get(key, 1)
        if isinstance(points, bool) or not isinstance(points, int | float) or not math.isfinite(points):
            self._report("rubric.points_not_number", f"{path}.{key}", points)
            return 1.0
        return float(points)

    def _report(self, code: str, path: str, value: Any = None) -> None:
        self.problems.append(RubricProblem(code, path, value))


def read_rubric(value: Any) -> tuple[Rubric | None, list[RubricProblem]]:
    """The rubric in a row's field, None where it cannot be judged by, and all problems.

    Duplicates are a problem that does not keep a rubric from being read.
    """
    if not isinstance(value, list):
        return None, [RubricProblem("rubric.not_list", RUBRIC, value)]
    reading = _Reading()
    try:
        root = Node(1.0, reading.nodes(value, RUBRIC))
    except RecursionError:
        return None, [RubricProblem("rubric.not_list", RUBRIC, value)]
    blocked = any(problem.code != "rubric.duplicate" for problem in reading.problems)
    return None if blocked else Rubric(tuple(reading.criteria), root), reading.problems


def lines_of(text: str) -> list[Any]:
    """The rubric that a text holds: its JSON if that is a list, else a criterion a line without list marks."""
    if text.lstrip().startswith("["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, list) and value and all(isinstance(item, str | dict) for item in value):
            return value
    lines = (_without_mark(line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _without_mark(line: str) -> str:
    mark = _MARK.match(line)
    return line[mark.end() :] if mark else line


def points_in(value: Any) -> int | float | None:
    """The number that points written as text say, as `5`, `-2.5` or `5 points`; None for any other value."""
    match = _POINTS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number = float(match[1].replace("−", "-"))
    return int(number) if number.is_integer() else number
