"""Intervals for a mean that hold however often one looks: for ending a run as soon as its answer is known.

The predictable plug-in empirical-Bernstein confidence sequence (Waudby-Smith & Ramdas 2023, "Estimating means of
bounded random variables by betting", JRSS-B 86, theorem 2). With probability 1 - alpha it holds the mean at all times
at once, for independent values within known bounds of any distribution; so stopping when it is narrow is no peeking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LARGEST_BET = 0.5  # λ is cut here, as the paper advises; any number below 1 is valid


@dataclass(frozen=True, slots=True)
class Interval:
    """Of a mean, in the values' own unit."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def mean_so_far(values: Sequence[float], low: float, high: float, alpha: float = 0.05) -> Interval:
    """Where the mean of such values lies, from those so far in the order in which they came: the intersection of the
    intervals after each of them.

    All values must lie within `low` … `high`; raises ValueError otherwise.
    """
    scaled = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    if not scaled.size:
        return Interval(low, high)
    if not (np.all(scaled >= 0) and np.all(scaled <= 1)):
        raise ValueError("a value lies outside its bounds")
    count = np.arange(1, scaled.size + 1)
    means = (0.5 + np.cumsum(scaled)) / (count + 1)
    variances = (0.25 + np.cumsum((scaled - means) ** 2)) / (count + 1)
    # What a bet may know: only what came before.
    means_before = np.concatenate(([0.5], means[:-1]))
    variances_before = np.concatenate(([0.25], variances[:-1]))
    bets = np.minimum(
        np.sqrt(2 * np.log(2 / alpha) / (variances_before * count * np.log(1 + count))), LARGEST_BET
    )
    surprise = 4 * (scaled - means_before) ** 2 * (-np.log1p(-bets) - bets) / 4
    total = np.cumsum(bets)
    centre = np.cumsum(bets * scaled) / total
    margin = (np.log(2 / alpha) + np.cumsum(surprise)) / total
    least = max(0.0, float(np.max(centre - margin)))
    most = min(1.0, float(np.min(centre + margin)))
    if least > most:  # has probability alpha at most
        least = most = (least + most) / 2
    return Interval(low + least * (high - low), low + most * (high - low))
