"""Two answers side by side: win rates, Bradley–Terry ratings, whether the comparisons connect the candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .numeric import Floats, Ints, normal_quantile

MOST_STEPS, SMALL_STEP = 50, 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Comparisons of `size` candidates: `a` and `b` their numbers, `won` 1 where a won, ½ for a tie, 0 where b won,
    `clusters` the row (or its cluster); all of shape (comparisons,)."""

    size: int
    a: Ints
    b: Ints
    won: Floats
    clusters: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Bradley–Terry ratings (candidates,) in natural log-odds, mean zero, and their covariance (candidates,
    candidates); of a model with features also their coefficients and standard errors."""

    ratings: Floats
    covariance: Floats
    coefficients: Floats
    coefficient_errors: Floats


def wins_between(comparisons: Comparisons) -> Floats:
    """How often each candidate beat each other, a tie half to each: (candidates, candidates)."""
    wins = np.zeros((comparisons.size, comparisons.size))
    np.add.at(wins, (comparisons.a, comparisons.b), comparisons.won)
    np.add.at(wins, (comparisons.b, comparisons.a), 1 - comparisons.won)
    return wins


def is_connected(comparisons: Comparisons) -> bool:
    """Whether comparisons lead from every candidate to every other one, whoever won."""
    return _all_reached((wins_between(comparisons) + wins_between(comparisons).T) > 0)


def has_ratings(comparisons: Comparisons) -> bool:
    """Whether Bradley–Terry ratings exist: wins or ties lead from every candidate to every other one. Then nobody, and
    no group of candidates, won or lost all against the rest. Source: Ford, American Mathematical Monthly 64(8), 1957.
    """
    wins = wins_between(comparisons) > 0
    return _all_reached(wins) and _all_reached(wins.T)


def _all_reached(leads: np.ndarray) -> bool:
    reached = np.zeros(len(leads), dtype=bool)
    reached[:1] = True
    for _ in range(len(leads)):
        reached = reached | leads[reached].any(axis=0)
    return bool(reached.all())


def bradley_terry(comparisons: Comparisons, features: Floats | None = None) -> Ratings | None:
    """`log(p / (1 - p)) = rating_a - rating_b (+ features @ coefficients)`, by maximum likelihood (Newton's method).

    `features`: (comparisons, features), a's minus b's. The covariance is the sandwich `H⁺ (sum_g s_g s_gᵀ) H⁺ G/(G−1)`
    with the scores s_g summed over the comparisons of a cluster. Independent clusters are assumed. None where the
    ratings do not exist. Source: Bradley and Terry, Biometrika 39, 1952; a tie half to each as in Chatbot Arena;
    Huber 1967, White 1982 for the sandwich.
    """
    if comparisons.size < 2 or not has_ratings(comparisons):
        return None
    design = candidate_design(comparisons)
    if features is not None:
        design = np.hstack([design, features])
    found = _fitted(design, comparisons.won, comparisons.size)
    if found is None:
        return None
    parameters, information = found
    scores = design * (comparisons.won - _chance(design @ parameters))[:, None]
    covariance = _sandwich(information, scores, comparisons.clusters)
    size = comparisons.size
    return Ratings(
        parameters[:size],
        covariance[:size, :size],
        parameters[size:],
        np.sqrt(np.diag(covariance)[size:]),
    )


def candidate_design(comparisons: Comparisons) -> Floats:
    """1 for a, −1 for b: (comparisons, candidates)."""
    many = np.arange(comparisons.a.size)
    design = np.zeros((many.size, comparisons.size))
    np.add.at(design, (many, comparisons.a), 1.0)
    np.add.at(design, (many, comparisons.b), -1.0)
    return design


def _chance(odds: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return chances


def _fitted(design: Floats, won: Floats, size: int) -> tuple[Floats, Floats] | None:
    """The parameters and their information; the sum of the ratings is held at zero by what is added to it."""
    held = np.zeros((design.shape[1], design.shape[1]))
    held[:size, :size] = 1.0
    parameters = np.zeros(design.shape[1])
    for _ in range(MOST_STEPS):
        chances = _chance(design @ parameters)
        information = (design * (chances * (1 - chances))[:, None]).T @ design
        try:
            step = np.linalg.solve(information + held, design.T @ (won - chances))
        except np.linalg.LinAlgError:
            return None
        largest = float(np.abs(step).max())
        if not np.isfinite(largest):
            return None
        parameters = parameters + step * min(1.0, 5.0 / max(largest, 1e-300))
        if largest < SMALL_STEP:
            return parameters, information
    return None


def _sandwich(information: Floats, scores: Floats, clusters: Ints) -> Floats:
    _, member = np.unique(clusters, return_inverse=True)
    count = int(member.max()) + 1
    sums = np.zeros((count, scores.shape[1]))
    np.add.at(sums, member, scores)
    inverse = np.linalg.pinv(information, hermitian=True)
    covariance: Floats = inverse @ (sums.T @ sums) @ inverse * (count / (count - 1) if count > 1 else np.nan)
    return covariance


def rank_intervals(found: Ratings, level: float = 0.95) -> list[tuple[int, int]]:
    """The places (1 is best) that each candidate may have: 1 + how many are surely better, and the number of candidates
    less how many are surely worse. Sure: the interval of the two ratings' difference lies on one side of zero."""
    ratings, covariance = found.ratings, found.covariance
    variances = np.diag(covariance)
    errors = np.sqrt(np.maximum(variances[:, None] + variances[None, :] - 2 * covariance, 0.0))
    ahead = (
        ratings[None, :] - ratings[:, None] > normal_quantile(0.5 + level / 2) * errors
    )  # [i, j]: j ahead of i
    np.fill_diagonal(ahead, False)
    size = ratings.size
    return [(1 + int(ahead[i].sum()), size - int(ahead[:, i].sum())) for i in range(size)]
