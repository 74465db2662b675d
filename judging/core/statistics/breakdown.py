"""The cells again for the rows of each value of a field, and where a value differs from the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .cells import metric_cells, scale_of
from .document import Breakdown, Cell, Deviation
from .frame import Metric, of_kind
from .means import Estimate, estimate_mean, item_means, item_units
from .numeric import finite, t_quantile, t_two_sided
from .verdicts import counted

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_VALUES = 50


def breakdown(
    frame: DataFrame, metrics: Sequence[Metric], field: str, values: Mapping[int, str], level: float = 0.95
) -> Breakdown:
    """The cells of an ordered table by the values of a field, `values` {row: value}; rows without one count as ''.

    The most frequent values are kept, in the order of their names. `p_bh` is corrected over all comparisons.
    """
    rows = frame["row"].to_numpy()
    known, place = np.unique(rows, return_inverse=True)
    value_of_row = np.array([values.get(int(row), "") for row in known], dtype=object)
    frequent = Counter(value_of_row.tolist()).most_common()
    kept = sorted(value for value, _ in frequent[:MOST_VALUES])
    frame = frame.assign(part=value_of_row[place] if len(rows) else value_of_row)
    cells: dict[str, dict[str, dict[str, Cell]]] = {value: {} for value in kept}
    deviations: list[Deviation] = []
    for metric in metrics:
        mine = counted(frame, metric)
        _add_cells(cells, mine, metric, level)
        deviations += _deviations(mine, metric, kept, level)
    corrected = benjamini_hochberg([one["p"] for one in deviations])
    for one, p in zip(deviations, corrected, strict=True):
        one["p_bh"] = p
    left_out = max(0, len(frequent) - MOST_VALUES)
    return Breakdown(field=field, values=cells, comparisons=deviations, left_out=left_out)


def _add_cells(
    cells: dict[str, dict[str, dict[str, Cell]]], mine: DataFrame, metric: Metric, level: float
) -> None:
    scale = scale_of(mine, metric)
    names = [str(name) for name in mine["candidate"].cat.categories]
    clustered = bool(mine["cluster"].notna().any())
    parts = dict(iter(mine.groupby("part")))
    for value, by_candidate in cells.items():
        part = parts.get(value, mine.iloc[:0])
        found, _means = metric_cells(part, scale, names, clustered=clustered, level=level)
        for name, cell in found.items():
            by_candidate.setdefault(name, {})[metric.name] = cell


def _deviations(mine: DataFrame, metric: Metric, kept: Sequence[str], level: float) -> list[Deviation]:
    """Of each value and candidate; none where the metric has no mean."""
    scale = scale_of(mine, metric)
    if scale.kind in (None, "category"):
        return []
    found = []
    for name, cell in of_kind(mine, scale.kind).groupby("candidate", observed=True):
        means = np.asarray(item_means(cell), dtype=np.float64)
        units = item_units(cell)
        part = cell.drop_duplicates("row")["part"].to_numpy()
        for value in kept:
            here = part == value
            a, b = (estimate_mean(means[one], units[one], level) for one in (here, ~here))
            found.append(_deviation(value, str(name), metric.name, a, b, level))
    return found


def _deviation(value: str, candidate: str, metric: str, a: Estimate, b: Estimate, level: float) -> Deviation:
    """Welch's t test of two means of different rows: `t = (a - b) / sqrt(se_a² + se_b²)`, with the degrees of freedom
    of Welch and Satterthwaite. Source: Welch, Biometrika 34, 1947."""
    difference = None if a.mean is None or b.mean is None else a.mean - b.mean
    low = high = p = None
    if difference is not None and a.se is not None and b.se is not None and a.se + b.se > 0:
        error = math.hypot(a.se, b.se)
        df = 1 / ((a.se / error) ** 4 / (a.clusters - 1) + (b.se / error) ** 4 / (b.clusters - 1))
        reach = t_quantile(0.5 + level / 2, df) * error
        low, high, p = (
            finite(difference - reach),
            finite(difference + reach),
            t_two_sided(difference / error, df),
        )
    return Deviation(
        value=value,
        candidate=candidate,
        metric=metric,
        items=a.items,
        difference=None if difference is None else finite(difference),
        ci_low=low,
        ci_high=high,
        p=p,
        p_bh=None,
    )


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """The step-up correction, in the order given: `min_{j >= i} min(1, m p_(j) / j)`; None stays None.

    Holds the false discovery rate where tests are independent or positively dependent. Source: Benjamini and
    Hochberg, Journal of the Royal Statistical Society B 57(1), 1995.
    """
    tested = sorted(((p, place) for place, p in enumerate(p_values) if p is not None), reverse=True)
    corrected: list[float | None] = [None] * len(p_values)
    least = 1.0
    for done, (p, place) in enumerate(tested):
        least = min(least, p * len(tested) / (len(tested) - done))
        corrected[place] = least
    return corrected
