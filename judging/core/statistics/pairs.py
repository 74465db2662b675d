"""Two candidates on the items that both have: difference, test, correction, what so many items show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .document import Pair
from .frame import Metric
from .means import Estimate, estimate_mean
from .numeric import LEVEL, POWER, ROUNDING, UPPER, Floats, Ints, normal_quantile, t_quantile, t_two_sided

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TIE = 1e-9  # relative; item means of equal responses may differ by rounding


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of a − b over shared items, its two-sided p, and on how many items a wins, ties, loses."""

    estimate: Estimate
    p: float | None
    wins: int
    ties: int
    losses: int


def metric_pairs(means: DataFrame, units: Series[int], metric: Metric) -> list[Pair]:
    """Every pair of candidates under one metric, by name, Holm-corrected together.

    `means` has a row for each item and a column for each candidate, NaN where it has no mean; `units` are the items'.
    """
    clusters, values = units.to_numpy(), {str(name): means[name].to_numpy() for name in means}
    pairs = []
    for a, b in combinations(sorted(values), 2):
        shared = ~(np.isnan(values[a]) | np.isnan(values[b]))
        difference = paired_difference(values[a][shared], values[b][shared], clusters[shared])
        pairs.append(_pair(a, b, metric, difference))
    for pair, corrected in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = corrected
        pair["distinguishable"] = None if corrected is None else corrected < 1 - LEVEL
    return pairs


def _pair(a: str, b: str, metric: Metric, difference: MeanDifference) -> Pair:
    estimate, wanted = difference.estimate, metric.wanted_difference
    return Pair(
        a=a,
        b=b,
        metric=metric.name,
        items=estimate.items,
        clusters=estimate.clusters,
        difference=estimate.mean,
        se=estimate.se,
        ci_low=estimate.low,
        ci_high=estimate.high,
        p=difference.p,
        p_holm=None,
        distinguishable=None,
        wins=difference.wins,
        ties=difference.ties,
        losses=difference.losses,
        smallest_difference=smallest_difference(estimate),
        wanted_difference=wanted,
        items_needed=items_needed(estimate, wanted) if wanted else None,
    )


def paired_difference(a: Floats, b: Floats, clusters: Ints | None = None) -> MeanDifference:
    """Compares two candidates' item means on the items that both have; all three of shape (shared items,).

    The difference is the mean of a_i − b_i with the (clustered) t interval and t test of `estimate_mean`.
    Ties are differences below rounding. Source: paired t test (Student 1908).
    """
    near = TIE * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    differences = np.where(np.abs(a - b) <= near, 0.0, a - b)
    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    estimate = estimate_mean(differences, clusters)
    return MeanDifference(estimate, p_value(estimate), wins, int(a.size) - wins - losses, losses)


def p_value(estimate: Estimate) -> float | None:
    """Two-sided p of "the mean is 0": t test with clusters − 1 degrees of freedom; None below two units.

    Where every difference is the same there is no t: 1 if that is 0, else the exact sign test `2^(1 - n)`
    over the n independent units, so that two items can't prove anything.
    """
    if estimate.mean is None or estimate.se is None:
        return None
    if estimate.se > 0:
        return t_two_sided(estimate.mean / estimate.se, estimate.clusters - 1)
    return 1.0 if estimate.mean == 0 else 2.0 ** (1 - estimate.clusters)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction, in the order given: `max_{j <= i} min(1, (m - j + 1) p_(j))`.

    None stays None. Holds the family-wise error under any dependence. m counts the tests that could be
    made. Source: Holm 1979.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for done, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - done) * p))
        corrected[place] = largest
    return corrected


def smallest_difference(estimate: Estimate) -> float | None:
    """The smallest true difference that a test on these items finds with a power of 80 %.

    `(t_{1-a/2} + t_power) se`, in score units. Takes the spread seen as the true one; None where there is
    none to see. Source: Bloom, "Minimum Detectable Effects", Evaluation Review 19(5), 1995.
    """
    if not estimate.se:
        return None
    return _reach(estimate.clusters - 1) * estimate.se


def items_needed(estimate: Estimate, wanted: float) -> int | None:
    """How many items of this kind find a true difference of `wanted` (score units, not 0) with a power of 80 %.

    The smallest n with `(t_{1-a/2, df} + t_{power, df})² n0 se² / n <= wanted²`, where df keeps the ratio of
    clusters to items seen. None where no spread is seen.
    """
    if not estimate.se or wanted == 0:
        return None
    variance, per_item = estimate.items * estimate.se**2, estimate.clusters / estimate.items
    normal = normal_quantile(UPPER) + normal_quantile(POWER)
    n = max(math.ceil(2 / per_item), math.ceil(normal**2 * variance / wanted**2))
    enough = wanted**2 * (1 + ROUNDING) / variance
    while _reach(n * per_item - 1) ** 2 / n > enough:
        n += max(1, n // 1000)
    return n


def _reach(df: float) -> float:
    return t_quantile(UPPER, df) + t_quantile(POWER, df)
