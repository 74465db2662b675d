"""Correlations compared with scipy."""

import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.agreement import kendall, pearson, spearman

RNG = np.random.default_rng(4)
A = RNG.integers(1, 6, 300).astype(float)
B = np.clip(A + RNG.integers(-2, 3, 300), 1, 5)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [(pearson, stats.pearsonr), (spearman, stats.spearmanr), (kendall, stats.kendalltau)],
)
@pytest.mark.parametrize("other", [B, RNG.normal(size=300), -A])
def test_each_is_scipys(mine, theirs, other):
    assert mine(A, other) == pytest.approx(theirs(A, other).statistic)


def test_kendall_of_many_different_values_is_scipys_too():
    a, b = RNG.normal(size=(2, 500))
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)


@pytest.mark.parametrize("figure", [pearson, spearman, kendall])
@pytest.mark.parametrize("a", [np.ones(5), np.ones(1), np.ones(0)])
def test_one_that_never_varies_has_no_correlation(figure, a):
    assert figure(a, np.arange(a.size, dtype=float)) is None
