"""Bradley–Terry ratings against published tables."""

from statistics import NormalDist

import numpy as np
import pytest

from judging.core.statistics.preference import (
    PairedComparisons,
    bradley_terry,
    has_ratings,
    is_connected,
    rank_ranges,
    side_differences,
)

# Agresti, Categorical Data Analysis, 2002, table 10.10: games of the American League's eastern teams in 1987, winners
# in rows: Milwaukee, Detroit, Toronto, New York, Boston, Cleveland, Baltimore.
BASEBALL = [
    [0, 7, 9, 7, 7, 9, 11], [6, 0, 7, 5, 11, 9, 9], [4, 6, 0, 7, 7, 8, 12], [6, 8, 6, 0, 6, 7, 10],
    [6, 2, 6, 7, 0, 7, 12], [4, 4, 5, 6, 6, 0, 6], [2, 4, 1, 3, 1, 7, 0],
]  # fmt: skip
# From the R package BradleyTerry2 (vignette, baseballModel1); Baltimore is 0.
PUBLISHED = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0]


def games(wins, clusters=None):
    played = [(a, b, 1.0) for a, row in enumerate(wins) for b, many in enumerate(row) for _ in range(many)]
    a, b, won = (np.array(column) for column in zip(*played, strict=True))
    return PairedComparisons(len(wins), a, b, won, np.arange(len(played)) % (clusters or len(played)))


def met(*played, size=3):
    a, b, won = (np.array(column) for column in zip(*played, strict=True))
    return PairedComparisons(size, a, b, won.astype(float), np.arange(len(played)))


def test_agrestis_baseball_table_gives_the_published_ratings():
    found = bradley_terry(games(BASEBALL))
    assert found.ratings - found.ratings[-1] == pytest.approx(PUBLISHED, abs=5e-5)
    assert found.ratings.sum() == pytest.approx(0, abs=1e-9)


def test_errors_are_the_clustered_sandwich_of_statsmodels():
    # statsmodels 0.15: GLM(..., Binomial()).fit(cov_type="cluster", use_correction=False), times sqrt(40/39)
    expected = np.array([0.34570309, 0.34407823, 0.21727506, 0.27414572, 0.24438112, 0.20358204])
    found = bradley_terry(games(BASEBALL, clusters=40)).covariance
    errors = np.sqrt(np.diag(found)[:6] + found[6, 6] - 2 * found[:6, 6])
    assert errors == pytest.approx(expected * np.sqrt(40 / 39), rel=1e-5)


def test_a_tie_is_half_a_win_to_each():
    tied = met((0, 1, 0.5), (0, 1, 0.5), (1, 2, 1), (1, 2, 0), (0, 2, 1), (2, 0, 1))
    assert bradley_terry(tied).ratings == pytest.approx([0, 0, 0], abs=1e-9)


def test_two_candidates_have_the_log_odds_of_their_win_rate():
    found = bradley_terry(met(*[(0, 1, 1)] * 3, (0, 1, 0), size=2))
    assert found.ratings == pytest.approx([np.log(3) / 2, -np.log(3) / 2])


def test_who_won_all_leaves_no_ratings():
    unbeaten = met((0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 1, 1))
    assert (is_connected(unbeaten), has_ratings(unbeaten), bradley_terry(unbeaten)) == (True, False, None)


def test_a_group_that_lost_nothing_to_the_rest_leaves_no_ratings():
    groups = met((0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, 1), (0, 2, 1), size=4)
    assert (is_connected(groups), bradley_terry(groups)) == (True, None)


def test_candidates_that_were_never_compared_are_not_connected():
    apart = met((0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, 1), size=4)
    assert (is_connected(apart), bradley_terry(apart)) == (False, None)


def ranks_of(comparisons):
    names = [str(place) for place in range(comparisons.size)]
    return list(rank_ranges(names, side_differences(names, comparisons, bradley_terry(comparisons))).values())


def test_ranks_overlap_where_ratings_are_not_surely_apart():
    ranks = ranks_of(games(BASEBALL))
    assert ranks[0][0] == 1
    assert ranks[-1][1] == 7
    assert ranks[0][1] > 1
    assert ranks_of(met(*[(0, 1, 1)] * 95, *[(0, 1, 0)] * 5, size=2)) == [(1, 1), (2, 2)]


def test_equal_candidates_have_all_their_ranks_in_nineteen_of_twenty_studies():
    rng = np.random.default_rng(4)
    pairs = [(a, b) for a in range(4) for b in range(a)]
    held, draws = 0, 2000  # 0.966 of them
    for _ in range(draws):
        played = [(a, b, float(won)) for a, b in pairs for won in rng.integers(0, 2, 40)]
        held += ranks_of(met(*played, size=4)) == [(1, 4)] * 4
    assert held >= 0.95 * draws


def differences_of(comparisons):
    names = [str(place) for place in range(comparisons.size)]
    return side_differences(names, comparisons, bradley_terry(comparisons))


def test_differences_are_tested_by_the_covariance_of_the_ratings_and_corrected():
    found = bradley_terry(games(BASEBALL))
    first, *_others = tests = differences_of(games(BASEBALL))
    variance = found.covariance[0, 0] + found.covariance[1, 1] - 2 * found.covariance[0, 1]
    z = abs(found.ratings[0] - found.ratings[1]) / np.sqrt(variance)
    assert first["p"] == pytest.approx(2 * (1 - NormalDist().cdf(z)))
    assert len(tests) == 21
    least = min(tests, key=lambda one: one["p"])
    assert least["p_holm"] == pytest.approx(21 * least["p"])


def test_who_won_all_is_tested_by_the_comparisons_of_the_two():
    (one,) = differences_of(met(*[(0, 1, 1)] * 12, size=2))
    assert (one["difference"], one["higher"], one["p"], one["distinguishable"]) == (None, "0", 2.0**-11, True)
    (few,) = differences_of(met(*[(0, 1, 1)] * 2, size=2))
    assert few["distinguishable"] is False


def test_candidates_that_never_met_and_have_no_ratings_are_not_tested():
    apart = differences_of(met((0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, 1), size=4))
    assert [one["p_holm"] is None for one in apart] == [False, True, True, True, True, False]


def test_ties_alone_make_nobody_better():
    (one,) = differences_of(met(*[(0, 1, 0.5)] * 9, size=2))
    assert (one["higher"], one["p"], one["distinguishable"]) == (None, 1.0, False)


def test_one_cluster_has_ratings_without_errors():
    found = bradley_terry(games(BASEBALL, clusters=1))
    assert np.isnan(found.covariance).all()


@pytest.mark.parametrize("seed", range(10))
def test_errors_do_not_depend_on_the_order_of_the_candidates(seed):
    rng = np.random.default_rng(seed)
    pairs = np.array([(a, b) for a in range(5) for b in range(a + 1, 5)] * 80)
    won, rows = rng.choice([0, 0.5, 1], len(pairs)), np.repeat(np.arange(80), 10)
    first = bradley_terry(PairedComparisons(5, pairs[:, 0], pairs[:, 1], won, rows))
    order = rng.permutation(5)
    other = bradley_terry(PairedComparisons(5, order[pairs[:, 0]], order[pairs[:, 1]], won, rows))
    errors = np.diag(first.covariance)
    assert (errors > 0).all()
    assert np.diag(other.covariance)[order] == pytest.approx(errors)
