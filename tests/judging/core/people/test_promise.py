"""How many items a rater is told of, and gets at most."""

from dataclasses import replace

import pytest

from judging.core.people.promise import Work, items_each, raised

WORK = Work(seats=480, raters=20, items=160)


def test_all_do_an_equal_part() -> None:
    assert items_each(WORK) == 24


def test_a_part_is_rounded_up_so_that_no_rating_is_left() -> None:
    assert items_each(replace(WORK, raters=19)) == 26
    assert 26 * 19 >= 480


def test_the_quota_is_the_limit() -> None:
    assert items_each(WORK, quota=10) == 10
    assert items_each(WORK, quota=100) == 24


def test_nobody_rates_an_item_twice() -> None:
    assert items_each(replace(WORK, raters=1)) == 160


def test_gold_and_repeats_come_on_top_as_far_as_there_are_any() -> None:
    assert items_each(replace(WORK, gold=50, gold_share=0.2)) == 24 + 6
    assert items_each(replace(WORK, gold=2, gold_share=0.2)) == 24 + 2
    assert items_each(replace(WORK, repeats=16, repeat_share=0.1)) == 24 + 3


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_shares_that_leave_nothing_are_bounded(share: float) -> None:
    assert items_each(replace(WORK, gold=9, gold_share=share, repeats=9, repeat_share=share)) <= 24 + 18


def test_without_raters_one_is_assumed_and_without_items_there_is_nothing() -> None:
    assert items_each(replace(WORK, raters=0)) == 160
    assert items_each(Work(seats=0, raters=3, items=0)) == 0


def test_the_number_rises_as_far_as_ratings_are_left_uncovered() -> None:
    assert raised(24, left=100, rooms=[40, 60], most=50) == 24
    assert raised(24, left=105, rooms=[40, 60], most=50) == 27
    assert raised(24, left=500, rooms=[0, 0], most=50) == 50
    assert raised(24, left=500, rooms=[], most=50) == 24
