"""Intervals of means, differences and rates: the formulas, computed again, and their coverage by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.intervals import difference_interval, mean_interval, rate_interval
from judging.core.statistics.means import apart, estimate_difference, estimate_mean

from .cast import cell, figures

ENDS = (1.0, 5.0)
SHARES = [  # of the scores 1…5
    (0.05, 0, 0, 0, 0.95),
    (0.02, 0.02, 0.02, 0.04, 0.90),
    (0.05, 0.05, 0.05, 0.05, 0.80),
    (0.90, 0.04, 0.02, 0.02, 0.02),
    (0.5, 0, 0, 0, 0.5),
    (0.50, 0.25, 0.13, 0.07, 0.05),
    (0.02, 0.03, 0.10, 0.25, 0.60),
    (0.10, 0, 0, 0, 0.90),
]


def wilsons(p, n, z):
    """The two solutions of (p − x)² = z² x (1 − x) / n."""
    a, b, c = 1 + z * z / n, -(2 * p + z * z / n), p * p
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_the_interval_of_a_mean_is_wilsons_over_its_effective_number():
    scores = np.array([2.0, 4, 4, 5, 5, 5, 3])
    m, se = (scores.mean() - 1) / 4, stats.sem(scores) / 4
    g = m * (1 - m) / (se**2 + 1 / 14**2)
    low, high = wilsons(m, g, stats.t.ppf(0.975, 6))
    got = estimate_mean(scores, ends=ENDS)
    assert (got.low, got.high) == pytest.approx((1 + 4 * low, 1 + 4 * high), rel=1e-12)


def test_the_interval_of_a_difference_lies_on_twice_the_scale():
    gaps = np.array([0.0, 1, 0, 2, -1, 0])
    m, se = (gaps.mean() + 4) / 8, stats.sem(gaps) / 8
    low, high = wilsons(m, m * (1 - m) / se**2, stats.t.ppf(0.975, 5))
    got = estimate_difference(gaps, width=4)
    assert (got.low, got.high) == pytest.approx((-4 + 8 * low, -4 + 8 * high), rel=1e-12)


@pytest.mark.parametrize(("score", "units"), [(5.0, 3), (5.0, 40), (1.0, 10)])
def test_a_mean_at_the_end_of_the_scale_counts_its_units(score, units):
    low, high = wilsons((score - 1) / 4, units, stats.t.ppf(0.975, units - 1))
    got = estimate_mean(np.full(units, score), ends=ENDS)
    assert (got.low, got.high) == pytest.approx((1 + 4 * low, 1 + 4 * high))
    assert score in (got.low, got.high)


def test_equal_scores_inside_the_scale_have_an_interval_with_a_width():
    # v = (1 / 20)², g = 0.25 * 400
    low, high = wilsons(0.5, 100, stats.t.ppf(0.975, 9))
    assert mean_interval(3.0, 0.0, 10, ENDS) == pytest.approx((1 + 4 * low, 1 + 4 * high))


def test_equal_differences_count_their_units():
    low, high = wilsons(0.5, 10, stats.t.ppf(0.975, 9))
    assert difference_interval(0.0, 0.0, 10, 4) == pytest.approx((-4 + 8 * low, -4 + 8 * high))


def test_the_effective_number_is_at_least_one():
    half = np.array([1.0, 1.0, 5.0])
    m, se = (half.mean() - 1) / 4, stats.sem(half) / 4
    assert m * (1 - m) / (se**2 + 1 / 36) > 1
    wide = mean_interval(3.0, 4.0, 3, ENDS)  # a standard error as wide as the scale
    assert wide == pytest.approx([1 + 4 * end for end in wilsons(0.5, 1, stats.t.ppf(0.975, 2))])


def test_clusters_are_the_units():
    scores, clusters = np.array([2.0, 2, 4, 4, 5, 5, 3, 3]), np.repeat(range(4), 2)
    once = estimate_mean(scores[::2], ends=ENDS)
    got = estimate_mean(scores, clusters, ENDS)
    assert (got.low, got.high) == pytest.approx((once.low, once.high))


@pytest.mark.parametrize("units", [1, 2])
def test_fewer_than_three_units_have_no_interval(units):
    assert estimate_mean(np.arange(1.0, units + 1), ends=ENDS).low is None
    assert estimate_difference(np.arange(1.0, units + 1), width=4).low is None


def test_without_a_scale_the_interval_is_students():
    scores = np.array([2.0, 4, 4, 5, 9])
    expected = stats.t.interval(0.95, 4, scores.mean(), stats.sem(scores))
    for got in (estimate_mean(scores), estimate_difference(scores)):
        assert (got.low, got.high) == pytest.approx(expected)


def test_without_a_scale_equal_scores_have_no_interval():
    assert mean_interval(3.0, 0.0, 10, None) == (None, None)
    assert "no_variation" in cell([7] * 40, metric=ScaledMetric("m"))["notes"]


def test_a_rate_has_an_interval_from_one_unit_on():
    assert rate_interval(1.0, None, 1, 1) == pytest.approx(wilsons(1, 1, stats.norm.ppf(0.975)))
    assert rate_interval(None, None, 0, 0) == (None, None)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_at_an_end_counts_its_units(rate):
    low, high = wilsons(rate, 6, stats.norm.ppf(0.975))
    assert rate_interval(rate, 0.0, 6, 18) == pytest.approx((low, high))


def test_means_of_different_items_are_held_apart_within_the_scale():
    bottom, top = (estimate_mean(np.full(4, score), ends=ENDS) for score in ENDS)
    gap = apart(top, bottom)
    assert gap.mean == 4
    assert -4 <= gap.low < gap.high == 4


def test_scores_off_the_scale_widen_it():
    got = cell([12, 10, 10, 9])
    assert 10 < got["ci_high"] <= 12


def test_pairs_use_the_width_of_the_scale():
    (pair,) = figures({"a": [5, 6, 9, 10], "b": [4, 6, 9, 9]})["pairs"]
    assert (pair["ci_low"], pair["ci_high"]) == difference_interval(pair["difference"], pair["se"], 4, 9)
    (pair,) = figures({"a": [True, True, False], "b": [False, True, False]})["pairs"]
    assert (pair["ci_low"], pair["ci_high"]) == difference_interval(pair["difference"], pair["se"], 3, 1)


def samples(shares, n, draws=4_000):
    """Draws of n scores: each different (sum, sum of squares), as scores, and how often it was drawn."""
    scores = np.random.default_rng(n).choice(5, (draws, n), p=shares) + 1.0
    sums = np.column_stack([scores.sum(axis=1), (scores**2).sum(axis=1)])
    _, first, counts = np.unique(sums, axis=0, return_index=True, return_counts=True)
    return scores[first], counts


@pytest.mark.parametrize("n", [3, 5, 10, 30, 100])
def test_intervals_cover_the_mean_of_skewed_scores(n):
    for shares in SHARES:
        scores, counts = samples(shares, n)
        truth, errors = np.arange(1, 6) @ shares, stats.sem(scores, axis=1)
        found = [
            mean_interval(mean, se, n, ENDS)
            for mean, se in zip(scores.mean(axis=1).tolist(), errors.tolist(), strict=True)
        ]
        hits = [low - 1e-9 <= truth <= high + 1e-9 for low, high in found]
        assert counts @ hits / counts.sum() >= 0.94, shares
        assert all(1 <= low < high <= 5 for low, high in found)
        if n == 100:
            widths = np.diff(np.array(found), axis=1).ravel()
            assert counts @ widths <= 1.2 * (counts @ (2 * stats.t.ppf(0.975, 99) * errors)), shares
