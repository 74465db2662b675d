"""What a judge's own variation does to a difference of means."""

from __future__ import annotations

import numpy as np
import pytest

from judging.core.statistics.noise import noise_alone, repeat_variance


def test_the_variance_is_the_mean_within_items():
    assert repeat_variance([[[1, 3]], [[5, 5]], [[2]]]) == (1.0, 2.0)


def test_repeats_of_different_numbers_count_by_what_they_do_to_a_score():
    variance, repeats = repeat_variance([[[1, 3]], [[1, 2, 3, 4]]])
    assert repeats == pytest.approx(2 / (1 / 2 + 1 / 4))
    assert variance == pytest.approx((2 + 5 / 3) / 2)


def test_without_repeats_it_is_not_said():
    assert repeat_variance([[[1]], [[2]], []]) is None
    assert noise_alone(None, (1.0, 2.0), 10) is None
    assert noise_alone((1.0, 2.0), (1.0, 2.0), 0) is None


def test_the_formula():
    assert noise_alone((2.0, 2.0), (3.0, 1.0), 100) == pytest.approx(1.959964 * np.sqrt(4 / 100))


def test_what_judges_differ_by_is_no_variation_of_their_own():
    variance, repeats = repeat_variance([[[1, 3], [7, 7]], [[1, 3], [9]]])
    assert (variance, repeats) == (1.0, 4.0)


def test_differences_of_equal_runs_stay_within_it_in_95_of_100():
    """2,000 pairs of runs of 40 items, three repeats each."""
    draws = np.random.default_rng(3)
    inside = []
    for _pair in range(2_000):
        worth = draws.normal(5, 2, 40)
        runs = [worth[:, None] + draws.normal(0, 1, (40, 3)) for _run in range(2)]
        reach = noise_alone(*(repeat_variance(run[:, None, :]) for run in runs), 40)
        inside.append(abs(runs[1].mean() - runs[0].mean()) <= reach)
    assert 0.93 <= np.mean(inside) <= 0.97
