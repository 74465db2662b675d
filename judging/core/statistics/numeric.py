"""Shared numerics: normal and t quantiles, the bootstrap, confidence sequences, round numbers for bins and axes.

`scipy.special` is imported in functions: it costs 50 MB, which a web process that builds no report does not need
(`scipy.stats` would cost twice that and take three times as long).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypedDict

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEVEL = 0.95  # of every interval
UPPER = 0.5 + LEVEL / 2  # the quantile at which an interval ends
POWER = 0.8  # of the smallest detectable difference and the items needed
ROUNDING = 1e-12  # relative; smaller differences come from the order of additions, not from the data


def finite(value: float) -> float | None:
    """The value as a Python float; None for NaN and infinity, which strict JSON does not allow."""
    number = float(value)
    return number if math.isfinite(number) else None


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress overflow warnings: scripts may return 1e300; `finite` turns the resulting infinity into None."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield


def same(values: Floats) -> bool:
    """Whether all values are equal up to rounding. True for no value and for one."""
    if values.size < 2:
        return True
    low, high = float(values.min()), float(values.max())
    return high - low <= ROUNDING * max(1.0, abs(low), abs(high))


def normal_quantile(probability: float) -> float:
    """z with P(Z <= z) = probability, for 0 < probability < 1."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, df: float) -> float:
    """t with P(T <= t) = probability for `df` > 0 degrees of freedom (Student's t, inverse of its CDF)."""
    from scipy.special import stdtrit  # imported here and below so that start-up does not wait for scipy

    return float(stdtrit(df, probability))


def t_two_sided(statistic: float, df: float) -> float:
    """P(|T| >= |statistic|) for `df` > 0 degrees of freedom."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(statistic)))


def z_two_sided(statistic: float) -> float:
    """P(|Z| >= |statistic|) of the standard normal distribution."""
    return math.erfc(abs(statistic) / math.sqrt(2))


DRAWS = 1000
MOST_UNITS = 1000
"""With more units than this, they are assigned at random to this many groups, which are resampled whole.

The spread stays the same.
"""


@dataclass(frozen=True, slots=True)
class Draws:
    """Seeded bootstrap draws, reproducible for the same seed and clusters."""

    seed: int = 0
    count: int = DRAWS

    def of(self, clusters: Ints) -> tuple[Floats, Ints]:
        """How often each unit is drawn, (draws, units), and the unit of each item, (items,).

        `clusters` (items,): items to be resampled together. Source: Efron and Tibshirani, "An Introduction to the
        Bootstrap", 1993; the random groups of many units: Wolter, "Introduction to Variance Estimation", 2007, chapter
        2.
        """
        rng = np.random.default_rng(self.seed)
        _, member = np.unique(clusters, return_inverse=True)
        units = int(member.max()) + 1 if member.size else 0
        if units > MOST_UNITS:
            groups = rng.permutation(units) % MOST_UNITS
            member, units = groups[member], MOST_UNITS
        drawn = rng.integers(units, size=(self.count, units)) + units * np.arange(self.count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=self.count * units)
        return counts.reshape(self.count, units).astype(np.float64), member.astype(np.int64)

    def sums(self, clusters: Ints, parts: Floats) -> Floats:
        """The sum of the items' parts (items, parts) in each draw: (draws, parts)."""
        drawn, member = self.of(clusters)
        of_units = np.zeros((drawn.shape[1], parts.shape[1]))
        np.add.at(of_units, member, parts)
        return np.asarray(drawn @ of_units, dtype=np.float64)


FEWEST_RESAMPLED = 10  # independent rows
MOST_UNDEFINED = 0.05  # share of the draws


def percentiles(values: Floats, units: int, upper: float = UPPER) -> tuple[float | None, float | None]:
    """The percentile interval of bootstrap values (draws,) over `units` independent rows.

    `upper`: the quantile at which it ends. None with fewer than ten rows, or if more than 5 % of the draws are
    undefined.
    """
    defined = values[np.isfinite(values)]
    if units < FEWEST_RESAMPLED or values.size - defined.size > MOST_UNDEFINED * values.size:
        return None, None
    low, high = np.quantile(defined, [1 - upper, upper])
    return finite(low), finite(high)


LARGEST_BET = 0.5  # λ is clipped here, as the paper advises; any number below 1 is valid


@dataclass(frozen=True, slots=True)
class MeanBounds:
    """Lower and upper bound of a mean, in the unit of the values."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def mean_so_far(values: Sequence[float], low: float, high: float, alpha: float = 0.05) -> MeanBounds:
    """A confidence sequence for the mean of values, given in the order in which they came.

    The intersection of the intervals after each value. With probability 1 - alpha it contains the mean at all times at
    once, for independent values of any distribution, so stopping as soon as it is narrow enough is valid.

    The predictable plug-in empirical-Bernstein confidence sequence (Waudby-Smith & Ramdas 2023, "Estimating means of
    bounded random variables by betting", JRSS-B 86, theorem 2). Raises ValueError if a value is outside `low` … `high`.
    """
    scaled = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    if not scaled.size:
        return MeanBounds(low, high)
    if not (np.all(scaled >= 0) and np.all(scaled <= 1)):
        raise ValueError("a value lies outside its bounds")
    count = np.arange(1, scaled.size + 1)
    means = (0.5 + np.cumsum(scaled)) / (count + 1)
    variances = (0.25 + np.cumsum((scaled - means) ** 2)) / (count + 1)
    # A bet may only use earlier values.
    means_before = np.concatenate(([0.5], means[:-1]))
    variances_before = np.concatenate(([0.25], variances[:-1]))
    bets = np.minimum(
        np.sqrt(2 * np.log(2 / alpha) / (variances_before * count * np.log(1 + count))), LARGEST_BET
    )
    surprise = (scaled - means_before) ** 2 * (-np.log1p(-bets) - bets)
    total = np.cumsum(bets)
    centre = np.cumsum(bets * scaled) / total
    margin = (np.log(2 / alpha) + np.cumsum(surprise)) / total
    least = max(0.0, float(np.max(centre - margin)))
    most = min(1.0, float(np.min(centre + margin)))
    if least > most:  # has a probability of at most alpha
        least = most = (least + most) / 2
    return MeanBounds(low + least * (high - low), low + most * (high - low))


MOST_INTEGER_BINS = 21
EVEN_BINS = 10


class BinCount(TypedDict):
    """`count` scores with low <= score < high; the last bin includes high. The bin of a whole number has low = high."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins shared by a metric's candidates. `integral`: one bin per whole number; otherwise `edges` (bins + 1,)."""

    edges: Floats
    integral: bool


def choose_bins(scores: Floats, low: float | None, high: float | None) -> Bins | None:
    """Bins over the scale low…high, widened to include every score; None without a scale and scores.

    In score units; an end is None if it is not declared. One bin per whole number if the scores and ends are whole and
    span at most 21 numbers; otherwise up to about ten even bins whose width is 1, 2 or 5 times a power of ten.
    """
    ends = [float(end) for end in (low, high) if end is not None]
    if scores.size:
        ends += [float(scores.min()), float(scores.max())]
    if not ends:
        return None
    first, last = min(ends), max(ends)
    whole = first.is_integer() and last.is_integer() and bool(np.all(scores == np.floor(scores)))
    if whole and last - first < MOST_INTEGER_BINS:
        numbers = first + np.arange(int(last - first) + 1)
        return Bins(numbers.astype(np.float64), integral=True)
    if not _divisible(first, last):
        return Bins(np.array([first, last]), integral=False)
    return Bins(np.array(multiples(first, last, nice_step((last - first) / EVEN_BINS))), integral=False)


def histogram(scores: Floats, bins: Bins) -> list[BinCount]:
    """Count scores (responses,) per bin; every score must be within the bins."""
    if bins.integral:
        counts = np.bincount((scores - bins.edges[0]).astype(np.int64), minlength=bins.edges.size)
        return [
            BinCount(low=int(value), high=int(value), count=int(n))
            for value, n in zip(bins.edges, counts, strict=True)
        ]
    last = bins.edges.size - 2
    place = np.clip(np.searchsorted(bins.edges, scores, side="right") - 1, 0, last)
    counts = np.bincount(place, minlength=last + 1)
    return [
        BinCount(low=float(low), high=float(high), count=int(n))
        for low, high, n in zip(bins.edges[:-1], bins.edges[1:], counts, strict=True)
    ]


def _divisible(first: float, last: float) -> bool:
    """Whether floats can represent distinct bin edges between the two."""
    width = last - first
    return math.isfinite(width) and width > max(1e-300, 1e-12 * max(abs(first), abs(last)))


def nice_step(raw: float) -> float:
    """The smallest number of the form 1, 2 or 5 times a power of ten that is at least `raw` > 0 (Heckbert 1990)."""
    power = math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10):
        step = _decimal(factor, power)
        if step >= raw * (1 - 1e-9):
            return step
    return _decimal(10, power)


def step_digits(step: float) -> int:
    """How many decimals the multiples of a nice step need."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def multiples(low: float, high: float, step: float) -> list[float]:
    """The multiples of a nice `step` from the one at or below `low` to the one at or above `high`."""
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = step_digits(step)
    return [round(place * step, digits) for place in range(first, last + 1)]


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round, evenly spaced numbers that enclose low…high: approximately `about` of them, at least two."""
    if not high > low:
        low, high = low - 0.5, low + 0.5
    return multiples(low, high, nice_step((high - low) / about))


def _decimal(factor: int, power: int) -> float:
    return factor * 10.0**power if power >= 0 else factor / 10.0**-power
