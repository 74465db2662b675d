"""The bootstrap: rows drawn again and again with replacement, all draws at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .numeric import Floats, Ints, finite

DRAWS = 1000
MOST_UNITS = 1000
"""More units than this are put at random into so many groups, which are drawn whole: the spread stays the same."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Seeded draws; the same seed and the same clusters give the same ones."""

    seed: int = 0
    count: int = DRAWS

    def of(self, clusters: Ints) -> tuple[Floats, Ints]:
        """How often each unit is drawn, (draws, units), and which unit each item belongs to, (items,).

        `clusters` (items,): what stays together. Source: Efron and Tibshirani, "An Introduction to the Bootstrap",
        1993; the random groups of many units: Wolter, "Introduction to Variance Estimation", 2007, chapter 2.
        """
        rng = np.random.default_rng(self.seed)
        _, member = np.unique(clusters, return_inverse=True)
        units = int(member.max()) + 1 if member.size else 0
        if units > MOST_UNITS:
            groups = rng.permutation(units) % MOST_UNITS
            member, units = groups[member], MOST_UNITS
        drawn = rng.integers(units, size=(self.count, units)) + units * np.arange(self.count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=self.count * units)
        return counts.reshape(self.count, units).astype(np.float64), member.astype(np.int64)


def percentiles(values: Floats, level: float = 0.95) -> tuple[float | None, float | None]:
    """The percentile interval of a bootstrap's values (draws,); None where half of the draws gave none."""
    known = values[np.isfinite(values)]
    if known.size < max(2, values.size / 2):
        return None, None
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return finite(low), finite(high)
