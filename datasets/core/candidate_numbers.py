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
    for one in candidates:
        if one.uploaded:
            together.setdefault(one.version, {})[one.name] = None
    found: dict[str, int] = {}
    following = list(range(1, COLOURS + 1))
    for one in candidates:
        others = together.setdefault(one.version, {})
        if one.name not in found:
            taken = {(found[name] - 1) % COLOURS for name in others if name in found}
            free = [number for place, number in enumerate(following) if place not in taken]
            found[one.name] = min(free or following)
            following[(found[one.name] - 1) % COLOURS] += COLOURS
        others[one.name] = None
    return found
