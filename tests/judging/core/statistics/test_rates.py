import numpy as np
import pytest

from judging.core.statistics.intervals import wilson
from judging.core.statistics.means import estimate_rate

from .cast import responses


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [  # Newcombe, Statistics in Medicine 17, 1998, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_as_newcombe_published_it(count, n, low, high):
    assert wilson(count / n, n) == pytest.approx((low, high), abs=5e-5)


def test_wilsons_ends_solve_the_score_equation():
    for end in wilson(0.3, 50):
        assert abs(0.3 - end) == pytest.approx(1.959963984540054 * (end * (1 - end) / 50) ** 0.5)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_an_interval_stays_inside_the_unit_and_has_a_width_where_all_agree(rate):
    low, high = wilson(rate, 10)
    assert 0 <= low < high <= 1
    assert rate in (low, high)


def test_one_response_an_item_gives_the_plain_interval():
    got = estimate_rate(responses(np.array([True] * 15 + [False] * 133), np.arange(148)))
    assert (got.low, got.high) == pytest.approx((0.0624, 0.1605), abs=5e-5)


def test_the_items_rate_comes_first():
    flags, items = np.array([True, False, False, False, True]), np.array([0, 0, 0, 0, 1])
    assert estimate_rate(responses(flags, items)).rate == pytest.approx((0.25 + 1) / 2)


def test_responses_that_always_agree_count_as_one():
    once = estimate_rate(responses(np.array([True, False, True, True]), np.arange(4)))
    thrice = estimate_rate(responses(np.repeat([True, False, True, True], 3), np.repeat(range(4), 3)))
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))


def test_clusters_that_always_agree_count_as_one():
    once = estimate_rate(responses(np.array([True, False, True, True]), np.arange(4)))
    grouped = estimate_rate(
        responses(np.repeat([True, False, True, True], 3), np.arange(12), np.repeat(range(4), 3))
    )
    assert (grouped.low, grouped.high) == pytest.approx((once.low, once.high))


def test_no_trial_is_counted_more_than_once():
    balanced = estimate_rate(responses(np.array([True, False] * 5), np.repeat(range(5), 2)))
    assert (balanced.low, balanced.high) == pytest.approx(wilson(0.5, 10))


def test_where_all_agree_only_the_clusters_count():
    got = estimate_rate(responses(np.ones(12, dtype=bool), np.arange(12), np.repeat(range(4), 3)))
    assert got.low == pytest.approx(wilson(1.0, 4)[0])


def test_nothing_rated_is_no_rate():
    got = estimate_rate(responses(np.zeros(0, dtype=bool), np.zeros(0, dtype=int)))
    assert (got.rate, got.low, got.high, got.count) == (None, None, None, 0)
