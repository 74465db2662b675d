"""The items behind a pair of candidates: each item's means, and who is ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judging.core.statistics.frame import Kind, of_kind
from judging.core.statistics.means import differences, item_means
from judging.core.statistics.numeric import Bools, Floats, Ints

if TYPE_CHECKING:
    from pandas import DataFrame

OUTCOMES = ("wins", "ties", "losses")  # of the first candidate


@dataclass(frozen=True, slots=True, eq=False)
class ItemMeans:
    """A candidate's mean for each scored item, ordered by line; shapes (items,)."""

    lines: Ints
    means: Floats

    def packed(self) -> bytes:
        return self.lines.astype("<i8").tobytes() + self.means.astype("<f8").tobytes()

    @classmethod
    def unpacked(cls, packed: bytes | memoryview) -> ItemMeans:
        both = memoryview(packed)
        half = len(both) // 2
        return cls(np.frombuffer(both[:half], "<i8"), np.frombuffer(both[half:], "<f8"))


@dataclass(frozen=True, slots=True)
class PairItem:
    """A row with a mean score for both candidates."""

    line: int
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.a - self.b


@dataclass(frozen=True, slots=True, eq=False)
class PairItems:
    """Items shared by two candidates, largest difference first; shapes (items,)."""

    lines: Ints
    a: Floats
    b: Floats

    def __len__(self) -> int:
        return int(self.lines.size)

    def of(self, outcome: str) -> PairItems:
        """Wins, ties or losses of the first, counted as in the report: differences below rounding are ties."""
        here = self._where(outcome)
        return PairItems(self.lines[here], self.a[here], self.b[here])

    def counts(self) -> dict[str, int]:
        return {outcome: int(np.sum(self._where(outcome))) for outcome in OUTCOMES}

    def page(self, first: int, most: int) -> list[PairItem]:
        here = slice(first, first + most)
        columns = self.lines[here].tolist(), self.a[here].tolist(), self.b[here].tolist()
        return [PairItem(line, a, b) for line, a, b in zip(*columns, strict=True)]

    def _where(self, outcome: str) -> Bools:
        sign = {"wins": 1, "ties": 0, "losses": -1}[outcome]
        return np.asarray(np.sign(differences(self.a, self.b)) == sign, dtype=np.bool_)


def pair_items(first: ItemMeans, second: ItemMeans) -> PairItems:
    """The items that have a mean for both."""
    lines, of_first, of_second = np.intersect1d(
        first.lines, second.lines, assume_unique=True, return_indices=True
    )
    a, b = first.means[of_first], second.means[of_second]
    order = np.lexsort((lines, -np.abs(a - b)))
    return PairItems(lines[order], a[order], b[order])


def means_of(judgements: DataFrame, candidate: str, kind: Kind | None) -> ItemMeans:
    """A candidate's item means over its values of one kind. `judgements`: those that the metric's cells include
    (`counted`)."""
    means = item_means(of_kind(judgements[(judgements["candidate"] == candidate).to_numpy()], kind)).dropna()
    return ItemMeans(np.asarray(means.index, dtype=np.int64), np.asarray(means, dtype=np.float64))
