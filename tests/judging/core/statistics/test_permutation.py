"""The permutation test of a slice against the rest: p counted by hand, and its level by simulation."""

import itertools

import numpy as np
import pytest

from judging.core.statistics.permutation import (
    DRAWS,
    Arrangements,
    slice_p_values,
    statistics_of,
    subset_draws,
    sums_of_subsets,
)

SKEWED = (5.0,) * 58 + (4.0,) * 12 + (3.0,) * 5 + (2.0,) * 3 + (1.0,) * 2  # of 80 items
CONSTANT = (5.0,) * 72 + (4.0,) * 8  # nine in ten equal


def p_of(values, here, units=None):
    values, here = np.array(values, float), np.array(here, bool)
    units = np.arange(values.size) if units is None else np.array(units)
    (p,) = slice_p_values(values, units, here[None])
    return p


def first(count, of):
    return [place < count for place in range(of)]


def test_all_subsets_are_counted_where_they_are_few():
    values = [1, 2, 4, 4, 9, 3, 3, 1, 2, 3, 1]
    everything = np.array(values, float)
    gaps = [
        abs(everything[list(part)].mean() - np.delete(everything, list(part)).mean())
        for part in itertools.combinations(range(11), 5)
    ]
    assert p_of(values, first(5, 11)) == pytest.approx(np.mean(np.array(gaps) >= gaps[0] - 1e-12), rel=1e-12)


def test_many_subsets_are_drawn():
    # two of 30 items score 1, both in the slice of 10: 10/30 * 9/29
    p = p_of([1, 1] + [0] * 28, first(10, 30))
    assert p == pytest.approx(10 / 30 * 9 / 29, abs=0.01)
    assert (p * (DRAWS + 1)).is_integer()


def test_thousands_of_items_are_drawn_by_value():
    p = p_of([1, 1] + [0] * 5998, first(2000, 6000))
    assert p == pytest.approx(1 / 9, abs=0.01)


def test_thousands_of_different_values_are_grouped():
    values = np.random.default_rng(1).normal(size=6000)
    assert p_of(values, first(2000, 6000)) == pytest.approx(0.55, abs=0.45)
    assert p_of(values + np.array(first(2000, 6000)), first(2000, 6000)) == 1 / (DRAWS + 1)


@pytest.mark.parametrize("size", [1, 4, 16, 19])
def test_fewer_than_five_items_on_a_side_are_not_tested(size):
    assert p_of(range(20), first(size, 20)) is None


def test_nothing_that_varies_is_no_difference():
    assert p_of([3] * 20, first(8, 20)) == 1


def test_whole_clusters_are_exchanged():
    scores, units = np.repeat([1.0, 2, 2, 3, 1, 5, 5, 4, 5, 5], 3), np.repeat(range(10), 3)
    here = np.repeat(first(5, 10), 3)
    assert p_of(scores, here, units) == pytest.approx(p_of(scores[::3], here[::3]))
    assert p_of(scores, here, units) > p_of(scores, here)


def test_clusters_of_different_sizes_count_by_their_items():
    units = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    scores, here = [1, 2, 1, 3, 3, 2, 3, 4, 4, 3, 5, 4], [unit < 5 for unit in units]
    values, sizes = np.array([4.0, 3, 3, 2, 3, 4, 4, 3, 5, 4]), np.array([3, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    every = [list(part) for part in itertools.combinations(range(10), 5)]
    means = np.array([values[part].sum() / sizes[part].sum() for part in every])
    rests = np.array([(35 - values[part].sum()) / (12 - sizes[part].sum()) for part in every])
    gaps = np.abs(means - rests)
    assert p_of(scores, here, units) == pytest.approx(np.mean(gaps >= gaps[0] - 1e-12))


def test_items_are_exchanged_within_a_cluster_that_has_both_kinds():
    # six conversations of two turns, the second always better: of 2^6 arrangements this and its mirror
    scores, units = [1, 2] * 6, np.repeat(range(6), 2)
    assert p_of(scores, [False, True] * 6, units) == 2 / 2**6


def test_what_clusters_share_is_no_difference_between_their_items():
    units = np.repeat(range(20), 3)
    scores = np.repeat(np.random.default_rng(3).integers(1, 6, 20), 3)
    assert p_of(scores, [True, False, False] * 20, units) == 1


def test_many_arrangements_within_clusters_are_drawn():
    rng = np.random.default_rng(4)
    scores = rng.integers(1, 6, 90).astype(float)
    here = np.array([True, False, False] * 30)
    turns = rng.integers(3, size=(20_000, 30))  # which turn of each conversation is in the slice
    sums = scores.reshape(30, 3)[np.arange(30), turns].sum(axis=1)
    gaps = statistics_of(sums, np.full(20_000, 30.0), scores.sum(), 90)
    observed = abs(scores[here].mean() - scores[~here].mean())
    p = p_of(scores, here, np.repeat(range(30), 3))
    assert p == pytest.approx(np.mean(gaps >= observed - 1e-9), abs=0.02)


def test_thousands_of_items_within_clusters_are_drawn_from_their_variance():
    rng = np.random.default_rng(5)
    scores, units = rng.integers(1, 6, 6000).astype(float), np.repeat(range(2000), 3)
    here = np.array([True, False, False] * 2000)
    assert p_of(scores + 0.2 * here, here, units) < 0.01
    assert p_of(scores, here, units) > 0.01


def test_subsets_and_their_complements_have_the_same_sums():
    numbers = np.arange(7.0) ** 2
    sums = sorted(sums_of_subsets(numbers, 5))
    assert sums == sorted(sum(part) for part in itertools.combinations(numbers.tolist(), 5))


def levels(sums, sizes, chosen, slices=10_000):
    """For each number of units, the share of random slices with p ≤ 0.05, each held against one distribution."""
    total, items = float(sums.sum()), int(sizes.sum())
    drawn = subset_draws(sums, sizes, chosen, np.random.default_rng(11))
    rng = np.random.default_rng(12)
    order = rng.permuted(np.tile(np.arange(sums.size), (slices, 1)), axis=1)
    of_sums, of_sizes = sums[order].cumsum(axis=1), sizes[order].cumsum(axis=1)
    found = {}
    for size in chosen:
        whole = Arrangements(np.sort(statistics_of(*drawn[size], total, items)), whole=False)
        observed = statistics_of(of_sums[:, size - 1], of_sizes[:, size - 1], total, items)
        found[size] = float(np.mean(whole.p_of(observed) <= 0.05))
    return found


@pytest.mark.parametrize("scores", [SKEWED, CONSTANT])
def test_random_slices_get_no_more_stars_than_the_level(scores):
    items = np.random.default_rng(14).choice(scores, 80)
    found = levels(items, np.ones(80, np.int64), range(5, 51))
    assert max(found.values()) <= 0.06, found


@pytest.mark.parametrize("scores", [SKEWED, CONSTANT])
def test_random_slices_of_conversations_get_no_more_stars_than_the_level(scores):
    turns = np.random.default_rng(13).choice(scores, 27)
    found = levels(3 * turns, np.full(27, 3), range(5, 23))
    assert max(found.values()) <= 0.06, found
