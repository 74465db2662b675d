import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

from judging.core.statistics.numeric import choose_bins, histogram, nice_step, nice_ticks


def counted(scores, low=None, high=None):
    scores = np.array(scores, dtype=float)
    return [(b["low"], b["high"], b["count"]) for b in histogram(scores, choose_bins(scores, low, high))]


def test_whole_scores_get_one_bin_a_number_over_the_whole_scale():
    assert counted([1, 3, 3], 1, 4) == [(1, 1, 1), (2, 2, 0), (3, 3, 2), (4, 4, 0)]


def test_a_score_outside_widens_the_scale():
    assert counted([0, 4], 1, 3) == [(0, 0, 1), (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 1)]


def test_a_fraction_makes_even_bins_and_the_last_takes_the_top():
    assert counted([0.0, 0.3, 0.95, 1.0], 0, 1)[0] == (0.0, 0.1, 1)
    assert counted([0.0, 0.3, 0.95, 1.0], 0, 1)[3] == (0.3, 0.4, 1)
    assert counted([0.0, 0.3, 0.95, 1.0], 0, 1)[9] == (0.9, 1.0, 2)


def test_a_wide_whole_scale_gets_even_bins():
    bins = counted([5, 100], 0, 100)
    assert (len(bins), bins[0], bins[-1]) == (10, (0.0, 10.0, 1), (90.0, 100.0, 1))


def test_without_a_scale_the_scores_make_it():
    assert [count for _, _, count in counted([2.5, 7.5])] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def test_one_fraction_alone_is_one_bin():
    assert counted([2.5, 2.5]) == [(2.5, 2.5, 2)]


def test_nothing_to_count_on_nothing_has_no_bins():
    assert choose_bins(np.array([]), None, None) is None


@given(arrays(float, some.integers(1, 30), elements=some.floats(allow_nan=False, allow_infinity=False)))
def test_every_score_is_counted_once_however_large(scores):
    assert sum(count for _, _, count in counted(scores)) == scores.size


@pytest.mark.parametrize(
    ("raw", "step"), [(0.9, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (0.03, 0.05), (1900, 2000)]
)
def test_a_nice_step_is_one_two_or_five_times_a_power_of_ten(raw, step):
    assert nice_step(raw) == step


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (6.13, 7.9, [6.0, 6.5, 7.0, 7.5, 8.0]),
        (5, 5, [4.4, 4.6, 4.8, 5.0, 5.2, 5.4, 5.6]),
    ],
)
def test_ticks_are_round_and_enclose_the_data(low, high, ticks):
    assert nice_ticks(low, high) == ticks
