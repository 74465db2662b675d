"""How far two judges put the same items in the same order: Pearson, Spearman, Kendall. None where one never varies."""

from __future__ import annotations

import numpy as np

from .agreement import contingency
from .numeric import Floats, finite, same

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
        from scipy.stats import kendalltau

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
