"""Draws the sample for human rating with known probabilities, as needed to correct judges' scores."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


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
    return sorted(drawn, key=lambda one: one.place)


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
