"""The kind of an item's outcome."""

from __future__ import annotations

import pytest

from judging.core.people.criteria import Criterion
from judging.core.people.item_outcomes import kind_of_item, without_majority
from judging.core.values import Value

FIVE, TEN = Criterion(name="m"), Criterion(name="m", scale="ten", max_score=10)
YES_NO = Criterion(name="m", scale="yes_no")
CATEGORIES = Criterion(name="m", scale="categories", categories=("x", "y", "z"))
STEPS, GSB = Criterion(name="m", scale="steps", both_bad=True), Criterion(name="m", scale="gsb")


@pytest.mark.parametrize(
    ("criterion", "values", "kind"),
    [
        (FIVE, [4], "single"),
        (FIVE, [4, 4, 4], "agreed"),
        (FIVE, [4, 5], "agreed"),
        (FIVE, [3, 4, 5], "split"),
        (FIVE, [1, 3], "split"),
        (TEN, [9, 10, 9], "agreed"),
        (TEN, [2, 10], "split"),
        (YES_NO, [True, True], "agreed"),
        (YES_NO, [True, False, True], "split"),
        (CATEGORIES, ["x", "x"], "agreed"),
        (CATEGORIES, ["x", "y"], "split"),
        (STEPS, ["A>B", "A>B"], "agreed"),
        (STEPS, ["A=B", "A=B"], "equal"),
        (STEPS, ["both_bad", "both_bad"], "equal"),
        (STEPS, ["A>>B", "A>B"], "near"),
        (STEPS, ["A>B", "A=B"], "near"),
        (STEPS, ["A=B", "both_bad"], "near"),
        (STEPS, ["A>B", "A=B", "B>A"], "split"),
        (GSB, ["A>B", "B>A"], "split"),
        (GSB, ["B>A"], "single"),
    ],
)
def test_an_outcome_is_said_with_its_kind(criterion: Criterion, values: list[Value], kind: str) -> None:
    assert kind_of_item(criterion, values) == kind


@pytest.mark.parametrize(
    ("labels", "open_item"),
    [
        (["A>B", "B>A"], True),
        (["A>>B", "A>B", "B>A"], False),
        (["A=B", "both_bad"], False),
        (["A>B", "A=B", "B>A"], True),
        (["A>B"], False),
    ],
)
def test_an_item_without_a_majority_is_no_tie(labels: list[str], open_item: bool) -> None:
    assert without_majority(labels) is open_item
