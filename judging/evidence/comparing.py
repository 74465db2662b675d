"""Compares what stands in an evidence file with what was computed from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-9  # relative


@dataclass(frozen=True, slots=True)
class Difference:
    """A place in the file where what stands inside is not what was computed."""

    place: str
    inside: Any
    computed: Any


def compared(computed: Any, inside: Any, place: str = "report.json") -> Iterator[Difference]:
    """Every place where two JSON values differ: texts and whole numbers exactly, numbers by more than TOLERANCE."""
    if isinstance(computed, dict) and isinstance(inside, dict):
        for name in dict.fromkeys([*computed, *inside]):
            yield from compared(computed.get(name), inside.get(name), f"{place}/{name}")
    elif isinstance(computed, list) and isinstance(inside, list) and len(computed) == len(inside):
        for number, (mine, other) in enumerate(zip(computed, inside, strict=True)):
            yield from compared(mine, other, f"{place}/{number}")
    elif not same_figure(computed, inside):
        yield Difference(place, inside, computed)


def same_figure(computed: Any, inside: Any) -> bool:
    """Whether two values without members are equal, numbers within TOLERANCE."""
    if isinstance(computed, bool) or isinstance(inside, bool):
        return computed is inside
    if isinstance(computed, float | int) and isinstance(inside, float | int):
        if isinstance(computed, int) and isinstance(inside, int):
            return computed == inside
        return math.isclose(computed, inside, rel_tol=TOLERANCE, abs_tol=1e-15)
    return bool(computed == inside)
