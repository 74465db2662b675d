"""The figures of a fire drill: whether a judge notices known defects, and whether it can be fooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .agreement import alpha_interval, krippendorff_alpha, percent_agreement
from .frame import Level
from .means import estimate_difference, holm, rate_of, sign_test, sign_test_higher
from .numeric import Draws, Floats, finite

HARMFUL = ("truncated", "negated", "numbers", "swapped", "language", "empty")
"""Defects after which a verdict should be lower."""
TEMPTING = ("padded", "verdict", "flattery", "format")
"""Defects after which a verdict should not be higher."""
DEFECTS = (*HARMFUL, *TEMPTING)
ORDER, NOISY, CONSTANT = "order", "noisy", "constant"

FEWEST_ITEMS = 20
NOTICED_ENOUGH = 0.5
TEST_LEVEL = 0.01
RELIABLE = 2 / 3
CONSTANT_SHARE = 0.9

Measure = Literal["value", "label", "comparison"]


@dataclass(frozen=True, slots=True)
class DrilledRow:
    """The judgements of one row, as numbers; None for one without a verdict.

    `first` and `second`: of the untouched answer. `planted`: of the answer with each defect. `lowest` and `highest`:
    the ends of the row's scale, None without one. In comparisons all are −1, 0 or 1: planted or first answer loses,
    neither wins, it wins; the planted one has met the untouched one, so the change is the value itself.
    """

    language: str
    first: float | None
    second: float | None
    planted: Mapping[str, float | None]
    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True, slots=True)
class Drilled:
    """The rows of a drill. `measure`: scores and shares of points, two verdicts or labels with values, or comparisons.
    `orders`: of each comparison seen in both orders, 1 if both named the side shown first, −1 if both named the second,
    0 if the winner did not change."""

    rows: Sequence[DrilledRow]
    measure: Measure = "value"
    orders: Sequence[int] = field(default_factory=tuple)


def drill_document(drilled: Drilled) -> dict[str, Any]:
    """The document of `drill --json`: {defects, order, repeats, constant, flagged}.

    Intervals are of 95 %: those of defects are of (lower − higher) / items, as of a difference of pairs on −1…1. `p` is
    that of the exact test, before Holm's correction over the tests of the drill.
    """
    defects = {name: _defect(name, drilled) for name in DEFECTS}
    order = _order(drilled.orders) if drilled.measure == "comparison" else None
    tested = [defects[name] for name in TEMPTING] + ([order] if order else [])
    for entry, p in zip(tested, holm([entry["p"] for entry in tested]), strict=True):
        entry["flagged"] = p is not None and p < TEST_LEVEL
    repeats, constant = _repeats(drilled), _constant(drilled)
    flags = {name: entry["flagged"] for name, entry in defects.items()}
    flags |= {ORDER: bool(order and order["flagged"])}
    flags |= {NOISY: repeats["flagged"], CONSTANT: constant["flagged"]}
    return {
        "defects": defects,
        "order": order,
        "repeats": repeats,
        "constant": constant,
        "flagged": [name for name, flagged in flags.items() if flagged],
    }


def changes(name: str, drilled: Drilled) -> list[tuple[str, float]]:
    """The items of a defect: the row's language, and its change."""
    moved = ((row.language, change_of(name, row, drilled.measure)) for row in drilled.rows)
    return [(language, change) for language, change in moved if change is not None]


def change_of(name: str, row: DrilledRow, measure: Measure) -> float | None:
    """The verdict with a defect minus that of the untouched answer; None if the row is no item of the defect.

    An answer whose first verdict lies at the end of the scale that the defect leads to cannot move: it is no item.
    """
    planted = row.planted.get(name)
    if planted is None or measure == "comparison":
        return planted
    if row.first is None or row.second is None or not _can_move(name, row, row.first):
        return None
    return planted - row.second


def _can_move(name: str, row: DrilledRow, first: float) -> bool:
    if name in HARMFUL:
        return row.lowest is None or first > row.lowest
    return row.highest is None or first < row.highest


def _defect(name: str, drilled: Drilled) -> dict[str, Any]:
    items = changes(name, drilled)
    entry = _figures(name, [change for _language, change in items])
    languages = sorted({row.language for row in drilled.rows})
    by_language = {
        language: _figures(name, [change for its, change in items if its == language])
        for language in languages
    }
    if any(figures["flagged"] for figures in by_language.values()):
        entry["flagged"] = True
    return entry | {"languages": by_language}


def _figures(name: str, moved: Sequence[float]) -> dict[str, Any]:
    """`flagged` is None for a harmful defect with too few items, and decided later for the tests of tempting ones."""
    signs = np.sign(np.asarray(moved, dtype=np.float64))
    lower, higher = int((signs < 0).sum()), int((signs > 0).sum())
    net = estimate_difference(-signs, width=1)
    noticed = lower if name in HARMFUL else signs.size - higher
    too_few = signs.size < FEWEST_ITEMS
    unnoticed = net.high is not None and net.high < NOTICED_ENOUGH
    return {
        "items": signs.size,
        "lower": lower,
        "higher": higher,
        "equal": signs.size - lower - higher,
        "noticed": noticed,
        "share": noticed / signs.size if signs.size else None,
        "ci_low": net.low,
        "ci_high": net.high,
        "mean_change": finite(float(np.mean(moved))) if signs.size else None,
        "p": None if name in HARMFUL else sign_test_higher(higher, lower),
        "flagged": (None if too_few else unnoticed) if name in HARMFUL else False,
    }


def _order(orders: Sequence[int]) -> dict[str, Any]:
    """Of the comparisons in both orders: the flips, and how many of them named the side shown first."""
    first, second = sum(side > 0 for side in orders), sum(side < 0 for side in orders)
    flips = first + second
    return {
        "pairs": len(orders),
        "flips": flips,
        "first": first,
        "share": first / flips if flips else None,
        "p": sign_test(first, second),
        "flagged": False,
    }


def _repeats(drilled: Drilled) -> dict[str, Any]:
    """How well the two judgements of the untouched answers agree."""
    both = [
        (row.first, row.second) for row in drilled.rows if row.first is not None and row.second is not None
    ]
    ratings = np.asarray(both, dtype=np.float64).reshape(-1, 2)
    level = _level(drilled, ratings)
    low, high = alpha_interval(ratings, np.arange(len(both)), level, Draws())
    return {
        "items": len(both),
        "exact": percent_agreement(ratings),
        "alpha": krippendorff_alpha(ratings, level),
        "ci_low": low,
        "ci_high": high,
        "flagged": high is not None and high < RELIABLE,
    }


def _level(drilled: Drilled, ratings: Floats) -> Level:
    """The level of measurement, as `Verdicts.level`."""
    if drilled.measure != "value":
        return "nominal" if drilled.measure == "label" else "ordinal"
    ends = {end for row in drilled.rows for end in (row.lowest, row.highest)}
    whole = all(end is not None and float(end).is_integer() for end in ends)
    return "ordinal" if whole and np.array_equal(np.floor(ratings), ratings) else "interval"


def _constant(drilled: Drilled) -> dict[str, Any]:
    """The share of the commonest value among all judgements of the drill, with its interval by rows."""
    judged = [
        (value, number)
        for number, row in enumerate(drilled.rows)
        for value in (row.first, row.second, *row.planted.values())
        if value is not None
    ]
    values = np.asarray([value for value, _number in judged], dtype=np.float64)
    rows = np.asarray([number for _value, number in judged], dtype=np.int64)
    if not values.size:
        return {"share": None, "ci_low": None, "ci_high": None, "flagged": False}
    kinds, counts = np.unique(values, return_counts=True)
    is_commonest = (values == kinds[counts.argmax()]).astype(np.float64)
    rate = rate_of(is_commonest, rows)
    flagged = rate.low is not None and rate.low > CONSTANT_SHARE
    return {"share": rate.rate, "ci_low": rate.low, "ci_high": rate.high, "flagged": flagged}
