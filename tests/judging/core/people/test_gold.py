"""Known answers: one accepted value, several, or a tolerance."""

from __future__ import annotations

import pytest

from judging.core.people.criteria import Criterion
from judging.core.people.gold import hits_of, is_hit, within
from judging.core.values import Value

FIVE = Criterion(name="m")
STEPS = Criterion(name="m", scale="steps", both_bad=True)
CATEGORIES = Criterion(name="m", scale="categories", categories=("x", "y", "z"))


@pytest.mark.parametrize(
    ("criterion", "value", "steps", "accepted"),
    [
        (FIVE, 4, 0, [4]),
        (FIVE, 4, 1, [4, 3, 5]),
        (FIVE, 5, 2, [5, 4, 3]),
        (STEPS, "A>B", 1, ["A>B", "A>>B", "A=B"]),
        (STEPS, "both_bad", 1, ["both_bad"]),
        (CATEGORIES, "x", 2, ["x"]),
    ],
)
def test_a_tolerance_accepts_what_is_near_on_the_scale(
    criterion: Criterion, value: Value, steps: int, accepted: list[Value]
) -> None:
    assert within(criterion, value, steps) == accepted


def test_each_accepted_value_is_a_hit() -> None:
    assert is_hit([4, 3, 5], 3)
    assert not is_hit([4, 3, 5], 2)
    assert not is_hit(4, None)
    assert hits_of({0: "A>B", 1: [4, 5], 2: True}, {0: "A>B", 1: 5, 2: False}) == 2
