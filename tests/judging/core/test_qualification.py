"""Whom a qualification's pass mark lets through."""

from __future__ import annotations

from math import comb

import pytest

from judging.core.people.qualification import let_through, needed_right, passes


def test_eight_of_ten_lets_93_and_38_of_100_through() -> None:
    assert [round(100 * let_through(10, 0.8, right)) for right in (0.9, 0.7)] == [93, 38]


@pytest.mark.parametrize(
    ("items", "mark", "needed"),
    [(10, 0.8, 8), (5, 0.8, 4), (10, 0.7, 7), (3, 0.5, 2), (7, 1.0, 7), (10, 0.01, 1)],
)
def test_the_mark_is_a_share_of_the_items(items: int, mark: float, needed: int) -> None:
    assert needed_right(items, mark) == needed
    assert (passes(needed, items, mark), passes(needed - 1, items, mark)) == (True, False)


@pytest.mark.parametrize("right", [0.0, 0.3, 0.85, 1.0])
def test_the_probability_is_the_binomial_tail(right: float) -> None:
    tail = sum(comb(12, k) * right**k * (1 - right) ** (12 - k) for k in range(9, 13))
    assert let_through(12, 0.75, right) == pytest.approx(tail, abs=1e-12)
