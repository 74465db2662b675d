"""When a look has probably seen the kinds of failures, and how large a group is."""

import numpy as np
import pytest

from judging.core.statistics.intervals import wilson
from judging.core.statistics.looking import group_share, quiet_failures, unseen_share
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


def test_no_answer_has_no_share():
    assert group_share(np.zeros(0, dtype=bool)) == (0, (None, None))
