"""Whether a judge may succeed another: what changes when both judge the same stored answers.

Old and new may stand in one table where every candidate's mean moves by less than a margin, as the interval says (an
equivalence test: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987), and where no two candidates
distinguishably changed their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from .agreement import cohen_kappa, quadratic_kappa
from .intervals import wilson
from .means import (
    Estimate,
    differences,
    estimate_difference,
    holm,
    p_value,
    rate_of,
)
from .numeric import LEVEL, UPPER, Floats, Ints, finite, normal_quantile, same

Measure = Literal["score", "rate", "label"]
"""What moves: a mean on a scale; a rate of passes or wins; the labels of a category, of which a share turns."""
Decision = Literal["together", "apart", "undecided"]
TOGETHER: Decision = "together"
APART: Decision = "apart"
UNDECIDED: Decision = "undecided"
_MARGINS = {"score": "score", "rate": "rate", "label": "turned"}
MOST_MORE = 10_000_000
"""More further answers than this are not named."""


@dataclass(frozen=True, slots=True)
class Margins:
    """How far a mean may move: `score`, of the scale's width; `rate`, of passes and wins, 0…1; `turned`, the share of
    labels that may turn."""

    score: float = 0.025
    rate: float = 0.03
    turned: float = 0.03

    @classmethod
    def with_share(cls, measure: Measure, share: float) -> Margins:
        """The usual margins, but this one for `measure`."""
        return replace(cls(), **{_MARGINS[measure]: share})

    def share(self, measure: Measure) -> float:
        """The margin as a share, 0…1."""
        return float(getattr(self, _MARGINS[measure]))

    def of(self, measure: Measure, width: float | None) -> float | None:
        """The margin in the values' own unit; None for scores without a scale."""
        if measure == "score":
            return None if width is None else self.score * width
        return self.share(measure)


@dataclass(frozen=True, slots=True)
class BothVerdicts:
    """A candidate's answers that both judges gave a verdict on. `old`, `new` (answers,): scores, 1 and 0 for pass and
    fail, shares of a win, or codes of labels; `rows`, `units` (answers,): their rows, and clusters of rows."""

    old: Floats
    new: Floats
    rows: Ints
    units: Ints

    def item_means(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Rows, their units, and the means of old and new over each row's answers."""
        rows, first, place = np.unique(self.rows, return_index=True, return_inverse=True)
        counts = np.bincount(place)
        old = np.bincount(place, weights=self.old) / counts
        new = np.bincount(place, weights=self.new) / counts
        return rows, self.units[first], old, new


def succession(
    candidates: Mapping[str, BothVerdicts],
    measure: Measure,
    width: float | None = None,
    margins: Margins | None = None,
) -> dict[str, Any]:
    """What a new judge changes: {measure, margin, candidates, agreement, reversed, decision, more}.

    `width`: of the scale of scores, None without one; rates have 1. Of each candidate: `items`, `old`, `new` (means;
    None for labels), `shift` (new − old; for labels the share that turned) with `ci_low` and `ci_high`, `rank_old`,
    `rank_new`, `turned` (answers whose verdict is another), `decision`, and `more`, how many further answers would
    decide, None where none would or none are needed. `reversed`: pairs that distinguishably changed their order.
    """
    width = 1.0 if measure == "rate" else width
    margin = (margins or Margins()).of(measure, width)
    each = {name: _candidate(both, measure, width, margin) for name, both in candidates.items()}
    if measure != "label":
        _add_ranks(each)
    turned_order = [] if measure == "label" else _reversed(candidates)
    decision, more = _decide([entry for entry in each.values() if entry["items"]], turned_order)
    return {
        "measure": measure,
        "margin": margin,
        "candidates": each,
        "agreement": _agreement(list(candidates.values()), measure),
        "reversed": turned_order,
        "decision": decision,
        "more": more,
    }


def _candidate(
    both: BothVerdicts, measure: Measure, width: float | None, margin: float | None
) -> dict[str, Any]:
    turned = differences(both.new, both.old) != 0
    if measure == "label":
        rate = rate_of(turned.astype(np.float64), both.units)
        estimate = Estimate(rate.rate, None, rate.low, rate.high, both.old.size, 0)
        means: tuple[float | None, float | None] = (None, None)
    else:
        _rows, units, old, new = both.item_means()
        estimate = _shift(differences(new, old), units, width)
        means = (_mean(old), _mean(new))
    decision, more = decide(estimate, margin, both.old.size)
    return {
        "items": both.old.size,
        "old": means[0],
        "new": means[1],
        "shift": estimate.mean,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "rank_old": None,
        "rank_new": None,
        "turned": int(turned.sum()),
        "decision": decision,
        "more": more,
    }


def _shift(gaps: Floats, units: Ints, width: float | None) -> Estimate:
    """The mean of the items' differences with its interval.

    Where all are equal there is no spread: at most a share u of the units, Wilson's upper end of 0 of G, moves
    otherwise, each by at most the width w and what the others move, so the mean is known to ±u (w + |mean|).
    """
    estimate = estimate_difference(gaps, units, width)
    if width is None or estimate.mean is None or estimate.low is None or not same(gaps):
        return estimate
    reach = wilson(0.0, estimate.clusters, normal_quantile(UPPER))[1] * (width + abs(estimate.mean))
    return replace(estimate, low=estimate.mean - reach, high=estimate.mean + reach)


def _mean(values: Floats) -> float | None:
    return finite(values.mean()) if values.size else None


def decide(estimate: Estimate, margin: float | None, answers: int) -> tuple[Decision, int | None]:
    """Whether an interval lies within ±margin or outside of it; else how many more answers of this kind would bring it
    there, if the shift stays as it is: an interval's half width falls with the square root of their number."""
    shift, low, high = estimate.mean, estimate.low, estimate.high
    if margin is None or shift is None or low is None or high is None:
        return UNDECIDED, None
    if -margin < low and high < margin:
        return TOGETHER, None
    if low > margin or high < -margin:
        return APART, None
    if abs(shift) < margin:
        ratios = [(high - shift) / (margin - shift), (shift - low) / (margin + shift)]
    elif shift > margin:
        ratios = [(shift - low) / (shift - margin)]
    elif shift < -margin:
        ratios = [(high - shift) / (-margin - shift)]
    else:
        return UNDECIDED, None
    more = math.ceil(answers * max(ratios) ** 2) - answers
    return UNDECIDED, max(1, more) if more <= MOST_MORE else None


def _decide(
    entries: Sequence[Mapping[str, Any]], turned_order: Sequence[object]
) -> tuple[Decision, int | None]:
    """One candidate apart, or one order changed, is enough; what is undecided needs the most that a candidate needs."""
    decisions = {entry["decision"] for entry in entries}
    if turned_order or APART in decisions:
        return APART, None
    if not entries or UNDECIDED in decisions:
        needed = [entry["more"] for entry in entries if entry["decision"] == UNDECIDED]
        return UNDECIDED, max(needed) if needed and all(each is not None for each in needed) else None
    return TOGETHER, None


def _add_ranks(each: Mapping[str, dict[str, Any]]) -> None:
    """Ranks from 1, the highest mean first; equal means share the lower number."""
    for side in ("old", "new"):
        means = [entry[side] for entry in each.values() if entry[side] is not None]
        for entry in each.values():
            if entry[side] is not None:
                entry[f"rank_{side}"] = 1 + sum(mean > entry[side] for mean in means)


def _reversed(candidates: Mapping[str, BothVerdicts]) -> list[dict[str, Any]]:
    """Pairs whose mean difference has the other sign under the new judge, where the change of the difference is told
    apart from 0 by the t test over shared rows, Holm over all pairs."""
    pairs = [_pair(a, b, candidates[a], candidates[b]) for a, b in combinations(sorted(candidates), 2)]
    corrected = holm([pair["p"] for pair in pairs])
    for pair, p_holm in zip(pairs, corrected, strict=True):
        pair["p_holm"] = p_holm
    return [pair for pair in pairs if _changed(pair) and pair["p_holm"] < 1 - LEVEL]


def _changed(pair: Mapping[str, Any]) -> bool:
    old, new = pair["old"], pair["new"]
    return old is not None and new is not None and pair["p_holm"] is not None and old * new < 0


def _pair(a: str, b: str, first: BothVerdicts, second: BothVerdicts) -> dict[str, Any]:
    rows_a, units, old_a, new_a = first.item_means()
    rows_b, _units, old_b, new_b = second.item_means()
    _shared, at_a, at_b = np.intersect1d(rows_a, rows_b, assume_unique=True, return_indices=True)
    old, new = differences(old_a[at_a], old_b[at_b]), differences(new_a[at_a], new_b[at_b])
    estimate = estimate_difference(differences(new, old), units[at_a])
    return {"a": a, "b": b, "old": _mean(old), "new": _mean(new), "p": p_value(estimate), "p_holm": None}


def _agreement(candidates: Sequence[BothVerdicts], measure: Measure) -> dict[str, Any]:
    """How often both say the same, over all answers: the share with its interval by rows, and kappa (Cohen's; for
    scores with quadratic weights)."""
    old, new, units = (
        np.concatenate([getattr(both, name) for both in candidates] or [np.zeros(0)])
        for name in ("old", "new", "units")
    )
    rate = rate_of((differences(new, old) == 0).astype(np.float64), units)
    kappa = (quadratic_kappa if measure == "score" else cohen_kappa)(old, new)
    return {
        "items": int(old.size),
        "kappa": kappa,
        **{k: v for k, v in asdict(rate).items() if k != "trials"},
    }
