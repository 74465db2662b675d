"""Scores of lines → one score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

Score = int | float


def aggregate(name: str, scores: Sequence[Score]) -> Score:
    """min, max, mean, median or mode (the lowest of those that tie) of at least one score."""
    return _AGGREGATES[name](scores)


def _mean(scores: Sequence[Score]) -> Score:
    mean = math.fsum(scores) / len(scores)
    # Rounding must not carry it past the scores themselves.
    return min(max(mean, min(scores)), max(scores))


def _median(scores: Sequence[Score]) -> Score:
    ordered = sorted(scores)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else _mean(ordered[middle - 1 : middle + 1])


def _mode(scores: Sequence[Score]) -> Score:
    counts = Counter(scores)
    most = max(counts.values())
    return min(score for score, count in counts.items() if count == most)


_AGGREGATES: dict[str, Callable[[Sequence[Score]], Score]] = {
    "min": min,
    "max": max,
    "mean": _mean,
    "median": _median,
    "mode": _mode,
}
