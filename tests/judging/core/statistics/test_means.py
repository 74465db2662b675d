import math

import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.means import (
    clustered_standard_error,
    estimate_mean,
    item_means,
    mean_if_all_got,
    standard_error,
)

from .cast import responses

FOUR = np.array([2.0, 4.0, 4.0, 6.0])


def test_the_standard_error_of_four_scores_worked_out_by_hand():
    # mean 4, squares 4 + 0 + 0 + 4 = 8, 8 / (4 * 3)
    assert standard_error(FOUR) == pytest.approx(math.sqrt(8 / 12))


def test_without_a_scale_the_interval_uses_t_with_items_less_one_degrees_of_freedom():
    got = estimate_mean(FOUR)
    reach = 3.182446305284263 * math.sqrt(8 / 12)  # t table, 3 degrees of freedom, 97.5 %
    assert (got.mean, got.low, got.high) == pytest.approx((4, 4 - reach, 4 + reach))


def test_the_interval_equals_scipys():
    scores = np.random.default_rng(7).normal(5, 2, 60)
    low, high = stats.t.interval(0.95, 59, scores.mean(), stats.sem(scores))
    got = estimate_mean(scores)
    assert (got.low, got.high) == pytest.approx((low, high))


def test_no_item_has_no_figure():
    got = estimate_mean(np.array([]))
    assert (got.mean, got.se, got.low, got.high, got.items) == (None, None, None, None, 0)


def test_one_item_has_a_mean_and_no_interval():
    got = estimate_mean(np.array([7.0]))
    assert (got.mean, got.se, got.low, got.high, got.items) == (7.0, None, None, None, 1)


def test_equal_scores_have_no_error():
    got = estimate_mean(np.full(10, 0.1))
    assert (got.mean, got.se) == (0.1, 0.0)


def test_scores_too_large_to_square_have_a_mean_and_no_error():
    got = estimate_mean(np.array([1e300, -1e300]))
    assert (got.mean, got.se, got.low) == (0.0, None, None)


def test_the_clustered_error_worked_out_by_hand():
    # residuals -2 0 | 0 2, cluster sums -2 and 2; sqrt(2 / 1 * 8) / 4
    got = clustered_standard_error(FOUR, np.array([1, 1, 9, 9]))
    assert got == pytest.approx(1.0)


def test_clusters_of_one_item_change_nothing():
    assert clustered_standard_error(FOUR, np.array([5, 3, 8, 1])) == pytest.approx(standard_error(FOUR))


def test_doubling_every_item_within_its_cluster_does_not_make_one_surer():
    once, twice = standard_error(FOUR), clustered_standard_error(np.repeat(FOUR, 2), np.repeat(range(4), 2))
    assert twice == pytest.approx(once)


def test_the_clustered_error_equals_the_sandwich_of_a_regression_on_a_constant():
    random = np.random.default_rng(3)
    clusters = random.integers(0, 12, 100)
    scores = random.normal(0, 1, 100) + clusters
    bread = 1 / 100
    meat = sum((scores[clusters == g] - scores.mean()).sum() ** 2 for g in range(12))
    assert clustered_standard_error(scores, clusters) == pytest.approx(
        math.sqrt(bread * meat * bread * 12 / 11)
    )


def test_one_cluster_says_nothing_about_spread():
    got = estimate_mean(FOUR, np.zeros(4, dtype=int))
    assert (got.mean, got.se, got.low, got.clusters) == (4.0, None, None, 1)


def test_degrees_of_freedom_count_clusters():
    got = estimate_mean(FOUR, np.array([1, 1, 5, 9]))
    assert got.high - got.mean == pytest.approx(4.302652729911275 * got.se)  # t table, 2 degrees of freedom


def test_an_items_responses_are_averaged_first():
    assert item_means(responses([1, 3, 10], [4, 4, 6])).to_dict() == {4: 2.0, 6: 10.0}


def test_items_count_equally_however_many_responses_they_have():
    assert item_means(responses([0] * 9 + [1], [1] * 9 + [2])).mean() == 0.5


@pytest.mark.parametrize(("fill", "mean"), [(1, 4.0), (10, 8.5)])
def test_bounds_fill_each_unscored_response_within_its_item(fill, mean):
    # item 0: 8 and nothing, item 1: nothing; item 2: 5 … with 1: (4.5 + 1 + 6.5) / 3, with 10: (9 + 10 + 6.5) / 3
    given = responses([8, np.nan, np.nan, 5, 8], [0, 0, 1, 2, 2])
    assert mean_if_all_got(given, fill) == pytest.approx(mean)
