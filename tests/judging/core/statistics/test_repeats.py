from itertools import combinations
from math import comb

import numpy as np
import pytest

from judging.core.statistics.means import (
    all_pass_at_k,
    best_at_k,
    pass_at_k,
    ranked,
    sizes_shown,
    variance_components,
    worst_at_k,
)

from .cast import responses

SCORES, ITEMS = np.array([3.0, 1.0, 8.0, 5.0, 2.0, 4.0]), np.array([0, 0, 0, 0, 1, 1])

# Shrout and Fleiss, Psychological Bulletin 86, 1979, table 2: six targets, four judges
SHROUT_FLEISS = np.array(
    [9, 2, 5, 8, 6, 1, 3, 2, 8, 4, 6, 8, 7, 1, 2, 6, 10, 5, 6, 9, 6, 2, 4, 7], dtype=float
)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_best_and_worst_are_the_averages_over_all_draws(k):
    four = SCORES[:4]
    draws = list(combinations(four, k))
    assert best_at_k(ranked(responses(four, ITEMS[:4])), k) == (
        pytest.approx(np.mean([max(draw) for draw in draws])),
        1,
    )
    assert worst_at_k(ranked(responses(four, ITEMS[:4])), k) == (
        pytest.approx(np.mean([min(draw) for draw in draws])),
        1,
    )


def test_items_count_equally_and_those_with_too_few_responses_are_left_out():
    assert best_at_k(ranked(responses(SCORES, ITEMS)), 2) == (
        pytest.approx((37 / 6 + 4) / 2),
        2,
    )  # 8 8 8 5 5 3 over six draws
    assert best_at_k(ranked(responses(SCORES, ITEMS)), 3)[1] == 1


def test_k_beyond_every_item_has_no_figure():
    assert best_at_k(ranked(responses(SCORES, ITEMS)), 5) == (None, 0)
    assert pass_at_k(ranked(responses(SCORES, ITEMS)), 5, 2) == (None, 0)


@pytest.mark.parametrize(("passes", "k"), [(0, 1), (3, 1), (3, 10), (150, 100), (200, 7)])
def test_pass_at_k_is_the_published_estimator(passes, k):
    flags = np.arange(200) < passes
    expected = 1 - comb(200 - passes, k) / comb(200, k)
    assert pass_at_k(ranked(responses(flags, np.zeros(200, dtype=int))), k) == (pytest.approx(expected), 1)


def test_best_of_bools_is_pass_at_k():
    given = responses([1, 0, 0, 0, 1, 1, 0, 0, 0, 0], np.repeat([0, 1], 5))
    assert best_at_k(ranked(given), 3)[0] == pytest.approx(pass_at_k(ranked(given), 3)[0])


def test_the_share_of_variance_is_shrout_and_fleiss_icc_1():
    got = variance_components(responses(SHROUT_FLEISS, np.repeat(range(6), 4)))
    assert got.share_between == pytest.approx(0.17, abs=0.005)
    assert got.within == pytest.approx(6.26, abs=0.005)


def test_unequal_numbers_of_responses_worked_out_by_hand():
    # items (1, 3) and (5): MSW 2, MSB 6 = 2 * 1 + 1 * 4, n0 = 3 - 5 / 3 = 4 / 3, between (6 - 2) / (4 / 3)
    got = variance_components(responses([1, 3, 5], [0, 0, 1]))
    assert (got.within, got.between, got.share_between) == pytest.approx((2, 3, 0.6))


@pytest.mark.parametrize("items", [[0, 1, 2], [0, 0, 0]])
def test_without_repeats_or_with_one_item_there_is_no_variance_to_divide(items):
    got = variance_components(responses([1, 2, 3], items))
    assert (got.between, got.within, got.share_between) == (None, None, None)


def test_where_nothing_varies_there_is_no_share():
    assert variance_components(responses(np.ones(4), [0, 0, 1, 1])).share_between is None


def test_a_few_sizes_are_all_shown_and_many_by_powers_of_two():
    assert sizes_shown(4) == [1, 2, 3, 4]
    assert sizes_shown(100) == [1, 2, 4, 8, 16, 32, 64, 100]
    assert sizes_shown(16) == [1, 2, 4, 8, 16]


def test_all_of_k_pass_as_often_as_draws_without_replacement_do():
    values, rows = [1, 1, 0, 1, 0, 0, 1, 1, 1], [1, 1, 1, 2, 2, 2, 3, 3, 3]
    given = ranked(responses(values, rows))
    draws = [
        np.mean([all(pair) for pair in combinations(values[start : start + 3], 2)]) for start in (0, 3, 6)
    ]
    assert all_pass_at_k(given, 2) == (pytest.approx(np.mean(draws)), 3)
    assert all_pass_at_k(given, 1)[0] == pytest.approx(6 / 9)
    assert all_pass_at_k(given, 4) == (None, 0)
