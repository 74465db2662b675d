"""How scores are spread over the scale: bins and histograms, and the round numbers of bins and axes."""

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from .numeric import Floats

MOST_INTEGER_BINS = 21
EVEN_BINS = 10


class BinCount(TypedDict):
    """`count` scores with low <= score < high; the last bin takes high too; a whole number's bin: low = high."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins that a metric's candidates share. `integral`: one a whole number, else `edges` (bins + 1,)."""

    edges: Floats
    integral: bool


def choose_bins(scores: Floats, low: float | None, high: float | None) -> Bins | None:
    """Bins over the scale low…high, widened to hold every score; None where there is neither.

    In score units; an end is None where none is declared. One bin a whole number where the scores and the
    ends are whole and at most 21 of them; else up to ten even bins whose width is 1, 2 or 5 times a power
    of ten.
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
    """Counts scores (responses,) into bins; every score must lie within them."""
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
    """Whether floats can tell bin edges between the two apart."""
    width = last - first
    return math.isfinite(width) and width > max(1e-300, 1e-12 * max(abs(first), abs(last)))


def nice_step(raw: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `raw` > 0 (Heckbert 1990)."""
    power = math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10):
        step = _decimal(factor, power)
        if step >= raw * (1 - 1e-9):
            return step
    return _decimal(10, power)


def step_digits(step: float) -> int:
    """How many decimals multiples of a nice step need."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def multiples(low: float, high: float, step: float) -> list[float]:
    """The multiples of a nice `step` from the one at or below `low` to the one at or above `high`."""
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = step_digits(step)
    return [round(place * step, digits) for place in range(first, last + 1)]


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round, evenly spaced numbers that enclose low…high: about `about` of them, at least two."""
    if not high > low:
        low, high = low - 0.5, low + 0.5
    return multiples(low, high, nice_step((high - low) / about))


def _decimal(factor: int, power: int) -> float:
    return factor * 10.0**power if power >= 0 else factor / 10.0**-power
