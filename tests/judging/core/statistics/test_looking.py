"""When a look has probably seen the kinds of failures, and how large a group is."""

import numpy as np
import pytest

from judging.core.statistics.intervals import wilson
from judging.core.statistics.looking import group_share, quiet_failures, unseen_share
from judging.core.statistics.means import rate_of
from tools.bench.coverage import unseen_above

PASS, FAIL, NEW = (True, False), (False, False), (False, True)


@pytest.mark.parametrize(
    ("answers", "quiet"),
    [
        ([], 0),
        ([NEW], 0),
        ([NEW, *[FAIL] * 10], 10),
        ([NEW, *[FAIL, PASS] * 10], 10),
        ([*[FAIL] * 9, NEW, FAIL], 1),
        ([*[PASS] * 30], 0),
    ],
)
def test_only_failing_answers_without_a_new_kind_count(answers, quiet):
    assert quiet_failures(answers) == quiet


def test_ten_leave_about_a_quarter_unseen_and_thirty_a_tenth():
    assert [round(unseen_share(quiet), 2) for quiet in (0, 10, 30)] == [1, 0.26, 0.1]


def test_looks_seldom_end_with_more_unseen_than_they_say():
    assert unseen_above(np.full(10, 0.1), draws=300) < 0.1


def test_a_group_of_an_even_draw_has_wilsons_interval():
    members = np.arange(40) < 10
    share, interval = group_share(members)
    assert (share, interval) == (0.25, pytest.approx(wilson(0.25, 40)))


def test_a_weighted_draw_counts_as_fewer_answers():
    members, weights = np.array([True, False, False, True]), np.array([1.0, 1, 2, 4])
    share, interval = group_share(members, weights)
    assert share == 5 / 8
    assert interval == pytest.approx(wilson(5 / 8, 64 / 22))


def test_answers_to_one_row_count_as_one_trial():
    members, weights = np.array([True, True, False]), np.array([2.0, 4, 2])
    share, interval = group_share(members, weights, np.array([7, 7, 8]))
    assert interval == pytest.approx(wilson(share, 1 / (0.75**2 + 0.25**2)))


def test_an_even_draw_of_several_answers_a_row_has_the_rate_by_rows():
    members, rows = np.arange(40) % 4 == 0, np.arange(40) // 2
    rate = rate_of(members.astype(float), rows)
    assert group_share(members, None, rows) == (rate.rate, (rate.low, rate.high))


def test_a_weighted_draw_covers_the_share_of_the_population():
    order = np.random.default_rng(37)
    fails = order.random(2_000) < 0.1
    chance = np.where(fails | (order.random(2_000) < 0.2), 0.12, 0.02)
    covered = 0
    for _draw in range(400):
        drawn = np.flatnonzero(order.random(2_000) < chance)
        _share, (low, high) = group_share(fails[drawn], 1 / chance[drawn])
        covered += low <= fails.mean() <= high
    assert covered >= 372


def test_no_answer_has_no_share():
    assert group_share(np.zeros(0, dtype=bool)) == (0, (None, None))
