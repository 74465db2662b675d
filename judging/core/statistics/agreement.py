"""How far raters agree beyond chance (units × raters, a missing rating is NaN), and put items in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from .numeric import ROUNDING, Draws, Floats, Ints, finite, percentiles, same

Level = Literal["nominal", "ordinal", "interval", "ratio"]

MOST_VALUES = 60  # of a bootstrap of alpha, which holds a square of them for each unit


def krippendorff_alpha(ratings: Floats, level: Level) -> float | None:
    """`1 - D_o / D_e` over the coincidences of values within units; 1 is perfect, 0 is chance, unit-free.

    `ratings` has shape (units, raters) and holds numbers (codes, where nominal), NaN where nobody rated. Units with
    fewer than two ratings say nothing. None where no two can be compared or where nothing varies. Assumes that raters
    are interchangeable. Source: Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011.
    """
    together = coincidences(ratings)
    if together is None:
        return None
    values, observed = together
    marginal = observed.sum(axis=1)
    total = marginal.sum()
    distance = _DISTANCES[level](values, marginal)
    expected = np.outer(marginal, marginal) - np.diag(marginal)
    wanted = float((expected * distance).sum())
    if wanted <= 0:
        return None
    return finite(1.0 - float((observed * distance).sum()) * float(total - 1) / wanted)


def coincidences(ratings: Floats) -> tuple[Floats, Floats] | None:
    """The values (values,) in their order and how often each met each within units (values, values); rows of a unit
    of m ratings are weighted by 1 / (m - 1). None without a unit of two ratings."""
    there = ~np.isnan(ratings)
    ratings = ratings[there.sum(axis=1) >= 2]
    if ratings.size == 0:
        return None
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = np.stack([(ratings == value).sum(axis=1) for value in values], axis=1).astype(float)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    met = (counts * weights[:, None]).T @ counts
    return values, met - np.diag((counts * weights[:, None]).sum(axis=0))


def percent_agreement(ratings: Floats) -> float | None:
    """The share of pairs of raters within units who said the same, 0…1; None where no two rated the same unit.

    `ratings` as above. Not corrected for chance.
    """
    there = ~np.isnan(ratings)
    many = there.sum(axis=1).astype(float)
    pairs = float((many * (many - 1)).sum())
    if not pairs:
        return None
    values = np.unique(ratings[there])
    counts = np.stack([(ratings == value).sum(axis=1) for value in values], axis=1).astype(float)
    return float((counts * (counts - 1)).sum()) / pairs


def _nominal(values: Floats, marginal: Floats) -> Floats:
    distance: Floats = (values[:, None] != values[None, :]).astype(float)
    return distance


def _ordinal(values: Floats, marginal: Floats) -> Floats:
    """Squared: how many ratings lie between two values, each end counted half."""
    middle = np.cumsum(marginal) - marginal / 2
    distance: Floats = (middle[:, None] - middle[None, :]) ** 2
    return distance


def _interval(values: Floats, marginal: Floats) -> Floats:
    distance: Floats = (values[:, None] - values[None, :]) ** 2
    return distance


def _ratio(values: Floats, marginal: Floats) -> Floats:
    summed = values[:, None] + values[None, :]
    apart = values[:, None] - values[None, :]
    share: Floats = np.divide(apart, summed, out=np.zeros_like(apart), where=summed != 0)
    return share**2


_DISTANCES: dict[Level, Callable[[Floats, Floats], Floats]] = {
    "nominal": _nominal,
    "ordinal": _ordinal,
    "interval": _interval,
    "ratio": _ratio,
}


def fleiss_kappa(ratings: Floats) -> float | None:
    """`(P - P_e) / (1 - P_e)` with P the mean agreement of pairs within items, P_e the chance of two agreeing.

    `ratings` (items, raters) as above, taken as labels. None unless every item has the same number of ratings, two
    or more, and where nothing varies. Source: Fleiss, Psychological Bulletin 76(5), 1971.
    """
    counts = _counts(ratings)
    sizes = counts.sum(axis=1)
    if not counts.size or sizes.min() < 2 or sizes.min() != sizes.max():
        return None
    size = sizes[0]
    agreed = float(((counts**2).sum(axis=1) - size).mean() / (size * (size - 1)))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return None if chance >= 1 else float((agreed - chance) / (1 - chance))


def gwet_ac1(ratings: Floats) -> float | None:
    """`(P - P_e) / (1 - P_e)` with `P_e = sum_k pi_k (1 - pi_k) / (q - 1)` over the q labels met.

    `ratings` (items, raters) as above, taken as labels; P is the mean over items of two or more ratings, pi_k the mean
    share of label k over all items. Steady where one label dominates, unlike kappa. None where nothing varies. Source:
    Gwet, British Journal of Mathematical and Statistical Psychology 61(1), 2008.
    """
    counts = _counts(ratings)
    sizes = counts.sum(axis=1)
    counts, sizes = counts[sizes > 0], sizes[sizes > 0]
    several = sizes >= 2
    if not several.any() or counts.shape[1] < 2:
        return None
    pairs = (counts[several] * (counts[several] - 1)).sum(axis=1) / (sizes[several] * (sizes[several] - 1))
    shares = (counts / sizes[:, None]).mean(axis=0)
    chance = float((shares * (1 - shares)).sum()) / (counts.shape[1] - 1)
    return float((pairs.mean() - chance) / (1 - chance))


def _counts(ratings: Floats) -> Floats:
    """How many gave each value, (items, values)."""
    values = np.unique(ratings[~np.isnan(ratings)])
    if not values.size:
        return np.zeros((len(ratings), 0))
    return np.stack([(ratings == value).sum(axis=1) for value in values], axis=1).astype(float)


def cohen_kappa(a: Floats, b: Floats) -> float | None:
    """`(P - P_e) / (1 - P_e)` of two raters on the same items, both of shape (items,), taken as labels.

    None for no item and where both always say the same one thing. Source: Cohen, Educational and Psychological
    Measurement 20(1), 1960.
    """
    if not a.size:
        return None
    _, counts = contingency(a, b)
    shares = counts / counts.sum()
    chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return None if chance >= 1 - ROUNDING else (float(np.trace(shares)) - chance) / (1 - chance)


def quadratic_kappa(a: Floats, b: Floats) -> float | None:
    """`1 - sum (a_i - b_i)² / (sum_ij (a_i - b_j)² / n)`: Cohen's kappa with quadratic weights.

    Both of shape (items,), numbers on one scale; they need not be whole. None for no item and where neither varies
    and both agree. Source: Cohen, Psychological Bulletin 70(4), 1968; Fleiss and Cohen 1973.
    """
    return finite(quadratic_kappas(np.ones((1, a.size)), a, b)[0]) if a.size else None


def quadratic_kappas(weights: Floats, a: Floats, b: Floats) -> Floats:
    """The same for each row of `weights` (draws, items): how often each item counts; NaN where there is none."""
    total = weights.sum(axis=1)
    observed = weights @ (a - b) ** 2
    expected = (weights @ a**2 + weights @ b**2) - 2 * (weights @ a) * (weights @ b) / total
    known = expected > ROUNDING * np.maximum(1.0, weights @ a**2 + weights @ b**2)
    kappas: Floats = np.divide(expected - observed, expected, out=np.full(total.shape, np.nan), where=known)
    return kappas


def contingency(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The values of both in order (values,), and how often a gave one where b gave another (values, values)."""
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.bincount(codes[: a.size] * values.size + codes[a.size :], minlength=values.size**2)
    return values, counts.reshape(values.size, values.size).astype(float)


def alpha_interval(
    ratings: Floats, clusters: Ints, level: Level, draws: Draws
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of `krippendorff_alpha`, whole clusters of units drawn together.

    `ratings` (units, raters), `clusters` (units,). Source: Efron and Tibshirani 1993; resampling units as in
    Zapf et al., BMC Medical Research Methodology 16, 2016.
    """
    kept = (~np.isnan(ratings)).sum(axis=1) >= 2
    ratings, clusters = ratings[kept], clusters[kept]
    values = np.unique(ratings[~np.isnan(ratings)])
    if len(ratings) < 2 or values.size < 2 or values.size > MOST_VALUES:
        return None, None
    counts = _counts(ratings)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    met = counts[:, :, None] * counts[:, None, :] * weights[:, None, None]
    places = np.arange(values.size)
    met[:, places, places] -= counts * weights[:, None]
    drawn, member = draws.of(clusters)
    sums = np.zeros((drawn.shape[1], values.size**2))
    np.add.at(sums, member, met.reshape(len(met), -1))
    observed = (drawn @ sums).reshape(-1, values.size, values.size)
    return percentiles(_alphas(values, observed, level))


def _alphas(values: Floats, observed: Floats, level: Level) -> Floats:
    """Alpha for each coincidence matrix (draws, values, values); NaN where nothing varies."""
    marginal = observed.sum(axis=2)
    total = marginal.sum(axis=1)
    if level == "ordinal":
        middle = np.cumsum(marginal, axis=1) - marginal / 2
        distance = (middle[:, :, None] - middle[:, None, :]) ** 2
    else:
        distance = _DISTANCES[level](values, marginal[0])[None]
    expected = marginal[:, :, None] * marginal[:, None, :]
    wanted = (expected * distance).sum(axis=(1, 2))
    found = (observed * distance).sum(axis=(1, 2)) * (total - 1)
    alphas: Floats = 1.0 - np.divide(found, wanted, out=np.full(total.shape, np.nan), where=wanted > 0)
    return alphas


MOST_VALUES = 200  # of a Kendall's tau by its table; beyond, scipy sorts


def pearson(a: Floats, b: Floats) -> float | None:
    """`sum (a - ā)(b - b̄) / sqrt(sum (a - ā)² sum (b - b̄)²)`, −1…1, both of shape (items,)."""
    if a.size < 2 or same(a) or same(b):
        return None
    x, y = a - a.mean(), b - b.mean()
    return finite(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(a: Floats, b: Floats) -> float | None:
    """Pearson's correlation of the ranks, ties at their mean rank. Source: Spearman 1904."""
    return pearson(mean_ranks(a), mean_ranks(b))


def mean_ranks(values: Floats) -> Floats:
    """Each value's rank from 1, equal ones at the mean of theirs: shape (items,)."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts - 1) / 2)[codes]
    return ranks


def kendall(a: Floats, b: Floats) -> float | None:
    """tau-b: `(C - D) / sqrt((n0 - ties in a)(n0 - ties in b))` over pairs of items. Source: Kendall 1945."""
    if a.size < 2 or same(a) or same(b):
        return None
    if max(np.unique(a).size, np.unique(b).size) > MOST_VALUES:
        from scipy.stats import kendalltau  # here: slow to import

        return finite(kendalltau(a, b).statistic)
    _, counts = contingency(a, b)
    below = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))
    below[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    lower = below[:-1, :-1]  # of items lower in both
    crossed = below[:-1, -1:] - below[:-1, 1:]  # lower in a, higher in b
    concordant, discordant = float((counts * lower).sum()), float((counts * crossed).sum())
    pairs = a.size * (a.size - 1) / 2
    tied = [float((sums * (sums - 1)).sum() / 2) for sums in (counts.sum(axis=1), counts.sum(axis=0))]
    return finite((concordant - discordant) / np.sqrt((pairs - tied[0]) * (pairs - tied[1])))
