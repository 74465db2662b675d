"""How much a mean changes by a judge's own variation alone, from its repeated verdicts on the same answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .numeric import UPPER, finite, normal_quantile


def repeat_variance(items: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float] | None:
    """The mean variance v within an item's repeats (score units squared), and r, the repeats a score.

    `items`: for each item each judge's repeated scores; the item's score is the mean of all. An item's variance is that
    within its judges, by their numbers of repeats. r is the harmonic mean over items of how many scores the item has,
    so that v/r is the mean variance of an item's score. None without an item that every judge has scored twice.
    """
    repeated = [
        [np.asarray(scores, np.float64) for scores in judges]
        for judges in items
        if len(judges) and all(len(scores) > 1 for scores in judges)
    ]
    if not repeated:
        return None
    counts = [sum(scores.size for scores in judges) for judges in repeated]
    sums = [sum(scores.size * scores.var(ddof=1) for scores in judges) for judges in repeated]
    variance = float(np.mean([total / count for total, count in zip(sums, counts, strict=True)]))
    return variance, len(counts) / sum(1 / count for count in counts)


def noise_alone(a: tuple[float, float] | None, b: tuple[float, float] | None, items: int) -> float | None:
    """`z √((v_a/r_a + v_b/r_b) / n)`: how far the difference of two means over the same n items lies from 0 in 95 of
    100 repetitions if nothing but the judge's own variation differs. `a`, `b`: as `repeat_variance`; None without
    either.
    """
    if a is None or b is None or items < 1:
        return None
    variance = a[0] / a[1] + b[0] / b[1]
    return finite(normal_quantile(UPPER) * math.sqrt(variance / items))
