"""Values accepted by scales, and a comparison's verdict seen from either side."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, THREE_STEPS, turned
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import (
    Criterion,
    ValuesRefused,
    accepted,
    active_seconds,
    canonical,
    outcome_of,
    problem_of,
)

FIVE = Criterion(name="quality")


@pytest.mark.parametrize("value", [0, 6, 2.5, 3.0, "3", True, [3], math.nan])
def test_a_scale_of_five_takes_whole_numbers_from_one_to_five(value: Any) -> None:
    assert problem_of(FIVE, value) == "not_on_scale"
    assert problem_of(FIVE, 5) == ""


@pytest.mark.parametrize("value", [1, 0, "yes", "true"])
def test_yes_or_no_takes_nothing_else(value: Any) -> None:
    assert problem_of(Criterion(name="a", scale="yes_no"), value) == "not_on_scale"


def test_a_category_is_one_of_those_named() -> None:
    criterion = Criterion(name="a", scale="categories", categories=("好", "bad"))
    assert (problem_of(criterion, "好"), problem_of(criterion, "Bad")) == ("", "not_on_scale")


def test_both_bad_is_taken_only_where_it_is_offered() -> None:
    assert problem_of(Criterion(name="a", scale="gsb"), BOTH_BAD) == "not_on_scale"
    assert problem_of(Criterion(name="a", scale="gsb", both_bad=True), BOTH_BAD) == ""


def test_good_same_bad_knows_no_strong_preference() -> None:
    assert Criterion(name="a", scale="gsb").choices == THREE_STEPS
    assert problem_of(Criterion(name="a", scale="gsb"), "A>>B") == "not_on_scale"


def test_every_value_that_does_not_fit_is_named() -> None:
    criteria = {0: FIVE, 1: Criterion(name="b", required=False)}
    with pytest.raises(ValuesRefused) as refused:
        accepted(criteria, {1: 9, 7: 1})
    assert refused.value.codes == {0: "missing", 1: "not_on_scale", 7: "unknown"}


def test_what_is_not_required_may_be_left_empty() -> None:
    criteria = {0: FIVE, 1: Criterion(name="why", scale="text", required=False)}
    assert accepted(criteria, {0: 3, 1: "  "}) == {0: 3}


@given(st.sampled_from([*COMPARISON_CODES, BOTH_BAD, 3, True]))
def test_turned_twice_is_as_it_was(value: Any) -> None:
    assert turned(turned(value)) == value


def test_only_comparisons_are_turned_and_only_where_the_other_was_left() -> None:
    criteria = {0: Criterion(name="a", scale="steps"), 1: Criterion(name="b", scale="text")}
    assert canonical(criteria, {0: "A>B", 1: "A>B"}, 2) == {0: "B>A", 1: "A>B"}
    assert canonical(criteria, {0: "A>B"}, 1) == {0: "A>B"}


def test_a_left_out_value_and_a_text_are_no_scores() -> None:
    assert outcome_of(FIVE, None).reason == "left_empty"
    found = outcome_of(Criterion(name="why", scale="text"), "因为")
    assert (found.state, found.reason, found.detail) == ("no_score", "free_text", "因为")


def test_a_criterion_reads_back_equal_and_as_a_metric_with_its_scale() -> None:
    criterion = Criterion(name="a", scale="ten", guideline="**x**", min_score=1, max_score=10)
    assert Criterion.from_json(criterion.to_json()) == criterion
    assert MetricDefinition.from_json(criterion.to_json()).max_score == 10


@pytest.mark.parametrize("found", [math.nan, math.inf, -3, "8", None, True])
def test_nonsense_for_a_time_is_no_time(found: Any) -> None:
    assert active_seconds(found) == 0
    assert active_seconds(99_999) == 3600
