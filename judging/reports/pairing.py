"""The items behind a pair of candidates: what each got on average, and who is ahead."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from judging.core.statistics.arrays import Floats
from judging.core.statistics.cells import answers
from judging.core.statistics.columns import Kind, Metric, Table
from judging.core.statistics.gather import Judgement, gather
from judging.core.statistics.means import item_means
from judging.core.statistics.order import ordered
from judging.core.statistics.pairs import TIE

OUTCOMES = ("wins", "ties", "losses")  # of the first of the two


@dataclass(frozen=True, slots=True)
class PairItem:
    """A row that both candidates have a mean score for."""

    line: int
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.a - self.b

    @property
    def outcome(self) -> str:
        """As the report counts it: differences below rounding are ties."""
        if abs(self.difference) <= TIE * max(1.0, abs(self.a), abs(self.b)):
            return "ties"
        return "wins" if self.difference > 0 else "losses"


def pair_items(
    judgements: Iterable[Judgement], metric: Hashable, a: Hashable, b: Hashable, kind: Kind
) -> list[PairItem]:
    """The items that the candidates `a` and `b` share under a metric, the largest difference first.

    `judgements` are those of the metric on the two, as `gather` takes them; `kind` is what the metric's mean is over.
    """
    table = ordered(gather(judgements, {metric: Metric("")}, {a: "a", b: "b"}))
    lines = np.unique(table.columns.row)
    first, second = (_means(table, place, kind) for place in (0, 1))
    shared = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
    items = [PairItem(int(lines[at]), float(first[at]), float(second[at])) for at in shared]
    return sorted(items, key=lambda item: (-abs(item.difference), item.line))


def _means(table: Table, candidate: int, kind: Kind) -> Floats:
    """A candidate's mean for each item (items,), NaN where it has none."""
    scored = answers(table, 0, candidate).of(kind)
    means, items = item_means(scored.score, scored.item)
    spread = np.full(table.items, np.nan)
    spread[items] = means
    return spread
