"""The candidates' means by a field of the rows: a heat table, with what differs significantly from the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evalsite.templatetags.show import NONE, number
from judging.reports.labels import ValueFormat, probability
from judging.reports.pair_matrix import MatrixCell

SHADES = 5
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Slices:
    """`rows`: a value of the field, each candidate's cell, and over how many items. `left_out`: rarer values."""

    field: str
    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell], str]]
    differing: int
    left_out: int


def slices_of(
    breakdown: Mapping[str, Any] | None,
    metric: str,
    names: Sequence[str],
    values: ValueFormat,
    scale: tuple[float | None, float | None],
) -> Slices | None:
    """None without a breakdown, or where no value has a mean."""
    if breakdown is None:
        return None
    cells = {
        value: {name: one.get(name, {}).get(metric) for name in names}
        for value, one in breakdown["values"].items()
    }
    means = [
        cell["mean"] for one in cells.values() for cell in one.values() if cell and cell["mean"] is not None
    ]
    if not means:
        return None
    low, high = ends_of(means, scale, rate=values.rate)
    deviations = {
        (one["value"], one["candidate"]): one for one in breakdown["comparisons"] if one["metric"] == metric
    }
    rows = [
        (
            value,
            [
                slice_cell(value, name, cell, deviations.get((value, name)), values, (low, high))
                for name, cell in one.items()
            ],
            number(max((cell["items"] for cell in one.values() if cell), default=0)),
        )
        for value, one in cells.items()
    ]
    differing = sum(significant(one) for one in deviations.values())
    return Slices(breakdown["field"], names, rows, differing, breakdown.get("left_out", 0))


def ends_of(
    means: Sequence[float], scale: tuple[float | None, float | None], *, rate: bool
) -> tuple[float, float]:
    """What the shades run over: the metric's scale where it holds all means, else the means."""
    low, high = (0.0, 1.0) if rate else scale
    if low is not None and high is not None and low <= min(means) and max(means) <= high:
        return low, high
    return min(means), max(means)


def slice_cell(
    value: str,
    name: str,
    cell: Mapping[str, Any] | None,
    deviation: Mapping[str, Any] | None,
    values: ValueFormat,
    ends: tuple[float, float],
) -> MatrixCell:
    if cell is None or cell["mean"] is None:
        return MatrixCell(NONE, "")
    text = values.text(cell["mean"])
    return MatrixCell(
        f"{text} *" if deviation and significant(deviation) else text,
        f"scale{shade(cell['mean'], *ends)}",
        _tip(value, name, cell, deviation, values),
    )


def significant(deviation: Mapping[str, Any]) -> bool:
    return deviation["p_bh"] is not None and deviation["p_bh"] < ALPHA


def shade(mean: float, low: float, high: float) -> int:
    """From 1, the lowest fifth, to 5."""
    return 1 + min(SHADES - 1, int(SHADES * (mean - low) / (high - low))) if high > low else SHADES


def _tip(
    value: str, name: str, cell: Mapping[str, Any], deviation: Mapping[str, Any] | None, values: ValueFormat
) -> str:
    figures = f"{values.text(cell['mean'])} {values.interval(cell['ci_low'], cell['ci_high'])}"
    tip = _("%(name)s, %(value)s: %(figures)s, %(n)s items") % {
        "name": name,
        "value": value,
        "figures": figures,
        "n": number(cell["items"]),
    }
    if deviation is None or deviation["difference"] is None:
        return tip
    difference = {"difference": values.signed(deviation["difference"]), "p": probability(deviation["p_bh"])}
    return _("%(tip)s; %(difference)s from the rest, p (BH) %(p)s") % {"tip": tip, **difference}
