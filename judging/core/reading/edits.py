"""A text that is edited step by step and still knows where each character stood in the original."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from re import Match

Edit = tuple[int, int, str]
"""Start and end of what is replaced, and its replacement."""
Edits = Callable[[str], Iterable[Edit]]


def replacing(pattern: str, replacement: str | Callable[[Match[str]], str] = "") -> Edits:
    """The edits that replace every match."""
    expression = re.compile(pattern, re.MULTILINE)

    def edits(text: str) -> Iterator[Edit]:
        for match in expression.finditer(text):
            yield *match.span(), replacement if isinstance(replacement, str) else replacement(match)

    return edits


@dataclass(frozen=True, slots=True)
class _Step:
    """The kept pieces of one step: where each starts in the new text and where it started in the old one."""

    new: list[int]
    old: list[int]


class EditedText:
    """`text` after all edits so far; `original_span` gives places in the original."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, steps: tuple[_Step, ...] = ()) -> None:
        self.text = text
        self._steps = steps

    def edited(self, edits: Iterable[Edit]) -> EditedText:
        """Apply edits, which are in order and do not overlap."""
        pieces: list[str] = []
        new, old = [0], [0]
        kept_from = length = 0
        for start, end, replacement in edits:
            pieces += (self.text[kept_from:start], replacement)
            length += start - kept_from + len(replacement)
            kept_from = end
            new.append(length)
            old.append(end)
        if len(new) == 1:
            return self
        pieces.append(self.text[kept_from:])
        return EditedText("".join(pieces), (*self._steps, _Step(new, old)))

    def same_length(self, text: str) -> EditedText:
        """With characters exchanged one for one."""
        return EditedText(text, self._steps)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        first = last = start
        if end > start:
            last = end - 1
        for step in reversed(self._steps):
            first, last = _before(step, first), _before(step, last)
        return first, last + 1 if end > start else last


def _before(step: _Step, position: int) -> int:
    piece = bisect_right(step.new, position) - 1
    old = step.old[piece] + position - step.new[piece]
    return min(old, step.old[piece + 1] - 1) if piece + 1 < len(step.old) else old
