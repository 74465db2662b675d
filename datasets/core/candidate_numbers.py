"""Colour and marker of each candidate, chosen by a number that stays the same when candidates are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

COLOURS = 6
"""Numbers that differ by a multiple of COLOURS share a colour but not a marker."""


class Named(NamedTuple):
    """A candidate's name in a version; `uploaded` is false for candidates added after the upload."""

    version: int
    name: str
    uploaded: bool


def candidate_numbers(candidates: Sequence[Named]) -> dict[str, int]:
    """Return {name: number from 1} for candidates in order of appearance.

    Candidates of a version appear on the same pages, so a new name gets the lowest number whose colour is still free in
    its version, if there is one.
    """
    together: dict[int, dict[str, None]] = {}
    for candidate in candidates:
        if candidate.uploaded:
            together.setdefault(candidate.version, {})[candidate.name] = None
    numbers: dict[str, int] = {}
    following = list(range(1, COLOURS + 1))
    for candidate in candidates:
        others = together.setdefault(candidate.version, {})
        if candidate.name not in numbers:
            taken = {(numbers[name] - 1) % COLOURS for name in others if name in numbers}
            free = [number for place, number in enumerate(following) if place not in taken]
            numbers[candidate.name] = min(free or following)
            following[(numbers[candidate.name] - 1) % COLOURS] += COLOURS
        others[candidate.name] = None
    return numbers
