"""A judge's values paired with people's for each answer."""

import pytest

from judging.core.statistics.drill_down import Paired, paired_under, value_key
from judging.core.statistics.frame import ScaledMetric
from tests.judging.core.statistics.cast import compared, person, said, table

SCALE = ScaledMetric("m", 1, 10)


def paired(*verdicts, metric=SCALE, by="qwen", **options) -> Paired:
    return paired_under(table(verdicts, metric), metric, **options)[by]


def test_without_people_there_is_nothing_to_pair():
    assert paired_under(table([said(3)]), SCALE) == {}


def test_only_answers_with_both_values_are_paired():
    one = paired(said(3), said("?", row=2), said(4, row=3), person(5), person(5, row=2))
    assert (one.rows, one.total) == ([1], 1)


def test_the_largest_difference_comes_first_and_equal_ones_keep_the_order_of_rows():
    one = paired(*(said(5, row=row) for row in (1, 2, 3)), person(4), person(9, row=2), person(6, row=3))
    assert list(zip(one.rows, one.judge, one.people, one.differences, strict=True)) == [
        (2, 5, 9, 4),
        (1, 5, 4, 1),
        (3, 5, 6, 1),
    ]


def test_peoples_value_is_their_mean_and_an_adjudicators_wins():
    decided = said(9, "adjudicator", "adjudicator", row=2)
    one = paired(said(5), person(1), person(4, "Bob"), said(5, row=2), person(1, row=2), decided)
    assert dict(zip(one.rows, one.people, strict=True)) == {1: 2.5, 2: 9}


def test_labels_differ_or_they_do_not():
    metric = ScaledMetric("m")
    one = paired(*(said("good"), said("bad", row=2)), *(person("good"), person("good", row=2)), metric=metric)
    assert list(zip(one.judge, one.people, one.differences, strict=True)) == [
        ("bad", "good", 1),
        ("good", "good", 0),
    ]


def test_bools_stay_bools_and_an_even_split_is_left_out():
    split = [said(True, row=2), person(True, row=2), person(False, "Bob", row=2)]
    one = paired(said(True), person(False), *split, metric=ScaledMetric("m"))
    assert (one.rows, one.judge, one.people) == ([1], [True], [False])


def test_comparisons_differ_by_steps_of_strengths_that_both_know():
    one = paired(compared("A>>B"), compared("B>A", by="Ann", source="rater"), metric=ScaledMetric("m"))
    assert (one.candidates, one.others, one.differences) == (["alpha"], ["beta"], [2])


def test_of_many_only_the_largest_differences_are_kept_and_counted_all():
    verdicts = [one for row in range(1, 10) for one in (said(10, row=row), person(row, row=row))]
    one = paired(*verdicts, most=2)
    assert (one.rows, one.total) == ([1, 2], 9)


def test_values_are_found_as_they_are_or_about_a_number():
    one = paired(said(8), person(7), person(8, "Bob"), said(8, row=2), person(8, row=2))
    assert [one.rows[place] for place in one.places("8", "7.5")] == [1]
    assert sorted(one.rows[place] for place in one.places("8", "~8")) == [1, 2]
    assert one.places("7") == []


@pytest.mark.parametrize(
    ("value", "key"), [(True, "true"), (8.0, "8"), (22 / 3, "7.33333"), ("~1", "~1"), (-0.25, "-0.25")]
)
def test_a_value_has_a_name_in_addresses(value, key):
    assert value_key(value) == key


def test_many_different_numbers_are_rounded():
    few = [one for row in range(1, 6) for one in (said(row, row=row), person(row, row=row))]
    many = [*few, *(person(row + 0.5, "Bob", row=row) for row in range(1, 6))]
    more = [one for row in range(6, 11) for one in (said(row, row=row), person(row - 0.4, row=row))]
    assert not paired(*few).rounded
    assert paired(*many, *more).rounded
