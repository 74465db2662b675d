"""Array types, and what every formula here needs: finite numbers and groups of equal neighbours."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

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


def group_starts(keys: Ints) -> Ints:
    """Where each group of equal neighbours starts: shape (groups,). Equal keys must lie side by side."""
    if keys.size == 0:
        return np.zeros(0, dtype=np.int64)
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    return np.concatenate(([0], changes)).astype(np.int64)


def group_sizes(starts: Ints, total: int) -> Ints:
    """How many members each group has: shape (groups,)."""
    return np.diff(starts, append=total).astype(np.int64)


def group_sums(values: Floats, starts: Ints) -> Floats:
    """The sum of each group: shape (groups,)."""
    if starts.size == 0:
        return np.zeros(0)
    sums: Floats = np.add.reduceat(values, starts)
    return sums


def same(values: Floats) -> bool:
    """Whether nothing varies but rounding. True for no value and for one."""
    if values.size < 2:
        return True
    low, high = float(values.min()), float(values.max())
    return high - low <= ROUNDING * max(1.0, abs(low), abs(high))
