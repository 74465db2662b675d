"""Whether candidates stand in another order once a rater's deviation from the others is taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

Rating = tuple[int, int, float]
"""Rater, candidate, value."""


def order_changes(ratings: Sequence[Rating], deviations: Mapping[int, float]) -> dict[int, bool]:
    """{rater: whether the order of candidates by mean changes when the rater's deviation is subtracted from each of
    their values}, each rater alone. Two candidates change order if the sign of their difference does; means within
    1e-9 are equal."""
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    own: dict[tuple[int, int], int] = {}
    for rater, candidate, value in ratings:
        sums[candidate] = sums.get(candidate, 0.0) + value
        counts[candidate] = counts.get(candidate, 0) + 1
        own[rater, candidate] = own.get((rater, candidate), 0) + 1
    means = {candidate: sums[candidate] / counts[candidate] for candidate in sums}
    changes = {}
    for rater, deviation in deviations.items():
        without = {
            candidate: mean - deviation * own.get((rater, candidate), 0) / counts[candidate]
            for candidate, mean in means.items()
        }
        changes[rater] = any(
            _sign(means[a] - means[b]) != _sign(without[a] - without[b]) for a, b in combinations(means, 2)
        )
    return changes


def _sign(difference: float) -> int:
    return 0 if abs(difference) < 1e-9 else 1 if difference > 0 else -1
