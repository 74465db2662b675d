"""How far raters agree beyond chance. Each takes units × raters; a missing rating is NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from .numeric import Floats

Level = Literal["nominal", "ordinal", "interval", "ratio"]


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
    return 1.0 - float((observed * distance).sum()) * float(total - 1) / wanted


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
