"""Means over items: standard error, interval, clusters, and what the unscored could change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .numeric import Floats, Ints, finite, quiet, same, t_quantile

if TYPE_CHECKING:
    from pandas import DataFrame, Series


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


def item_means(judgements: DataFrame) -> Series[float]:
    """The mean `value` of each item's responses (mean@n) in one cell, indexed and sorted by `row`.

    Judgements without a value are left out. Items count alike however many responses they have.
    """
    import pandas as pd

    rows, means = means_by_row(judgements["row"].to_numpy(), judgements["value"].to_numpy(dtype=np.float64))
    return pd.Series(means, index=pd.Index(rows, name="row"))


def means_by_row(rows: Ints, values: Floats) -> tuple[Ints, Floats]:
    """The rows in order (items,) and the mean of each one's values (items,), NaN where it has none."""
    items, place = np.unique(rows, return_inverse=True)
    known = ~np.isnan(values)
    if items.size == rows.size:
        means = np.full(items.size, np.nan)
        means[place] = values
        return items, means
    with quiet():
        sums = np.bincount(place[known], weights=values[known], minlength=items.size)
        many = np.bincount(place[known], minlength=items.size)
        means = np.divide(sums, many, out=np.full(items.size, np.nan), where=many > 0)
    return items, means


def item_units(judgements: DataFrame) -> Ints:
    """The independent unit of each item of one cell, in the order of `item_means`: shape (items,)."""
    _, first = np.unique(judgements["row"].to_numpy(), return_index=True)
    return judgements["unit"].to_numpy()[first]


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
    n = values.size
    units = n if clusters is None else np.unique(clusters).size
    if n == 0:
        return Estimate(None, None, None, None, 0, 0)
    mean = mean_of_items(values)
    se = standard_error(values) if clusters is None else clustered_standard_error(values, clusters)
    if mean is None or se is None:
        return Estimate(mean, se, None, None, n, units)
    reach = t_quantile(0.5 + level / 2, units - 1) * se if se else 0.0
    return Estimate(mean, se, finite(mean - reach), finite(mean + reach), n, units)


def mean_if_all_got(judgements: DataFrame, fill: float) -> float | None:
    """The mean over items if every judgement without a value had got the score `fill`.

    The item's mean is taken first, and an item without any scored response counts. With the scale's ends as `fill`
    these are the worst-case bounds of Manski, "Partial Identification", 2003. None for no judgement.
    """
    values = judgements["value"].to_numpy(dtype=np.float64)
    filled = np.where(np.isnan(values), fill, values)
    return mean_of_items(means_by_row(judgements["row"].to_numpy(), filled)[1])


def mean_of_items(values: Floats) -> float | None:
    """Their mean: exactly the value where all are equal; None for no item and where it is not finite."""
    if not values.size:
        return None
    with quiet():
        return finite(values[0] if same(values) else values.mean())
