"""Size of the differences between raters."""

from __future__ import annotations

from typing import Any

import pytest

from judging.core.people.criteria import Criterion
from judging.people.adjudication import difference

CASES: list[tuple[dict[str, Any], list[Any], float]] = [
    ({"scale": "five"}, [3, 3, 3], 0),
    ({"scale": "five"}, [1, 5], 1),
    ({"scale": "ten"}, [1, 10, 4], 1),
    ({"scale": "yes_no"}, [True, False], 1),
    ({"scale": "steps"}, ["A>>B", "B>>A"], 1),
    ({"scale": "steps"}, ["A>B", "A>>B"], 0.25),
    ({"scale": "gsb"}, ["A>B", "B>A"], 1),
    ({"scale": "steps", "both_bad": True}, ["A=B", "both_bad"], 0.1),
    ({"scale": "categories", "categories": ("x", "y")}, ["x", "x", "y"], 0.5),
    ({"scale": "text"}, ["one", "another"], 0),
]


@pytest.mark.parametrize(("scale", "values", "wanted"), CASES)
def test_the_difference_is_a_share_of_the_scale(
    scale: dict[str, Any], values: list[Any], wanted: float
) -> None:
    criteria = {0: Criterion(name="a", **scale)}
    assert difference(criteria, [{0: value} for value in values]) == pytest.approx(wanted)


def test_the_criterion_on_which_they_differ_most_counts() -> None:
    criteria = {0: Criterion(name="a"), 1: Criterion(name="b")}
    assert difference(criteria, [{0: 3, 1: 1}, {0: 3, 1: 5}]) == 1


def test_one_rating_differs_from_nothing() -> None:
    assert difference({0: Criterion(name="a")}, [{0: 3}]) == 0
