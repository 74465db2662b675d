"""How many items a rater gets at most, from the ratings that are needed, the number of raters and the quota."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Work:
    """What a study asks of its raters: `seats`, the ratings that its `items` need of `raters` people; `gold` items and
    `repeats` come on top in these shares (0…1)."""

    seats: int
    raters: int
    items: int
    gold: int = 0
    gold_share: float = 0.0
    repeats: int = 0
    repeat_share: float = 0.0


def items_each(work: Work, quota: int | None = None) -> int:
    """The items of a rater if all do an equal part, rounded up, with gold items and repeats; at most `quota`."""
    usual = min(work.items, -(-work.seats // max(1, work.raters)))
    rest = max(0.05, 1 - work.gold_share - work.repeat_share)
    gold = min(work.gold, _upper(usual * work.gold_share / rest))
    repeats = min(work.repeats, _upper(usual * work.repeats / work.items)) if work.items else 0
    total = usual + gold + repeats
    return total if quota is None else min(quota, total)


def gold_each(work: Work, quota: int | None = None) -> int:
    """The gold items that a rater who does an equal part needs for `gold_share`, however many there are."""
    whole = items_each(replace(work, gold=work.seats + work.items), quota)
    return _upper(whole * work.gold_share)


def _upper(number: float) -> int:
    return math.ceil(round(number, 6))


def raised(each: int, *, left: int, rooms: list[int], most: int) -> int:
    """`each`, raised as far as `left` ratings need that nobody's number covers, at most to `most`. `rooms`: what each
    active rater may still get."""
    uncovered = left - sum(rooms)
    if uncovered <= 0 or not rooms:
        return min(each, most)
    return min(most, each + -(-uncovered // len(rooms)))
