"""A candidate's mean from people's labels on a sample that the program drew and a judge's scores of all answers.

The estimator follows the draw: at random; a fixed number from each stratum; each answer by itself with a probability of
its own. In all of them y is a person's value, f the judge's on the same answer, n answers are labelled, N only judged,
and λ (0…1) is the weight of the judge's scores. Variances are over rows where rows hold several answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .intervals import Ends, mean_interval, wilson
from .numeric import UPPER, Bools, Floats, Ints, finite, quiet, t_quantile

Draw = Literal["even", "strata", "own"]
FEWEST_ROWS = 20
NOT_RANDOM, TOO_FEW, UNRATED_STRATUM = "not_random", "too_few", "unrated_stratum"


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """All answers of a candidate that the judge scored: arrays of shape (answers,).

    `judge`: its scores; `people`: people's values, NaN if there is none; `drawn_with`: the probability with which the
    answer was drawn (NaN: not drawn at random), only read where it has a label; `units`: its row, or its row's cluster;
    `rows`; `strata`: the numbers of the strata of the draw, from 0, None if it had none. `passes`: the values are pass
    (1) or fail (0).
    """

    judge: Floats
    people: Floats
    drawn_with: Floats
    units: Ints
    rows: Ints
    strata: Ints | None = None
    passes: bool = False

    @property
    def has_label(self) -> Bools:
        return ~np.isnan(self.people)

    @property
    def chances(self) -> Floats:
        return self.drawn_with[self.has_label]

    @property
    def draw(self) -> Draw:
        if self.strata is not None and np.unique(self.strata).size > 1:
            return "strata"
        return "even" if np.allclose(self.chances, self.chances[0], rtol=1e-9, atol=0.0) else "own"

    def stratum(self, number: int) -> Labelled:
        """Its answers, as an even draw. Call only where there are strata."""
        here = self.strata == number
        return Labelled(
            self.judge[here],
            self.people[here],
            self.drawn_with[here],
            self.units[here],
            self.rows[here],
            passes=self.passes,
        )


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected mean with standard error and interval, λ, and how many more labels would halve the interval.

    `halve` is None where labels for all answers would not.
    """

    value: float
    se: float
    low: float | None
    high: float | None
    weight: float
    halve: int | None


def why_refused(answers: Labelled) -> str | None:
    """A code of `document.REFUSED` if the labels cannot correct the judge, otherwise None."""
    chances = answers.chances
    if np.isnan(chances).any() or (chances <= 0).any() or (chances > 1).any():
        return NOT_RANDOM
    if np.unique(answers.rows[answers.has_label]).size < FEWEST_ROWS:
        return TOO_FEW
    if answers.draw == "strata" and answers.strata is not None:
        rated = np.bincount(
            answers.strata, weights=answers.has_label, minlength=int(answers.strata.max()) + 1
        )
        if (rated[np.unique(answers.strata)] == 0).any():
            return UNRATED_STRATUM
    return None


def correct(answers: Labelled, ends: Ends | None) -> Correction:
    """The corrected mean, by the estimator of the draw. `ends`: of the scale. Call only if it is not refused."""
    with quiet():
        if answers.draw == "strata":
            return _passes_by_strata(answers) if answers.passes else _by_strata(answers, ends)
        return _by_own_chances(answers, ends) if answers.draw == "own" else _evenly_drawn(answers, ends)


@dataclass(frozen=True, slots=True)
class Estimated:
    """A corrected mean, its squared standard error, and λ."""

    value: float
    variance: float
    weight: float

    @property
    def se(self) -> float:
        return math.sqrt(self.variance)


def prediction_powered(answers: Labelled) -> Estimated:
    """`λ mean_N(f) + mean_n(y − λ f)`, `se² = λ² var_N(f) / N + var_n(y − λ f) / n`.

    In score units. Assumes that the n are a simple random sample. Source: Angelopoulos, Duchi and Zrnic, "PPI++", 2023;
    the same estimator as `ppi_py.ppi_mean_ci` (0.2.3).
    """
    has_label = answers.has_label
    y, f, rest = answers.people[has_label], answers.judge[has_label], answers.judge[~has_label]
    weight = judge_weight(y, f, rest)
    rectified = y - weight * f
    value, variance = float(rectified.mean()), _variance_of_mean(rectified, answers.units[has_label])
    if rest.size:
        value += weight * float(rest.mean())
        variance += weight**2 * _variance_of_mean(rest, answers.units[~has_label])
    return Estimated(value, variance, weight)


def judge_weight(y: Floats, f: Floats, rest: Floats) -> float:
    """`λ = cov(y, f) / ((1 + n/N) var(f))`, cut to 0…1; 0 without unlabelled answers.

    cov over the n, divided by n; var over all n + N, divided by n + N − 1. Source: PPI++, the closed form for the mean.
    """
    spread = float(np.concatenate([f, rest]).var(ddof=1)) if f.size + rest.size > 1 else 0.0
    if not rest.size or not spread > 0:
        return 0.0
    together = float(np.cov(y, f, ddof=0)[0, 1])
    return float(np.clip(together / ((1 + y.size / rest.size) * spread), 0.0, 1.0))


def _variance_of_mean(values: Floats, units: Ints) -> float:
    """`sum_g (sum_{i in g} (x_i − mean))² / n²`, which is `var(x) / n` where each unit has one value."""
    member = np.unique(units, return_inverse=True)[1]
    sums = np.bincount(member, weights=values - values.mean())
    return float(np.sum(sums**2)) / values.size**2


def _evenly_drawn(answers: Labelled, ends: Ends | None) -> Correction:
    estimate = prediction_powered(answers)
    labelled = answers.has_label.sum()
    halve = _labels_to_halve(_spread_of(answers), int(labelled), answers.judge.size)
    return _with_interval(estimate, ends, np.unique(answers.units[answers.has_label]).size, halve)


def _with_interval(estimate: Estimated, ends: Ends | None, units: float, halve: int | None) -> Correction:
    low, high = mean_interval(estimate.value, estimate.se, units, ends)
    return Correction(estimate.value, estimate.se, low, high, estimate.weight, halve)


def _strata_of(answers: Labelled) -> list[tuple[float, Labelled]]:
    """Each stratum with its share of all answers."""
    numbers = [] if answers.strata is None else np.unique(answers.strata).tolist()
    parts = [answers.stratum(number) for number in numbers]
    return [(part.judge.size / answers.judge.size, part) for part in parts]


def _by_strata(answers: Labelled, ends: Ends | None) -> Correction:
    """`sum_h W_h v_h`: `prediction_powered` in each stratum, weighted by the stratum's share W_h of all answers.

    `se² = sum_h W_h² se_h² + sum_h W_h (v_h − v)² / (n + N)`: the second term because the answers, and so the strata's
    shares, are a sample themselves. λ: the mean of theirs. Assumes that a fixed number of answers was drawn from each
    stratum. Source: Fisch et al., "Stratified Prediction-Powered Inference", 2024; Cochran, Sampling Techniques, 1977,
    chapter 12, for the second term.
    """
    parts = [(share, prediction_powered(part)) for share, part in _strata_of(answers)]
    value = sum(share * part.value for share, part in parts)
    between = _between([(share, part.value) for share, part in parts], answers)
    estimate = Estimated(
        value,
        sum(share**2 * part.variance for share, part in parts) + between,
        sum(share * part.weight for share, part in parts),
    )
    halve = _halved_by_strata(answers, between)
    return _with_interval(estimate, ends, np.unique(answers.units[answers.has_label]).size, halve)


def _between(means: Sequence[tuple[float, float]], answers: Labelled) -> float:
    """`sum_h W_h (m_h − m)² / (n + N)` for the strata's (W_h, m_h), m being their mean weighted by W_h."""
    mean = sum(share * of_stratum for share, of_stratum in means)
    return sum(share * (of_stratum - mean) ** 2 for share, of_stratum in means) / answers.judge.size


def _passes_by_strata(answers: Labelled) -> Correction:
    """`p = sum_h W_h p_h` with the shares p_h of people's passes in the strata, and W_h the stratum's share of answers.

    The interval is `p − sqrt(sum_h W_h² (p_h − l_h)² + e)` … `p + sqrt(sum_h W_h² (u_h − p_h)² + e)`, l_h and u_h being
    Wilson's with Student's t for n − strata degrees of freedom, and `e = t² sum_h W_h (p_h − p)² / (n + N)`. The judge
    counts only through the strata, so λ is 0. Source: Yan and Su, Statistics in Biopharmaceutical Research 2(3), 2010,
    for the stratified Wilson interval.
    """
    parts = _strata_of(answers)
    labels = [part.people[part.has_label] for _share, part in parts]
    rates, shares = [float(y.mean()) for y in labels], [share for share, _part in parts]
    n = sum(y.size for y in labels)
    p = sum(share * rate for share, rate in zip(shares, rates, strict=True))
    between = _between(list(zip(shares, rates, strict=True)), answers)
    t = t_quantile(UPPER, max(1, n - len(parts)))
    ends = [wilson(rate, y.size, t) for rate, y in zip(rates, labels, strict=True)]
    by_stratum = list(zip(shares, rates, ends, strict=True))
    down = sum(share**2 * (rate - low) ** 2 for share, rate, (low, _high) in by_stratum)
    up = sum(share**2 * (high - rate) ** 2 for share, rate, (_low, high) in by_stratum)
    variance = between + sum(
        share**2 * rate * (1 - rate) / y.size for share, rate, y in zip(shares, rates, labels, strict=True)
    )
    low, high = p - math.sqrt(down + t * t * between), p + math.sqrt(up + t * t * between)
    return Correction(p, math.sqrt(variance), low, high, 0.0, _halved_by_strata(answers, between))


def _by_own_chances(answers: Labelled, ends: Ends | None) -> Correction:
    """`λ mean(f) + sum w r` with `r = y − λ f`, weights w = 1/π normed to one and f over all n + N answers.

    `se² = n/(n − 1) sum w² (1 − π) (r − r̄)² + sum w (y − ȳ)² / (n + N)`, r̄ and ȳ being means weighted by w. Assumes
    that each answer was drawn by itself with its probability π. Source: Hájek 1971; Zrnic and Candès, "Active
    Statistical Inference", 2024.
    """
    has_label = answers.has_label
    y, f, chances = answers.people[has_label], answers.judge[has_label], answers.chances
    weight = _own_weight(answers)
    shares = 1 / chances / np.sum(1 / chances)
    rectified = y - weight * f
    centred = rectified - shares @ rectified
    sampled = y.size / (y.size - 1) * float(np.sum(shares**2 * (1 - chances) * centred**2))
    population = float(shares @ (y - shares @ y) ** 2) / answers.judge.size
    value = weight * float(answers.judge.mean()) + float(shares @ rectified)
    halve = _labels_to_halve(
        lambda labels: sampled * y.size / labels + population, y.size, answers.judge.size
    )
    estimate = Estimated(value, sampled + population, weight)
    return _with_interval(estimate, ends, 1 / float(np.sum(shares**2)), halve)


def _own_weight(answers: Labelled) -> float:
    has_label = answers.has_label
    return judge_weight(answers.people[has_label], answers.judge[has_label], answers.judge[~has_label])


def _spread_of(answers: Labelled) -> Callable[[float], float]:
    """The squared standard error with so many labels: `(var(y) - N/(n + N) cov(y, f)² / var(f)) / n`.

    At the optimal λ, with n + N fixed. Source: PPI++, the variance at its λ.
    """
    has_label, pool = answers.has_label, answers.judge.size
    y, f = answers.people[has_label], answers.judge[has_label]
    spread, variance = float(answers.judge.var()), float(y.var())
    together = max(0.0, float(np.cov(y, f, ddof=0)[0, 1])) if y.size else 0.0
    explained = together**2 / spread if spread > 0 else 0.0

    def spread_of(labels: float) -> float:
        rest = max(0.0, 1 - labels / pool)
        return max(variance - rest * explained, variance * 1e-9) / labels

    return spread_of


def _halved_by_strata(answers: Labelled, between: float) -> int | None:
    """For strata that get more labels in proportion to those that they have."""
    parts = [
        (share, int(part.has_label.sum()), _spread_of(part), part) for share, part in _strata_of(answers)
    ]
    labelled = int(answers.has_label.sum())

    def spread_of(labels: float) -> float:
        more = labels / labelled
        total = between
        for share, count, spread, part in parts:
            y = part.people[part.has_label]
            total += share**2 * (float(y.var()) / (more * count) if answers.passes else spread(more * count))
        return total

    return _labels_to_halve(spread_of, labelled, answers.judge.size)


def _labels_to_halve(spread_of: Callable[[float], float], labelled: int, pool: int) -> int | None:
    """How many more labels make the squared error at most a quarter; None if labels for all answers would not."""
    now = spread_of(labelled)
    wanted = now / 4
    if not 0 < now < math.inf or finite(wanted) is None or spread_of(pool) > wanted:
        return None
    low, high = labelled, pool
    while low < high:
        middle = (low + high) // 2
        if spread_of(middle) <= wanted:
            high = middle
        else:
            low = middle + 1
    return low - labelled


# --- as sums over rows ---------------------------------------------------------------------------------------------

TERMS = 5
"""Of a stratum: judge's values and their number, people's part and its weights, and the number of all answers."""


def terms_of(answers: Labelled) -> Floats:
    """What each answer adds to the sums that make up the corrected mean: (answers, strata · TERMS).

    The estimator is that of `correct`; λ is held as all answers give it. Call only if it is not refused.
    """
    if answers.draw == "own":
        return _terms(answers, _own_weight(answers), 1 / answers.drawn_with, over_all=True)
    if answers.strata is None or answers.draw == "even":
        return _terms(answers, prediction_powered(answers).weight, np.ones(answers.judge.size))
    terms = []
    for number in np.unique(answers.strata).tolist():
        part, here = answers.stratum(number), answers.strata == number
        weight = 0.0 if answers.passes else prediction_powered(part).weight
        of_stratum = np.zeros((answers.judge.size, TERMS))
        of_stratum[here] = _terms(part, weight, np.ones(part.judge.size))
        terms.append(of_stratum)
    return np.hstack(terms)


def _terms(answers: Labelled, weight: float, shares: Floats, *, over_all: bool = False) -> Floats:
    """`weight`: λ; `shares` (answers,): the weights of labels; `over_all`: whether the judge's values of labelled
    answers count beside the others'."""
    has_label = answers.has_label
    judged = np.ones(has_label.size, dtype=np.bool_) if over_all else ~has_label
    rectified = np.where(has_label, (answers.people - weight * answers.judge) * shares, 0.0)
    counts = judged * 1.0, np.where(has_label, shares, 0.0), np.ones(has_label.size)
    return np.column_stack(
        [np.where(judged, weight * answers.judge, 0.0), counts[0], rectified, counts[1], counts[2]]
    )


def mean_of_terms(totals: Floats) -> Floats:
    """The corrected means of sums of `terms_of` (…, strata · TERMS): (…,), NaN without a label.

    `sum_h C_h (A_h / a_h + B_h / b_h) / sum_h C_h` over the strata h in which there are labels.
    """
    by_stratum = totals.reshape(*totals.shape[:-1], -1, TERMS)
    judge, judged, people, rated, answers = np.moveaxis(by_stratum, -1, 0)
    with quiet():
        means = np.where(judged > 0, judge / judged, 0.0) + people / rated
        counts = np.where(rated > 0, answers, 0.0)
        total = np.where(rated > 0, means * counts, 0.0).sum(axis=-1)
        return np.asarray(total / counts.sum(axis=-1), dtype=np.float64)
