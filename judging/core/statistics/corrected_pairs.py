"""Differences of candidates' corrected scores, each corrected as one quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .correction import Estimated, Labelled, prediction_powered, why_refused
from .document import Corrected, CorrectedPair
from .means import holm
from .numeric import LEVEL, UPPER, Floats, finite, t_quantile, t_two_sided
from .verdicts import Verdicts

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """The corrected mean of a − b with its standard error, over the `items` labelled rows behind it; `units` less one
    are its degrees of freedom. `weight`: λ; None if the two were corrected apart."""

    value: float
    se: float
    items: int
    units: int
    weight: float | None


def corrected_pairs(verdicts: Verdicts, corrected: Sequence[Corrected]) -> list[CorrectedPair]:
    """All pairs of candidates with a corrected score by the same judge, with Holm's correction over the judge's pairs.

    `corrected`: of `corrected.corrected_scores`.
    """
    pairs: list[CorrectedPair] = []
    for judge in dict.fromkeys(score["judge"] for score in corrected):
        mine = {
            score["candidate"]: score
            for score in corrected
            if score["judge"] == judge and score["value"] is not None
        }
        if len(mine) > 1:
            pairs += _pairs_by(verdicts, judge, mine)
    return pairs


def _pairs_by(verdicts: Verdicts, judge: str, mine: Mapping[str, Corrected]) -> list[CorrectedPair]:
    rows = {name: rows_of(verdicts, judge, name) for name in mine}
    pairs = [
        _pair(a, b, mine[a], corrected_difference(rows[a], rows[b], mine[a], mine[b]))
        for a, b in combinations(sorted(mine), 2)
    ]
    for pair, p_holm in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = p_holm
        pair["distinguishable"] = None if p_holm is None else p_holm < 1 - LEVEL
    return pairs


def rows_of(verdicts: Verdicts, judge: str, candidate: str) -> DataFrame:
    """A candidate's rows that the judge scored, indexed by row: `judge`, the mean of its scores (of the labelled
    answers if there are some); `people`, the mean of the labels, NaN without one; `drawn_with`, their probability."""
    judged = verdicts.authors[judge]
    judged = judged[(judged["value"].notna() & (judged["candidate"] == candidate)).to_numpy()]
    labels = verdicts.value.set_index("item")[["value", "drawn_with"]].reindex(judged["item"])
    labelled = labels["value"].notna().to_numpy()
    each = judged[["row"]].assign(
        judge=judged["value"].to_numpy(),
        people=labels["value"].to_numpy(),
        drawn_with=np.where(labelled, labels["drawn_with"].to_numpy(dtype=np.float64), np.nan),
    )
    counts = labelled | ~each["row"].isin(each["row"][labelled]).to_numpy()
    return each[counts].groupby("row").mean()


def corrected_difference(
    a: DataFrame, b: DataFrame, of_a: Corrected, of_b: Corrected
) -> CorrectedDifference | None:
    """PPI++ on y_a − y_b and f_a − f_b over the rows on which both are labelled; a and b as of `rows_of`.

    Where too few rows have both labels, or were drawn with different probabilities, the two are corrected apart:
    `se² = se_a² + se_b²`, with the degrees of freedom of the smaller. Source: Angelopoulos, Duchi and Zrnic, "PPI++",
    2023, for the mean of the difference.
    """
    both = a.add_suffix("_a").join(b.add_suffix("_b"), how="inner")
    labelled = (both["people_a"].notna() & both["people_b"].notna()).to_numpy()
    judge = (both["judge_a"] - both["judge_b"]).to_numpy(dtype=np.float64)
    rows = both.index.to_numpy(dtype=np.int64)
    differences = Labelled(
        judge=judge,
        people=np.where(labelled, (both["people_a"] - both["people_b"]).to_numpy(dtype=np.float64), np.nan),
        drawn_with=both["drawn_with_a"].to_numpy(dtype=np.float64),
        units=rows,
        rows=rows,
    )
    evenly = of_a["draw"] == of_b["draw"] == "even" and _even(a) and _even(b)
    if evenly and why_refused(differences) is None:
        return _together(int(labelled.sum()), prediction_powered(differences))
    return _apart(of_a, of_b)


def _even(rows: DataFrame) -> bool:
    """Whether all labelled rows were drawn with the same probability."""
    chances: Floats = rows["drawn_with"].dropna().to_numpy(dtype=np.float64)
    return bool(chances.size) and bool(np.allclose(chances, chances[0], rtol=1e-9, atol=0.0))


def _together(items: int, estimate: Estimated) -> CorrectedDifference:
    return CorrectedDifference(estimate.value, estimate.se, items, items, estimate.weight)


def _apart(a: Corrected, b: Corrected) -> CorrectedDifference | None:
    if a["value"] is None or b["value"] is None or a["se"] is None or b["se"] is None:
        return None
    units = min(a["labelled"], b["labelled"])
    error = math.hypot(a["se"], b["se"])
    return CorrectedDifference(a["value"] - b["value"], error, a["labelled"] + b["labelled"], units, None)


def _pair(a: str, b: str, about: Corrected, difference: CorrectedDifference | None) -> CorrectedPair:
    df = difference.units - 1 if difference else 0
    reach = t_quantile(UPPER, df) * difference.se if difference and df > 0 else None
    return CorrectedPair(
        {
            "metric": about["metric"],
            "judge": about["judge"],
            "a": a,
            "b": b,
            "items": difference.items if difference else 0,
            "difference": finite(difference.value) if difference else None,
            "se": finite(difference.se) if difference else None,
            "ci_low": None if reach is None or difference is None else finite(difference.value - reach),
            "ci_high": None if reach is None or difference is None else finite(difference.value + reach),
            "lambda": difference.weight if difference else None,
            "p": corrected_p(difference) if difference else None,
            "p_holm": None,
            "distinguishable": None,
        }
    )


def corrected_p(difference: CorrectedDifference) -> float | None:
    """Two-sided p of "the corrected difference is 0": t test. If nothing varies, the exact sign test's `2^(1 - n)`."""
    if difference.units < 2:
        return None
    if difference.se > 0:
        return t_two_sided(difference.value / difference.se, difference.units - 1)
    return 1.0 if difference.value == 0 else 2.0 ** (1 - difference.units)
