"""Agreement coefficients against published figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judging.core.statistics.agreement import (
    Level,
    alpha_interval,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac2,
    krippendorff_alpha,
    percent_agreement,
    quadratic_kappa,
)
from judging.core.statistics.numeric import Draws
from tests.judging.core.statistics.published import KRIPPENDORFF_2011, NO

PUBLISHED: list[tuple[Level, float]] = [
    ("nominal", 0.743),
    ("ordinal", 0.815),
    ("interval", 0.849),
    ("ratio", 0.797),
]


@pytest.mark.parametrize(("level", "published"), PUBLISHED)
def test_alpha_is_krippendorffs(level: Level, published: float) -> None:
    assert krippendorff_alpha(KRIPPENDORFF_2011, level) == pytest.approx(published, abs=0.0005)


def test_alpha_is_one_where_all_agree_and_none_where_nothing_varies() -> None:
    assert krippendorff_alpha(np.array([[1.0, 1], [2, 2]]), "nominal") == 1
    assert krippendorff_alpha(np.array([[2.0, 2], [2, 2]]), "nominal") is None


def test_alpha_of_two_who_always_differ_is_below_chance() -> None:
    alpha = krippendorff_alpha(np.array([[1.0, 2], [2, 1], [1, 2]]), "nominal")
    assert alpha is not None
    assert alpha < 0


def test_units_with_one_rating_say_nothing() -> None:
    assert krippendorff_alpha(np.array([[1.0, NO], [NO, 2]]), "nominal") is None
    assert percent_agreement(np.array([[1.0, NO], [NO, 2]])) is None


def test_percent_agreement_counts_pairs_of_raters() -> None:
    assert percent_agreement(np.array([[1.0, 1, 2], [3, 3, NO]])) == pytest.approx((1 + 0 + 0 + 1) / 4)


@given(arrays(float, (6, 3), elements=st.sampled_from([1.0, 2.0, 3.0, NO])), st.permutations(range(3)))
def test_alpha_does_not_depend_on_the_order_of_raters(ratings: np.ndarray, order: list[int]) -> None:
    one, other = (krippendorff_alpha(part, "ordinal") for part in (ratings, ratings[:, order]))
    assert one == pytest.approx(other)


FLEISS_1971 = [  # how many of 14 raters put each of 10 subjects into each of 5 categories
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
Y = np.array([7, 4, 9, 6, 8, 3, 5, 7, 2, 8, 6, 9.0])
F = np.array([8, 5, 9, 6, 7, 4, 6, 8, 4, 9, 6, 9.0])


def rated(counts):
    return np.array([np.repeat(np.arange(len(row)), row) for row in counts], dtype=float)


def test_fleiss_textbook_table_gives_the_published_kappa() -> None:
    assert fleiss_kappa(rated(FLEISS_1971)) == pytest.approx(0.210, abs=0.0005)


def test_fleiss_kappa_needs_the_same_number_of_raters_everywhere() -> None:
    assert fleiss_kappa(KRIPPENDORFF_2011) is None


def test_ac1_is_gwets_of_the_same_table() -> None:
    # irrCAC 0.4.4, CAC(...).gwet(), and the manual of the R package of the same name
    assert gwet_ac1(KRIPPENDORFF_2011) == pytest.approx(0.77544, abs=5e-6)


def test_ac1_of_more_labels_than_occur() -> None:
    both = np.array([[0.0, 0], [0, 0], [0, 1], [1, 1]])
    a, b = 5 / 8, 3 / 8
    for labels, chance in ((None, 2 * a * b), (2, 2 * a * b), (5, 2 * a * b / 4)):
        assert gwet_ac1(both, labels) == pytest.approx((3 / 4 - chance) / (1 - chance))


def test_ac2_is_gwets_with_all_weights_written_out() -> None:
    points = np.arange(1, 8.0)  # two more than occur
    weights = 1 - (points[:, None] - points) ** 2 / 36
    counts = (KRIPPENDORFF_2011[:, :, None] == points).sum(axis=1)
    sizes = counts.sum(axis=1)
    many = sizes >= 2
    agreed = (counts * (counts @ weights - 1)).sum(axis=1)[many] / (sizes * (sizes - 1))[many]
    shares = (counts / sizes[:, None]).mean(axis=0)
    chance = weights.sum() * (shares * (1 - shares)).sum() / (7 * 6)
    found = gwet_ac2(KRIPPENDORFF_2011, 1, 7)
    assert found == pytest.approx((agreed.mean() - chance) / (1 - chance), rel=1e-12)


def test_ac2_of_a_scale_of_two_is_ac1() -> None:
    both = np.array([[1.0, 1], [1, 2], [2, 2], [1, 1]])
    assert gwet_ac2(both, 1, 2) == pytest.approx(gwet_ac1(both, 2))


def test_kappas_are_those_of_scikit_learn() -> None:
    # sklearn 1.9.1, cohen_kappa_score(y, f) and with weights="quadratic"
    assert cohen_kappa(Y, F) == pytest.approx(0.2195121951219512)
    assert quadratic_kappa(Y, F) == pytest.approx(0.89)


def test_ac1_stays_high_where_one_label_dominates_and_kappa_does_not() -> None:
    a, b = np.zeros(100), np.zeros(100)
    a[:2] = b[2:4] = 1
    assert (cohen_kappa(a, b) or 0) < 0
    assert (gwet_ac1(np.column_stack([a, b])) or 0) > 0.95


@pytest.mark.parametrize("same", [np.zeros(5), np.zeros(0)])
def test_where_nothing_varies_there_is_no_kappa(same: np.ndarray) -> None:
    pair = np.column_stack([same, same])
    assert (
        cohen_kappa(same, same) is quadratic_kappa(same, same) is gwet_ac1(pair) is fleiss_kappa(pair) is None
    )


def test_the_interval_of_alpha_holds_alpha_and_is_the_same_each_time() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, 200)
    ratings = np.clip(truth[:, None] + rng.integers(-1, 2, (200, 3)), 1, 5).astype(float)
    low, high = alpha_interval(ratings, np.arange(200), "ordinal", Draws(5))
    alpha = krippendorff_alpha(ratings, "ordinal")
    assert low < alpha < high
    assert high - low < 0.15
    assert alpha_interval(ratings, np.arange(200), "ordinal", Draws(5)) == (low, high)


def test_the_interval_of_alpha_is_wider_where_units_hang_together() -> None:
    rng = np.random.default_rng(3)
    ratings = np.repeat(rng.integers(0, 2, (40, 2)), 10, axis=0).astype(float)
    alone = alpha_interval(ratings, np.arange(400), "nominal", Draws())
    together = alpha_interval(ratings, np.repeat(np.arange(40), 10), "nominal", Draws())
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])


def test_an_alpha_of_too_many_different_values_has_no_interval() -> None:
    """Its bootstrap draws need memory quadratic in the number of values for each unit."""
    many = np.repeat(np.arange(61.0), 2).reshape(61, 2)
    assert krippendorff_alpha(many, "interval") == 1
    assert alpha_interval(many, np.arange(61), "interval", Draws()) == (None, None)
