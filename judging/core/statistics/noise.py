"""How much a mean changes by a judge's own variation alone, from its repeated verdicts on the same answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .numeric import UPPER, finite, normal_quantile


def repeat_variance(items: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """The mean variance v within an item's repeats (score units squared), and r, the repeats a score.

    `items`: for each item the repeated scores of which its score is the mean. r is their harmonic mean over items, so
    that v/r is the mean variance of an item's score. None without an item that has two repeats.
    """
    repeated = [np.asarray(scores, np.float64) for scores in items if len(scores) > 1]
    if not repeated:
        return None
    variance = float(np.mean([scores.var(ddof=1) for scores in repeated]))
    return variance, len(repeated) / sum(1 / scores.size for scores in repeated)


def noise_alone(a: tuple[float, float] | None, b: tuple[float, float] | None, items: int) -> float | None:
    """`z √((v_a/r_a + v_b/r_b) / n)`: how far the difference of two means over the same n items lies from 0 in 95 of
    100 repetitions if nothing but the judge's own variation differs. `a`, `b`: as `repeat_variance`; None without
    either.
    """
    if a is None or b is None or items < 1:
        return None
    variance = a[0] / a[1] + b[0] / b[1]
    return finite(normal_quantile(UPPER) * math.sqrt(variance / items))
