"""Rates of bools and shares of categories, with Wilson's interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .means import Estimate, estimate_mean, item_means, item_units
from .numeric import normal_quantile

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate in 0…1 with its interval, over `items` items and `responses` responses, `count` of them true."""

    rate: float | None
    se: float | None
    low: float | None
    high: float | None
    count: int
    responses: int
    items: int
    clusters: int


def wilson(rate: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """`(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)`: the interval of a rate over n > 0 trials.

    Stays inside 0…1 and has a width where all trials agree. Assumes independent trials; `n` need not be
    whole. Source: Wilson 1927; recommended by Brown, Cai and DasGupta, Statistical Science 16(2), 2001.
    """
    z = normal_quantile(0.5 + level / 2)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    centre = rate + z * z / (2 * n)
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    return (0.0 if rate == 0 else max(0.0, low)), (1.0 if rate == 1 else min(1.0, high))


def effective_size(estimate: Estimate, responses: int) -> float:
    """How many independent trials a rate is worth: `1 + p (1 - p) / se²`, at most `responses`.

    With one response an item and no clusters that is n itself. Where nothing varies the design effect can't
    be seen; then only the independent units count. Source: Franco, Little, Louis and Slud, Journal of
    Survey Statistics and Methodology 7(3), 2019 (Wilson's interval with the effective sample size).
    """
    rate = estimate.mean or 0.0
    if estimate.se is None or not 0 < rate < 1:
        return float(estimate.clusters)
    if estimate.se == 0:
        return float(responses)
    return float(min(1 + rate * (1 - rate) / estimate.se**2, responses))


def estimate_rate(judgements: DataFrame, level: float = 0.95) -> Rate:
    """The rate of true in one cell, the item's rate first, with Wilson's interval on the effective size.

    `value` is 1 where true, else 0.
    """
    mean = estimate_mean(np.asarray(item_means(judgements), dtype=np.float64), item_units(judgements), level)
    low = high = None
    responses = len(judgements)
    if mean.mean is not None:
        low, high = wilson(mean.mean, effective_size(mean, responses), level)
    count = int(judgements["value"].sum())
    return Rate(mean.mean, mean.se, low, high, count, responses, mean.items, mean.clusters)
