"""Agreement against the published figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judging.core.statistics.agreement import Level, krippendorff_alpha, percent_agreement

NO = np.nan
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
        [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
    ]
).T
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
