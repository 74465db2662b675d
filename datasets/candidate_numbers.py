"""Which colour and mark a candidate has: by a number that stays its own as more candidates come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

COLOURS = 6
"""Numbers that differ by a multiple of it have the same colour, though another mark."""


class Named(NamedTuple):
    """A candidate's name in a version; `uploaded` ones came with the version, others were added later."""

    version: int
    name: str
    uploaded: bool


def candidate_numbers(candidates: Sequence[Named]) -> dict[str, int]:
    """{name: its number from 1}, of candidates in the order in which they came. A new name gets the least number whose
    colour none of the others in its version has, as long as there is one: they are on the same pages."""
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
