"""Whom the pass mark of a qualification lets through."""

from __future__ import annotations

import math

from judging.core.statistics.licence import binomial

OFTEN, SELDOM = 0.9, 0.7  # right nine and seven times in ten
MOST_QUALIFICATION_ITEMS = 100


def needed_right(items: int, mark: float) -> int:
    """How many of `items` must be right for a share of at least `mark` (0…1)."""
    return math.ceil(items * mark - 1e-9)


def passes(right: int, items: int, mark: float) -> bool:
    """Whether a rater with so many items right is let through."""
    return items > 0 and right >= needed_right(items, mark)


def let_through(items: int, mark: float, right: float) -> float:
    """The probability that a rater who is right with probability `right` on each item passes: `P(X >= k)` of a binomial
    distribution, k = `needed_right`. Exact."""
    return float(binomial(items, right)[needed_right(items, mark) :].sum())
