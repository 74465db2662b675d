"""Draws what people rate: a sample with known probabilities, as needed to correct judges' scores, the pairs of answers
to compare, and the side shown first. Seeded, so reproducible."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

Pair = tuple[int, int]
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn row: its position in the population, its stratum, and the probability with which it was drawn."""

    place: int
    stratum: str
    probability: float


def draw(strata: Sequence[str], size: int | None, seed: int, *, stratified: bool = False) -> list[Drawn]:
    """Draw `size` of the rows with these strata, without replacement, in order; all if `size` is None or too large.

    Stratified: in proportion (largest remainders), at least one of each stratum if `size` allows it; the probability is
    then the share drawn from the stratum.
    """
    whole = len(strata)
    if size is None or size >= whole:
        return [Drawn(place, stratum, 1.0) for place, stratum in enumerate(strata)]
    places: dict[str, list[int]] = {}
    for place, stratum in enumerate(strata):
        places.setdefault(stratum if stratified else "", []).append(place)
    quotas = shares_of({name: len(there) for name, there in places.items()}, size)
    order = random.Random(f"draw:{seed}")
    drawn = [
        Drawn(place, strata[place], quotas[name] / len(there))
        for name, there in sorted(places.items())
        for place in order.sample(there, quotas[name])
    ]
    return sorted(drawn, key=lambda pick: pick.place)


def shares_of(sizes: dict[str, int], size: int) -> dict[str, int]:
    """The number to draw from each stratum: by largest remainders, at least one each if `size` allows it."""
    whole = sum(sizes.values())
    by_size = sorted(sizes, key=lambda name: (-sizes[name], name))
    quotas = {name: size * sizes[name] // whole for name in by_size}
    rest = sorted(by_size, key=lambda name: -(size * sizes[name] % whole))
    for name in rest[: size - sum(quotas.values())]:
        quotas[name] += 1
    for name in [name for name in by_size if not quotas[name]]:
        richest = max(by_size, key=lambda other: quotas[other])
        if quotas[richest] > 1:
            quotas[richest] -= 1
            quotas[name] += 1
    return quotas


def shuffled(count: int, seed: int) -> list[int]:
    """The ranks 0 … count-1 in an order drawn by the seed."""
    ranks = list(range(count))
    random.Random(f"order:{seed}").shuffle(ranks)
    return ranks


def every_pair(there: Sequence[int]) -> list[Pair]:
    """All pairs of the candidates that answered an item, the lower number first."""
    return list(combinations(sorted(set(there)), 2))


def against(baseline: int, there: Sequence[int]) -> list[Pair]:
    """Each candidate paired with the baseline; none if the baseline did not answer."""
    if baseline not in there:
        return []
    return [(candidate, baseline) for candidate in sorted(set(there)) if candidate != baseline]


def balanced(items: Sequence[Sequence[int]], per_item: int, seed: int) -> list[list[Pair]]:
    """At most `per_item` different pairs per item, so that candidates appear equally often.

    `items` holds, per item, the candidates that answered it. Items are processed in an order drawn by the seed; the
    next pair is the one whose candidates were used least so far, then the least used pair. If all candidates answered
    everything, their counts differ by one at most, unless the last item's pairs leave no choice.
    """
    order = random.Random(f"pairs:{seed}")
    used: Counter[int] = Counter()
    pair_counts: Counter[Pair] = Counter()
    dealt: list[list[Pair]] = [[] for _ in items]
    places = list(range(len(items)))
    order.shuffle(places)
    for place in places:
        free = every_pair(items[place])
        order.shuffle(free)
        for _ in range(min(per_item, len(free))):
            pair = min(free, key=lambda pair: _burden(pair, used, pair_counts))
            free.remove(pair)
            used.update(pair)
            pair_counts[pair] += 1
            dealt[place].append(pair)
    return dealt


def _burden(pair: Pair, used: Counter[int], pair_counts: Counter[Pair]) -> tuple[int, int, int]:
    first, other = used[pair[0]], used[pair[1]]
    return max(first, other), first + other, pair_counts[pair]


def first_sides(pairs: Sequence[Name], seed: int) -> list[int]:
    """Which answer of each item the first rater sees on the left, 1 or 2, in an unpredictable order.

    Over the items of the same pair, each side comes first equally often, to within one.
    """
    order = random.Random(f"sides:{seed}")
    places: dict[Name, list[int]] = {}
    for place, pair in enumerate(pairs):
        places.setdefault(pair, []).append(place)
    sides = [0] * len(pairs)
    for alike in places.values():
        start = order.randrange(2)
        dealt = [1 + (start + count) % 2 for count in range(len(alike))]
        order.shuffle(dealt)
        for place, side in zip(alike, dealt, strict=True):
            sides[place] = side
    return sides


def side_for(first: int, earlier: int) -> int:
    """The side for an item's next rater: sides alternate from rater to rater; `earlier`: number of raters before."""
    return 1 + (first - 1 + earlier) % 2
