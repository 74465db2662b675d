"""Means over items: standard error, interval, clusters, and what the unscored could change."""

from dataclasses import dataclass

import numpy as np

from .arrays import Floats, Ints, finite, group_sizes, group_starts, group_sums, quiet, same
from .quantiles import t_quantile


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how sure it is.

    `se`, `low` and `high` are None where fewer than two independent units (items, or clusters of them) leave
    nothing to estimate a spread from; `mean` is None where there is no item.
    """

    mean: float | None
    se: float | None
    low: float | None
    high: float | None
    items: int
    clusters: int


def item_means(scores: Floats, items: Ints) -> tuple[Floats, Ints]:
    """The mean of each item's responses (mean@n), and the items' ids: shapes (items,), (items,).

    `scores` (responses,) and `items` (responses,) run in parallel, one item's responses side by side. Items
    count alike however many responses they have.
    """
    starts = group_starts(items)
    with quiet():
        means = group_sums(scores, starts) / group_sizes(starts, items.size)
    return means, items[starts]


def standard_error(values: Floats) -> float | None:
    """`sqrt(sum((s_i - mean)^2) / (n (n - 1)))` over items, in the scores' unit; None below two items.

    Assumes independent items. Source: the central limit theorem; Miller, "Adding Error Bars to Evals",
    2024, eq. 1.
    """
    return clustered_standard_error(values, np.arange(values.size))


def clustered_standard_error(values: Floats, clusters: Ints) -> float | None:
    """`sqrt(G / (G - 1) * sum_g (sum_{i in g} (s_i - mean))^2) / n`; None below two clusters.

    In the scores' unit. `values` and `clusters` have shape (items,); items of one cluster may depend on
    each other, clusters may not. With one item in each cluster it is `standard_error`. Source: Liang and
    Zeger 1986; Miller 2024, eq. 4, with the usual correction G / (G - 1) for a small number G of clusters.
    """
    _, member = np.unique(clusters, return_inverse=True)
    count = int(member.max()) + 1 if member.size else 0
    if count < 2:
        return None
    if same(values):
        return 0.0
    with quiet():
        sums = np.bincount(member, weights=values - values.mean())
        return finite(np.sqrt(count / (count - 1) * np.sum(sums**2)) / values.size)


def estimate_mean(values: Floats, clusters: Ints | None = None, level: float = 0.95) -> Estimate:
    """The mean of the items' scores (items,) with its t interval: `mean ± t(level, df) * se`.

    `df` is items - 1, with `clusters` (items,) clusters - 1. Where all values are equal `se` is 0 and the
    interval has no width: the sample shows no spread, which the report says beside it. Not clipped to a
    scale.
    """
    n = int(values.size)
    units = n if clusters is None else int(np.unique(clusters).size)
    if n == 0:
        return Estimate(None, None, None, None, 0, 0)
    with quiet():
        mean = finite(values[0] if same(values) else values.mean())
    se = standard_error(values) if clusters is None else clustered_standard_error(values, clusters)
    if mean is None or se is None:
        return Estimate(mean, se, None, None, n, units)
    reach = t_quantile(0.5 + level / 2, units - 1) * se if se else 0.0
    return Estimate(mean, se, finite(mean - reach), finite(mean + reach), n, units)


def mean_if_all_got(scores: Floats, items: Ints, fill: float) -> float | None:
    """The mean over items if every unscored response (NaN in `scores`) had got the score `fill`.

    Shapes (responses,), (responses,), one item's responses side by side; the item's mean is taken first,
    and an item without any scored response counts. With the scale's ends as `fill` these are the worst-case
    bounds of Manski, "Partial Identification", 2003. None for no response.
    """
    if scores.size == 0:
        return None
    means, _ = item_means(np.where(np.isnan(scores), fill, scores), items)
    with quiet():
        return finite(means[0] if same(means) else means.mean())
