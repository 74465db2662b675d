"""What all candidates of one metric share, so that their figures stand on one scale."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .arrays import Floats, Ints
from .columns import Columns, Kind, Metric, State
from .distribution import Bins, choose_bins


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One metric over all candidates.

    `kind`: what its mean is over: numbers if any value is one, else bools, else categories.
    `low`, `high`: the declared scale (a bool's is 0…1); `lowest`, `highest`: the scale widened by the
    scores met.
    """

    metric: Metric
    kind: Kind
    low: float | None
    high: float | None
    lowest: float | None
    highest: float | None
    bins: Bins | None

    @property
    def threshold(self) -> float | None:
        """From which score a response passes."""
        if self.kind == Kind.BOOL:
            return 1.0
        return self.high if self.metric.pass_threshold is None else self.metric.pass_threshold


def frame(columns: Columns, metric: int) -> Frame:
    """The frame of the metric at that place."""
    mine = columns.metric == metric
    kind = _leading_kind(columns.kind[mine])
    scores: Floats = columns.score[mine & (columns.kind == kind) & (columns.state == State.SCORED)]
    declared = columns.metrics[metric]
    low, high = (0.0, 1.0) if kind == Kind.BOOL else (declared.low, declared.high)
    if kind == Kind.CATEGORY:
        return Frame(declared, kind, None, None, None, None, None)
    lowest = None if low is None else min([low, *_end(scores, np.min)])
    highest = None if high is None else max([high, *_end(scores, np.max)])
    bins = choose_bins(scores, low, high) if scores.size else None
    return Frame(declared, kind, low, high, lowest, highest, bins)


def _leading_kind(kinds: Ints) -> Kind:
    for kind in (Kind.NUMBER, Kind.BOOL, Kind.CATEGORY):
        if np.any(kinds == kind):
            return kind
    return Kind.NONE


def _end(scores: Floats, pick: Callable[[Floats], float]) -> list[float]:
    return [float(pick(scores))] if scores.size else []
