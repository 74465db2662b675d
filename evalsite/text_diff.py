"""Human-readable differences between two texts: by line first, then within similar lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "removed", "added", "gap"]

MOST_TOKENS = 3_000
"""Comparing takes up to quadratic time; longer passages are shown as replaced entirely."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"[^\W\u2e80-\uffff]+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of text: in both, only in the first, only in the second, or a gap for omitted common text."""

    kind: Kind
    text: str


def pieces(before: str, after: str) -> list[Passage]:
    """The texts as one sequence: `before` without the added pieces, `after` without the removed ones."""
    start = _common_start(before, after)
    end = _common_start(before[start:][::-1], after[start:][::-1])
    middle = _between(before[start : len(before) - end], after[start : len(after) - end])
    ends = (Passage("same", before[:start]), *middle, Passage("same", before[len(before) - end :]))
    return _joined(ends)


def sides(before: str, after: str) -> tuple[list[Passage], list[Passage]]:
    """The two texts side by side, each with its common and its own passages."""
    passages = pieces(before, after)
    return [passage for passage in passages if passage.kind != "added"], [
        passage for passage in passages if passage.kind != "removed"
    ]


def _common_start(text: str, other: str) -> int:
    """The number of characters both texts start with, by binary search."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        half = (low + high + 1) // 2
        if text[low:half] == other[low:half]:
            low = half
        else:
            high = half - 1
    return low


def _between(before: str, after: str) -> Iterator[Passage]:
    old, new = _LINE.findall(before), _LINE.findall(after)
    if len(old) < 2 or len(new) < 2 or len(old) + len(new) > MOST_TOKENS:
        yield from _in_words(before, after)
        return
    yield from _compared(old, new, _in_words)


def _in_words(before: str, after: str) -> Iterator[Passage]:
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) + len(new) > MOST_TOKENS:
        yield from _replaced(before, after)
        return
    yield from _compared(old, new, _replaced)


def _compared(
    old: list[str], new: list[str], differing: Callable[[str, str], Iterable[Passage]]
) -> Iterator[Passage]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield Passage("same", "".join(old[a:b]))
        else:
            yield from differing("".join(old[a:b]), "".join(new[c:d]))


def _replaced(before: str, after: str) -> tuple[Passage, Passage]:
    return Passage("removed", before), Passage("added", after)


def _joined(passages: Iterable[Passage]) -> list[Passage]:
    """Drop empty passages and merge adjacent ones of the same kind."""
    result: list[Passage] = []
    for piece in passages:
        if piece.text and result and result[-1].kind == piece.kind:
            result[-1] = Passage(piece.kind, result[-1].text + piece.text)
        elif piece.text:
            result.append(piece)
    return result


def excerpts(passages: Sequence[Passage], around: int) -> list[Passage]:
    """Keep at most `around` common characters next to differences; a gap (text "") replaces the rest."""
    result: list[Passage] = []
    for number, piece in enumerate(passages):
        ends = (around if number else 0, around if number < len(passages) - 1 else 0)
        if piece.kind != "same" or len(piece.text) <= sum(ends) + 20:
            result.append(piece)
            continue
        begin, end = piece.text[: ends[0]], piece.text[len(piece.text) - ends[1] :]
        result += [Passage("same", begin)] if begin else []
        result += [Passage("gap", "")]
        result += [Passage("same", end)] if end else []
    return result
