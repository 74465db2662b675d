"""The formulas beside the packages ppi-python and statsmodels, on drawn data."""

import numpy as np
import pytest
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from judging.core.statistics import agreement
from judging.core.statistics.correction import Labelled, prediction_powered
from judging.core.statistics.intervals import wilson
from judging.core.statistics.licence import gap
from judging.core.statistics.means import benjamini_hochberg, holm, rate_of

SEEDS = range(5)


def two_raters(seed, labels=4, items=80):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, labels, items)
    return a.astype(float), np.where(rng.random(items) < 0.6, a, rng.integers(0, labels, items)).astype(float)


@pytest.mark.parametrize(("count", "n"), [(0, 10), (5, 60), (38, 40), (40, 40)])
def test_rates_have_wilsons_interval(count, n):
    assert wilson(count / n, n) == pytest.approx(proportion_confint(count, n, method="wilson"), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [((56, 70), (48, 80)), ((10, 10), (18, 20)), ((30, 40), (10, 60))])
def test_differences_of_rates_have_newcombes_interval(a, b):
    rates = [rate_of((np.arange(n) < count).astype(float), np.arange(n)) for count, n in (a, b)]
    expected = confint_proportions_2indep(*a, *b, method="newcomb", compare="diff")
    difference = gap(*rates)
    assert (difference.low, difference.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_kappas(seed):
    a, b = two_raters(seed)
    _values, counts = agreement.contingency(a, b)
    assert agreement.cohen_kappa(a, b) == pytest.approx(cohens_kappa(counts).kappa)
    weighted = cohens_kappa(counts, weights=np.arange(len(counts)), wt="quadratic")
    assert agreement.quadratic_kappa(a, b) == pytest.approx(weighted.kappa)
    table = aggregate_raters(np.column_stack([a, b]).astype(int))[0]
    assert agreement.fleiss_kappa(np.column_stack([a, b])) == pytest.approx(fleiss_kappa(table))


@pytest.mark.parametrize("seed", SEEDS)
def test_corrections_of_p_values(seed):
    p_values = (np.random.default_rng(seed).random(9) ** 3).tolist()
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
    assert benjamini_hochberg(p_values) == pytest.approx(multipletests(p_values, method="fdr_bh")[1])


@pytest.mark.parametrize("seed", SEEDS)
def test_corrected_means_and_differences(seed):
    from ppi_py import (
        ppi_mean_ci,
        ppi_mean_pointestimate,
    )  # takes seconds, which other tests need not wait for

    rng = np.random.default_rng(seed)
    people = rng.integers(1, 11, 200) - rng.integers(1, 11, 200)  # differences of two candidates' scores
    judge = people + rng.integers(-2, 3, 200)
    labelled = np.arange(200) < 60
    rows, chances = np.arange(200), np.full(200, 0.3)
    answers = Labelled(judge * 1.0, np.where(labelled, people, np.nan), chances, rows, rows)
    estimate = prediction_powered(answers)
    data = people[:60] * 1.0, judge[:60] * 1.0, judge[60:] * 1.0
    assert estimate.value == pytest.approx(ppi_mean_pointestimate(*data)[0])
    low, high = ppi_mean_ci(*data, alpha=0.05)
    assert 2 * 1.959963985 * estimate.variance**0.5 == pytest.approx((high - low)[0], rel=1e-6)
