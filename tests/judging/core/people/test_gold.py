"""Known answers: one accepted value, several, or a tolerance."""

from __future__ import annotations

import pytest

from judging.core.people.criteria import Criterion
from judging.core.people.gold import hits_of, is_hit, misses_mark, within
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


@pytest.mark.parametrize(
    ("hits", "items", "missed"),
    [(0, 4, False), (0, 5, True), (1, 5, True), (2, 5, True), (3, 5, False), (7, 10, False), (4, 10, True)],
)
def test_a_mark_is_missed_beyond_chance_after_five_items(hits: int, items: int, missed: bool) -> None:
    assert misses_mark(hits, items, 0.8) is missed


def stopped(right: float, items: int) -> float:
    """The exact probability that a rater misses the mark of 0.8 at one of the first `items` gold items."""
    going, lost = {0: 1.0}, 0.0
    for seen in range(1, items + 1):
        following: dict[int, float] = {}
        for hits, chance in going.items():
            for more, share in ((1, right), (0, 1 - right)):
                following[hits + more] = following.get(hits + more, 0.0) + chance * share
        missed = [hits for hits in following if misses_mark(hits, seen, 0.8)]
        lost += sum(following.pop(hits) for hits in missed)
        going = following
    return lost


def test_raters_who_are_right_nine_times_in_ten_are_hardly_ever_stopped() -> None:
    assert stopped(0.9, 40) < 0.02
    assert stopped(0.5, 40) > 0.9
