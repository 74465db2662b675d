"""Matrix of the differences between all pairs of candidates under one metric, ordered by mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evalsite.templatetags.show import number
from judging.reports.labels import ValueFormat, probability, verdict
from judging.reports.links import Links

LEVELS = 3
FEWEST = 3  # candidates; two are covered by a sentence


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """`tone`: up1…up3, down1…down3, "tie" without a significant difference, "" if unknown."""

    text: str
    tone: str
    tip: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """`rows`: a candidate and its cells, one for each of `names`; None on the diagonal."""

    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]


def pair_matrix(
    names: Sequence[str], pairs: Sequence[Mapping[str, Any]], values: ValueFormat, links: Links
) -> PairMatrix | None:
    """Row minus column; None for fewer than three candidates."""
    known = {(pair["a"], pair["b"]): pair for pair in pairs}
    met = [name for name in names if any(name in pair for pair in known)]
    if len(met) < FEWEST:
        return None
    largest = max((abs(pair["difference"]) for pair in pairs if pair["distinguishable"]), default=0.0)

    def cell(row: str, column: str) -> MatrixCell | None:
        if row == column:
            return None
        pair, sign = (known[row, column], 1) if (row, column) in known else (known[column, row], -1)
        return _cell(pair, sign, largest, values, links)

    return PairMatrix(met, [(row, [cell(row, column) for column in met]) for row in met])


def _cell(
    pair: Mapping[str, Any], sign: int, largest: float, values: ValueFormat, links: Links
) -> MatrixCell:
    address = links.to_pair(pair)
    if pair["difference"] is None:
        return MatrixCell("–", "", verdict(pair), address)
    difference = sign * pair["difference"]
    return MatrixCell(
        values.signed(difference), tone(pair, difference, largest), _tip(pair, sign, values), address
    )


def tone(pair: Mapping[str, Any], difference: float, largest: float) -> str:
    """Size and direction of the difference, in steps of the largest significant difference."""
    if not pair["distinguishable"]:
        return "tie"
    level = min(LEVELS, 1 + int(LEVELS * abs(difference) / largest)) if largest else 1
    return f"{'up' if difference > 0 else 'down'}{level}"


def _tip(pair: Mapping[str, Any], sign: int, values: ValueFormat) -> str:
    a, b = (pair["a"], pair["b"]) if sign > 0 else (pair["b"], pair["a"])
    wins, losses = (pair["wins"], pair["losses"]) if sign > 0 else (pair["losses"], pair["wins"])
    low, high = _turned(pair["ci_low"], pair["ci_high"], sign)
    return _(
        "%(a)s − %(b)s: %(difference)s %(interval)s, p (Holm) %(p)s; %(wins)s wins, %(ties)s ties, %(losses)s losses"
    ) % {
        "a": a,
        "b": b,
        "difference": values.signed(sign * pair["difference"]),
        "interval": values.interval(low, high),
        "p": probability(pair["p_holm"]),
        "wins": number(wins),
        "ties": number(pair["ties"]),
        "losses": number(losses),
    }


def _turned(low: float | None, high: float | None, sign: int) -> tuple[float | None, float | None]:
    if low is None or high is None or sign > 0:
        return low, high
    return -high, -low
