"""The shift between two versions of a guideline, by rows."""

from __future__ import annotations

import numpy as np
import pytest

from judging.core.people.criteria import Criterion
from judging.core.people.guideline_shift import RatedAgain, guideline_shift

SCORE = Criterion(name="quality", scale="five")
CHOICE = Criterion(name="kind", scale="categories", categories=("a", "b"))


def test_a_score_shifts_by_the_mean_of_new_minus_earlier() -> None:
    pairs = [RatedAgain(row, 2, 2 + (row % 2)) for row in range(20)]
    shift = guideline_shift(SCORE, pairs)
    assert (shift.is_mean, shift.estimate.mean, shift.estimate.clusters) == (True, 0.5, 20)
    assert shift.estimate.low is not None
    assert 0 < shift.estimate.low < 0.5


def test_labels_shift_by_the_share_that_changed() -> None:
    pairs = [RatedAgain(row, "a", "b" if row < 3 else "a") for row in range(12)]
    shift = guideline_shift(CHOICE, pairs)
    assert (shift.is_mean, shift.estimate.mean) == (False, 0.25)


def test_rows_are_the_units() -> None:
    once = [RatedAgain(row, 2, 2 + row % 2) for row in range(8)]
    assert guideline_shift(SCORE, once * 3).estimate.se == pytest.approx(
        guideline_shift(SCORE, once).estimate.se, rel=0.01
    )


@pytest.mark.parametrize("criterion", [SCORE, Criterion(name="why", scale="text")])
def test_without_pairs_there_is_no_shift(criterion: Criterion) -> None:
    assert guideline_shift(criterion, []).estimate.mean is None


def test_the_interval_covers_no_shift_in_about_95_of_100() -> None:
    """300 raters' repeats without a change of meaning: noise of one step; 40 pairs over 20 rows."""
    random, covered = np.random.default_rng(5), 0
    for _ in range(300):
        noise = random.integers(-1, 2, size=40)
        pairs = [RatedAgain(place % 20, 3, int(3 + step)) for place, step in enumerate(noise)]
        estimate = guideline_shift(SCORE, pairs).estimate
        covered += estimate.low is not None and estimate.low <= 0 <= (estimate.high or 0)
    assert covered >= 0.92 * 300
