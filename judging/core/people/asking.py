"""Which answers to ask people about next: probabilities that grow with a judge's expected error, and the draw by them.

Scores are arrays of shape (answers,), NaN for an answer without a score.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAST = 0.25
"""No probability is below this share of their mean."""
NEAREST = 20
FEWEST_LEARNT = 30
"""Ratings from which the judge's errors are learnt rather than assumed."""
_USUAL, _BY_SPREAD, _BY_DISTANCE = 0.05, 1.0, 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Doubts:
    """Signs that a judge may be wrong, each (answers,), in score units: `spread`, the standard deviation of its
    verdicts on the answer, by repeats and judges; `distance`, of its score from what similar answers got."""

    spread: Floats
    distance: Floats


def distances(scores: Floats, candidates: Ints, rows: Ints, lengths: Ints) -> Floats:
    """How far each score is from what similar answers got; 0 without a score or a similar answer: (answers,).

    Similar are the other answers to the same row, after the candidates' means are taken off, and the candidate's
    `NEAREST` answers in length; the expected score is the mean of the two as far as they exist.
    """
    scored = np.isfinite(scores)
    result = np.zeros(scores.size)
    if not scored.any():
        return result
    f, of, row = scores[scored], np.unique(candidates[scored], return_inverse=True)[1], rows[scored]
    means = np.bincount(of, weights=f) / np.bincount(of)
    by_row = _others_in_row(f - means[of], row) + means[of]
    by_length = _nearest_in_length(f, of, lengths[scored])
    expected = np.nanmean(
        np.vstack([by_row, by_length, np.where(np.isnan(by_row + by_length), f, np.nan)]), axis=0
    )
    result[scored] = np.abs(f - expected)
    return result


def _others_in_row(values: Floats, rows: Ints) -> Floats:
    """The mean of the row's other values; NaN where there is none."""
    member = np.unique(rows, return_inverse=True)[1]
    others = np.bincount(member)[member] - 1
    sums = np.bincount(member, weights=values)[member] - values
    nothing = np.full(values.size, np.nan)
    return np.asarray(np.divide(sums, others, out=nothing, where=others > 0), dtype=np.float64)


def _nearest_in_length(scores: Floats, candidates: Ints, lengths: Ints) -> Floats:
    """The mean score of the candidate's nearest answers by rank of length; NaN where it has no other."""
    expected = np.full(scores.size, np.nan)
    for candidate in np.unique(candidates):
        mine = np.flatnonzero(candidates == candidate)
        order = mine[np.lexsort((mine, lengths[mine]))]
        count, half = order.size, NEAREST // 2
        if count < 2:
            continue
        sums = np.concatenate([[0.0], np.cumsum(scores[order])])
        low = np.clip(np.arange(count) - half, 0, max(0, count - NEAREST - 1))
        high = np.minimum(low + NEAREST + 1, count)
        expected[order] = (sums[high] - sums[low] - scores[order]) / (high - low - 1)
    return expected


def assumed_errors(doubts: Doubts, width: float) -> Floats:
    """The expected squared error before anybody rated: (answers,). `width`: of the scale, in score units."""
    return _USUAL * width**2 + _BY_SPREAD * doubts.spread**2 + _BY_DISTANCE * doubts.distance**2


def learnt_errors(doubts: Doubts, width: float, squared: Floats) -> Floats | None:
    """The expected squared error from those known, `squared` (answers,), NaN where not rated; None for too few.

    `a width² + b spread² + c distance²`, not negative, by non-negative least squares; where nothing explains the
    errors, a constant.
    """
    from scipy.optimize import nnls  # imported here: most processes do not need it

    rated = np.isfinite(squared)
    if rated.sum() < FEWEST_LEARNT or not np.nansum(squared) > 0:
        return None
    terms = np.column_stack([np.full(squared.size, width**2), doubts.spread**2, doubts.distance**2])
    weights, _residual = nnls(terms[rated], squared[rated])
    errors = np.asarray(terms @ weights, dtype=np.float64)
    return errors if errors.mean() > 0 else np.full(squared.size, float(squared[rated].mean()))


def probabilities(errors: Floats, size: float) -> Floats:
    """With which probability each answer is drawn, so that `size` are expected: (answers,), in 0…1.

    In proportion to the square root of the expected squared error, which makes the variance of the corrected mean
    least for independent draws; none below `LEAST` times their mean. Source: Zrnic and Candès, "Active Statistical
    Inference", 2024, section 3.
    """
    count = errors.size
    if not count or size >= count:
        return np.ones(count)
    if size <= 0:
        return np.zeros(count)
    doubt = np.sqrt(np.maximum(errors, 0.0))
    doubt = doubt / doubt.mean() if doubt.mean() > 0 else np.ones(count)
    while doubt.min() < LEAST * doubt.mean() * (1 - 1e-9):  # each round moves the mean a quarter as much
        doubt = np.maximum(doubt, LEAST * doubt.mean())
    chances = doubt * (size / doubt.sum())
    while (chances > 1).any():
        capped = chances >= 1
        rest = chances[~capped].sum()
        if not rest > 0:
            break
        chances = np.where(capped, 1.0, chances * (size - capped.sum()) / rest)
    return np.asarray(np.minimum(chances, 1.0), dtype=np.float64)


def poisson_draw(chances: Floats, seed: int) -> Ints:
    """The places of the drawn answers, each drawn by itself with its own probability, in random order.

    `numpy.random.choice(replace=False, p=…)` would not have the probabilities that it is given.
    """
    order = random.Random(f"ask:{seed}")
    drawn = [place for place, chance in enumerate(chances.tolist()) if order.random() < chance]
    order.shuffle(drawn)
    return np.array(drawn, dtype=np.int64)
