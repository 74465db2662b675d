"""How much pages about judgements may read, in one object, so that a test can pass a smaller one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`few`: matches that are sorted instead of searched for in order. `entries`: entries of an order's index that are
    looked at for one page. `judgements`: judgements that are looked at if they, their rows or texts must be read;
    `scattered`: the same in other orders than by position, where each is at another place on disk. The first query
    reads `window` of them, the others at most four times as many, because a database then looks up each reply instead
    of scanning them all. `counted`: matches that are counted. `lines`: rows of the search index that are checked one
    by one.
    """

    few: int = 2_000
    entries: int = 100_000
    judgements: int = 15_000
    scattered: int = 5_000
    window: int = 1_000
    counted: int = 10_000
    lines: int = 200

    def windows(self, *, covered: bool, by_position: bool) -> Iterator[int]:
        """How many judgements to look at, query by query. `covered`: the order's index suffices."""
        if covered:
            yield self.entries
            return
        left, size = self.judgements if by_position else self.scattered, self.window
        while left > 0:
            yield min(size, left)
            left, size = left - size, min(2 * size, 4 * self.window)


LIMITS = Limits()
