"""Confidence sequences hold at all looks simultaneously, and end runs earlier if values vary little."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judging.core.statistics.numeric import mean_so_far

LOOKS = (5, 10, 20, 40, 80, 160, 320)


def ever_missed(draw: np.ndarray, mean: float) -> bool:
    """Return whether the interval missed the mean at any look."""
    found = [mean_so_far(draw[:look], 0, 1) for look in LOOKS]
    return any(not one.low <= mean <= one.high for one in found)


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.9])
def test_looking_again_and_again_misses_a_rate_in_one_of_twenty_at_most(rate: float) -> None:
    draw = np.random.default_rng(1)
    missed = sum(ever_missed((draw.random(320) < rate).astype(float), rate) for _ in range(400))
    assert missed <= 0.05 * 400


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (10.0, 30.0), (0.3, 0.3)])
def test_means_of_continuous_scores_are_held_too(a: float, b: float) -> None:
    draw = np.random.default_rng(2)
    missed = sum(ever_missed(draw.beta(a, b, 320), a / (a + b)) for _ in range(400))
    assert missed <= 0.05 * 400


def test_an_interval_of_fixed_size_would_miss_more_often() -> None:
    """Repeated looks need wider intervals: a fixed-sample 95 % interval misses the mean far more often than 5 %."""
    draw = np.random.default_rng(3)
    missed = 0
    for _ in range(400):
        values = (draw.random(320) < 0.5).astype(float)
        missed += any(abs(values[:n].mean() - 0.5) > 1.96 * 0.5 / n**0.5 for n in LOOKS)
    assert missed > 0.10 * 400


def test_it_never_widens() -> None:
    values = np.random.default_rng(4).random(300)
    widths = [mean_so_far(values[:n], 0, 1).half_width for n in range(1, 300)]
    assert all(after <= before for before, after in itertools.pairwise(widths))


def test_values_that_vary_little_are_known_sooner() -> None:
    draw = np.random.default_rng(5)
    narrow = mean_so_far(draw.uniform(0.45, 0.55, 300), 0, 1).half_width
    wide = mean_so_far((draw.random(300) < 0.5).astype(float), 0, 1).half_width
    assert narrow < wide / 2


def test_it_is_in_the_values_own_unit() -> None:
    found = mean_so_far([7.0] * 2000, 1, 10)
    assert found.low < 7 < found.high
    assert found.half_width < 0.2


def test_nothing_seen_is_nothing_known() -> None:
    assert mean_so_far([], 1, 10).half_width == 4.5


def test_a_value_beyond_its_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="outside"):
        mean_so_far([11.0], 1, 10)
