"""Pairs of candidates under one metric: a table and a matrix of their differences, and how many items would detect a
difference that the reader enters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import number, p_value
from judging.core.statistics.means import Estimate, items_needed
from judging.reports.labels import ValueFormat, beside, verdict
from judging.reports.links import Links, linked
from judging.reports.page.tables import Table, columns_of, linked_count

LEVELS = 3
FEWEST = 3  # candidates; two are covered by a sentence
LEAST = 0.001  # in the unit of the form; smaller ones need more items than any data set has
MOST = 1e6  # for metrics without a declared scale
MOST_CHARACTERS = 20


def pairs_table(
    pairs: Sequence[Mapping[str, Any]],
    values: ValueFormat,
    links: Links,
    needed: Sequence[int | None] = (),
) -> Table | None:
    """Differences on shared items; None for a single candidate. `needed`: items that each pair needs to detect the
    requested difference, if there is one."""
    rows = [
        [
            f"{pair['a']} − {pair['b']}",
            verdict(pair),
            *([number(needed[place])] if needed else []),
            linked(values.signed(pair["difference"]), links.to_pair(pair)),
            values.interval(pair["ci_low"], pair["ci_high"]),
            p_value(pair["p"]),
            p_value(pair["p_holm"]),
            *(linked_count(pair[name], links.to_pair(pair, name)) for name in ("wins", "ties", "losses")),
            linked(number(pair["items"]), links.to_pair(pair)),
            values.in_points(values.difference(pair["smallest_difference"])),
        ]
        for place, pair in enumerate(pairs)
    ]
    heads = [
        *([_("Items needed")] if needed else []),
        _("Difference"),
        _("95 % interval"),
        "p",
        _("p (Holm)"),
    ]
    heads += [_("Wins"), _("Ties"), _("Losses"), _("Shared items")]
    heads += [_("Minimum detectable difference (80 % power)")]
    columns = columns_of([_("Pair"), _("Conclusion")], heads)
    return Table(_("Pairwise comparison on shared items"), columns, rows) if rows else None


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
    by_names = {(pair["a"], pair["b"]): pair for pair in pairs}
    compared = [name for name in names if any(name in pair for pair in by_names)]
    if len(compared) < FEWEST:
        return None
    largest = max((abs(pair["difference"]) for pair in pairs if pair["distinguishable"]), default=0.0)

    def cell(row: str, column: str) -> MatrixCell | None:
        if row == column:
            return None
        pair, sign = (by_names[row, column], 1) if (row, column) in by_names else (by_names[column, row], -1)
        return _cell(pair, sign, largest, values, links)

    return PairMatrix(compared, [(row, [cell(row, column) for column in compared]) for row in compared])


def _cell(
    pair: Mapping[str, Any], sign: int, largest: float, values: ValueFormat, links: Links
) -> MatrixCell:
    address = links.to_pair(pair)
    if pair["difference"] is None:
        return MatrixCell("–", "", verdict(pair), address)
    difference = sign * pair["difference"]
    return MatrixCell(
        values.signed_number(difference), tone(pair, difference, largest), _tip(pair, sign, values), address
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
        "%(a)s − %(b)s: %(difference)s, p (Holm) %(p)s; %(wins)s wins, %(ties)s ties, %(losses)s losses"
    ) % {
        "a": a,
        "b": b,
        "difference": beside(values.signed(sign * pair["difference"]), values.interval(low, high)),
        "p": p_value(pair["p_holm"]),
        "wins": number(wins),
        "ties": number(pair["ties"]),
        "losses": number(losses),
    }


def _turned(low: float | None, high: float | None, sign: int) -> tuple[float | None, float | None]:
    if low is None or high is None or sign > 0:
        return low, high
    return -high, -low


@dataclass(frozen=True, slots=True)
class WantedDifference:
    """The input, and the items that each pair needs, in the order of pairs: None if its variance is zero.

    `needed` is empty without a valid input; `error` then says what is wrong with it. `points`: the difference is in
    percentage points.
    """

    text: str
    points: bool
    needed: Sequence[int | None] = ()
    error: str = ""

    @property
    def sentence(self) -> str:
        counts = [count for count in self.needed if count is not None]
        if not counts:
            return _("The number of items can't be estimated from these differences.") if self.needed else ""
        low, high = min(counts), max(counts)
        if low == high:
            return ngettext(
                "Detecting this difference with 80 %% power takes %(n)s shared item.",
                "Detecting this difference with 80 %% power takes %(n)s shared items.",
                low,
            ) % {"n": number(low)}
        ends = {"low": number(low), "high": number(high)}
        return (
            _("Detecting this difference with 80 %% power takes %(low)s to %(high)s shared items, by pair.")
            % ends
        )


def wanted_difference(
    text: str,
    pairs: Sequence[Mapping[str, Any]],
    scale: tuple[float | None, float | None],
    *,
    rate: bool,
) -> WantedDifference | None:
    """Computed from the standard errors of the document's pairs; None without pairs."""
    if not pairs:
        return None
    text, unit = text.strip(), 100 if rate else 1
    most = 100.0 if rate else _width(scale)
    value = _value(text)
    if not text or value is None or not LEAST <= value <= most:
        return WantedDifference(text, rate, error=_refusal(most) if text else "")
    needed = [_needed(pair, value / unit) for pair in pairs]
    return WantedDifference(text, rate, needed)


def _width(scale: tuple[float | None, float | None]) -> float:
    low, high = scale
    return MOST if low is None or high is None else high - low


def _value(text: str) -> float | None:
    try:
        value = float(text) if len(text) <= MOST_CHARACTERS else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _refusal(most: float) -> str:
    return _("Enter a number from %(least)s to %(most)s.") % {"least": LEAST, "most": number(most)}


def _needed(pair: Mapping[str, Any], wanted: float) -> int | None:
    estimate = Estimate(pair["difference"], pair["se"], None, None, pair["items"], pair["clusters"])
    try:
        return items_needed(estimate, wanted)
    except OverflowError:  # scores beyond all scales
        return None
