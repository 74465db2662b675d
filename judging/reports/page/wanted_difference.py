"""Number of items needed to detect a difference that the reader enters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import number
from judging.core.statistics.cells import items_needed
from judging.core.statistics.means import Estimate

LEAST = 0.001  # in the unit of the form; smaller ones need more items than any data set has
MOST = 1e6  # for metrics without a declared scale
MOST_CHARACTERS = 20


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
        known = [one for one in self.needed if one is not None]
        if not known:
            return _("The number of items can't be estimated from these differences.") if self.needed else ""
        low, high = min(known), max(known)
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
