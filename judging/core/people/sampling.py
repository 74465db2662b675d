"""The sample that people see, drawn with a known probability: what a correction of judges' scores rests on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn row: its place in what it was drawn from, its stratum, and the probability with which it was drawn."""

    place: int
    stratum: str
    probability: float


def draw(strata: Sequence[str], size: int | None, seed: int, *, stratified: bool = False) -> list[Drawn]:
    """`size` of the rows whose strata are given, without replacement, in their order; None or too many: all.

    Stratified: in proportion (largest remainders), at least one of each stratum while `size` allows it; the
    probability is then the stratum's own share drawn.
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
    """How many of each stratum: in proportion by largest remainders, one at least of each as far as `size` goes."""
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
    """The ranks 0 … count-1 in the order drawn by the seed."""
    ranks = list(range(count))
    random.Random(f"order:{seed}").shuffle(ranks)
    return ranks
