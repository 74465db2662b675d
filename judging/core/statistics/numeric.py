"""What the formulas share: array types, finite numbers, quantiles and tails of the normal and the t distribution.

`scipy.special` is imported inside: it costs 50 MB that a web process without a report need not hold
(`scipy.stats` would cost twice that and three times as long).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ROUNDING = 1e-12  # relative; differences below it come from the order of additions, not from the data


def finite(value: float) -> float | None:
    """The value as a Python float, None for NaN and the infinities, which strict JSON cannot say."""
    number = float(value)
    return number if math.isfinite(number) else None


@contextmanager
def quiet() -> Iterator[None]:
    """Overflow gives infinity without a warning: scripts may return 1e300; `finite` makes it None."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield


def same(values: Floats) -> bool:
    """Whether nothing varies but rounding. True for no value and for one."""
    if values.size < 2:
        return True
    low, high = float(values.min()), float(values.max())
    return high - low <= ROUNDING * max(1.0, abs(low), abs(high))


def normal_quantile(probability: float) -> float:
    """z with P(Z <= z) = probability, for 0 < probability < 1."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, df: float) -> float:
    """t with P(T <= t) = probability for `df` > 0 degrees of freedom (Student's t, inverse of its CDF)."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def t_two_sided(statistic: float, df: float) -> float:
    """P(|T| >= |statistic|) for `df` > 0 degrees of freedom."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(statistic)))
