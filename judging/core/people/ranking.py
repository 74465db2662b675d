"""A ranking of three to six answers of a row: its text, the comparisons that it implies, and the order shown.

A ranking is stored as the places of an item's answers in the item's order, from 1, with commas: `2,1,2` puts the second
answer first and the other two behind it, tied. Places are dense: after a tie the next place follows at once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

from datasets.core.kinds import COMPARISON_CODES, TIE

FEWEST_RANKED, MOST_RANKED = 3, 6
A_BETTER, B_BETTER = COMPARISON_CODES[1], COMPARISON_CODES[3]
Pair = tuple[int, int, str]  # two answers' positions in the item, from 0, and which of them is better


def places_of(ranking: str) -> list[int]:
    """The places of the answers. Raises ValueError for a text that is no ranking."""
    return [int(place) for place in ranking.split(",")]


def ranking_of(places: Sequence[int]) -> str:
    """The text of a ranking; the places become dense."""
    used = sorted(set(places))
    return ",".join(str(used.index(place) + 1) for place in places)


def is_ranking(text: str, answers: int) -> bool:
    """Whether it gives each of this many answers a place, or none yet (an empty one)."""
    places = text.split(",")
    allowed = {"", *map(str, range(1, answers + 1))}
    return answers > 0 and len(places) == answers and {*places} <= allowed


def pairs_of(ranking: str) -> list[Pair]:
    """The comparisons that a ranking implies, one for each pair of its answers."""
    places = places_of(ranking)
    return [(a, b, _better(places[a], places[b])) for a, b in pairs_among(len(places))]


def pairs_among(answers: int) -> list[tuple[int, int]]:
    """The positions of each pair of this many answers."""
    return list(combinations(range(answers), 2))


def _better(a: int, b: int) -> str:
    return A_BETTER if a < b else B_BETTER if b < a else TIE


def shown_order(answers: int, seed: int, item: int, raters_before: int) -> list[int]:
    """The positions of an item's answers in the order in which its next rater sees them.

    Shuffled by the seed; every second rater of an item sees the reverse, so that each answer of a pair stands first
    equally often."""
    order = list(range(answers))
    random.Random(f"order:{seed}:{item}:{raters_before // 2}").shuffle(order)
    return order[::-1] if raters_before % 2 else order


def by_answer(ranking: str, order: Sequence[int]) -> str:
    """A ranking of answers in the order shown as one in the item's order. `order`: see `shown_order`."""
    shown = ranking.split(",")
    places = dict(zip(order, shown, strict=True))
    return ",".join(places[position] for position in range(len(shown)))


def by_place(ranking: str, order: Sequence[int]) -> str:
    """The inverse of `by_answer`."""
    places = ranking.split(",")
    return ",".join(places[position] for position in order)


def tiers(ranking: str, names: Sequence[str]) -> list[list[str]]:
    """The names of the answers, best first; tied ones together. There may be more names than answers."""
    places = places_of(ranking)
    return [
        [name for name, place in zip(names, places, strict=False) if place == tier]
        for tier in sorted(set(places))
    ]


def distance(a: str, b: str) -> float:
    """The share of pairs on which two rankings differ, 0…1; a tie against a preference counts half.

    Source: Kendall's distance with penalty ½ (Fagin et al., SIAM Journal on Discrete Mathematics 20(3), 2006)."""
    sides = zip(pairs_of(a), pairs_of(b), strict=True)
    apart = [abs(_STEPS[first] - _STEPS[second]) / 2 for (*_, first), (*_, second) in sides]
    return sum(apart) / len(apart)


_STEPS = {A_BETTER: 1, TIE: 0, B_BETTER: -1}
