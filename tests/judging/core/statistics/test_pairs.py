import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.means import Estimate, holm, items_needed, paired_difference, smallest_difference

# Student, Biometrika 6, 1908: additional hours of sleep of ten patients under two drugs
DRUG_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
DRUG_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def test_students_sleep_data_give_the_published_figures():
    got = paired_difference(DRUG_2, DRUG_1)
    assert got.estimate.mean == pytest.approx(1.58)
    assert got.p == pytest.approx(0.002833, abs=1e-6)
    assert (got.estimate.low, got.estimate.high) == pytest.approx((0.7001142, 2.4598858))


def test_p_equals_scipys():
    assert paired_difference(DRUG_1, DRUG_2).p == pytest.approx(stats.ttest_rel(DRUG_1, DRUG_2).pvalue)


def test_wins_ties_and_losses_are_counted_from_the_first_ones_side():
    got = paired_difference(DRUG_1, DRUG_2)
    assert (got.wins, got.ties, got.losses) == (0, 1, 9)


def test_a_difference_by_rounding_is_a_tie():
    got = paired_difference(np.array([0.1 + 0.2, 1.0]), np.array([0.3, 2.0]))
    assert (got.wins, got.ties, got.losses) == (0, 1, 1)


def test_equal_candidates_cannot_be_distinguished():
    got = paired_difference(DRUG_1, DRUG_1)
    assert (got.estimate.mean, got.p) == (0.0, 1.0)


@pytest.mark.parametrize(("n", "p"), [(2, 0.5), (6, 2 / 64)])
def test_a_constant_difference_is_tested_by_its_sign(n, p):
    assert paired_difference(np.full(n, 3.0), np.full(n, 2.0)).p == pytest.approx(p)


@pytest.mark.parametrize("n", [0, 1])
def test_less_than_two_items_test_nothing(n):
    got = paired_difference(DRUG_1[:n], DRUG_2[:n])
    assert (got.p, got.estimate.low) == (None, None)


def test_items_of_one_cluster_prove_less():
    alone = paired_difference(DRUG_1, DRUG_2)
    grouped = paired_difference(np.repeat(DRUG_1, 3), np.repeat(DRUG_2, 3), np.repeat(range(10), 3))
    assert grouped.p == pytest.approx(alone.p)


def test_holms_correction_worked_out_by_hand():
    # ascending: .005 * 4, .01 * 3, .03 * 2, and .04 * 1 raised to the .06 before it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_never_exceeds_one_and_leaves_the_untested_out():
    assert holm([0.9, None, 0.8]) == [1.0, None, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("effect", "n"), [(0.5, 34), (0.2, 199), (0.8, 15)])
def test_items_needed_are_those_of_the_power_tables(effect, n):
    # Cohen's d for a paired t test, two-sided 5 %, power 80 %: G*Power gives 34, 199 and 15
    pilot = Estimate(0.1, 1 / np.sqrt(50), None, None, 50, 50)  # spread 1 over 50 items
    assert items_needed(pilot, effect) == pytest.approx(n, abs=0)


def test_the_smallest_difference_is_what_so_many_items_are_needed_for():
    pilot = Estimate(0.1, 1 / np.sqrt(34), None, None, 34, 34)
    shown = smallest_difference(pilot)
    assert shown == pytest.approx(0.495, abs=0.001)
    assert items_needed(pilot, shown) == 34


def test_items_in_clusters_are_needed_in_greater_number():
    pilot = Estimate(0.1, 0.2, None, None, 100, 25)
    assert items_needed(pilot, 0.3) > items_needed(Estimate(0.1, 0.2, None, None, 100, 100), 0.3)


def test_without_spread_there_is_no_telling_how_many_items_are_needed():
    assert smallest_difference(Estimate(1.0, 0.0, 1.0, 1.0, 5, 5)) is None
    assert items_needed(Estimate(1.0, None, None, None, 1, 1), 0.5) is None
