"""Signs of bias in verdicts: use of the scale's ends, verdict-like text in answers, and answer length and formatting.

Length, headings, lists and bold describe only an answer's appearance, not its content; this is not AlpacaEval's
length-controlled win rate. Also corrects scores with people's labels on a random sample (PPI++).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .document import Corrected, LengthEffect, Planted, ScaleEnds
from .frame import Metric
from .numeric import UPPER, Draws, Floats, finite, normal_quantile, percentiles
from .verdicts import Verdicts, counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandas import DataFrame


def scale_ends(mine: DataFrame, metric: Metric) -> list[ScaleEnds]:
    """How often each judge gives the lowest and highest score of a declared scale, by judge name.

    `mine`: the rows of one metric.
    """
    if metric.low is None or metric.high is None or metric.compares:
        return []
    scores = mine[((mine["source"] == "judge") & (mine["kind"] == "number")).to_numpy()]
    return [
        ScaleEnds(
            metric=metric.name,
            judge=str(judge),
            scores=len(one),
            lowest=float((one == metric.low).mean()),
            highest=float((one == metric.high).mean()),
        )
        for judge, one in scores.groupby("by", observed=True)["value"]
    ]


class Flagged(NamedTuple):
    """A candidate's answers with verdict-like text: their number, how many are scored, the sum of the scores."""

    answers: int
    scores: int
    total: float


def planted_verdicts(
    flagged: Mapping[tuple[str, str], Flagged], frame: DataFrame, metrics: Sequence[Metric]
) -> list[Planted]:
    """Compare the mean score of each candidate's flagged answers with that of its other answers.

    `flagged` is keyed by (metric, candidate). A mean is None without a numeric score.
    """
    found = []
    for metric in metrics:
        mine = {name: one for (of, name), one in flagged.items() if of == metric.name}
        if mine:
            values = counted(frame, metric)
            found += [_planted(metric, name, one, values) for name, one in mine.items()]
    return found


def _planted(metric: Metric, candidate: str, flagged: Flagged, values: DataFrame) -> Planted:
    scores = values["value"][(values["candidate"] == candidate).to_numpy()].dropna()
    others = len(scores) - flagged.scores
    return Planted(
        metric=metric.name,
        candidate=candidate,
        answers=flagged.answers,
        mean=flagged.total / flagged.scores if flagged.scores else None,
        others_mean=(float(scores.sum()) - flagged.total) / others if others > 0 else None,
    )


FEATURES = ("length", "headers", "lists", "bold")
_HEADER = re.compile(r"^ {0,3}#{1,6}\s", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")


def features_of(text: str) -> tuple[int, int, int, int]:
    """The number of characters, Markdown headings, list items and bold passages."""
    return len(text), len(_HEADER.findall(text)), len(_LIST.findall(text)), len(_BOLD.findall(text))


def answer_features(answers: Iterable[tuple[str, int, int, str]]) -> DataFrame:
    """Features of answers (candidate, row, response, text): one row each, indexed by the first three."""
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    found = [(candidate, row, number, *features_of(text)) for candidate, row, number, text in answers]
    table = pd.DataFrame(found, columns=["candidate", "row", "response", *FEATURES])
    return table.set_index(["candidate", "row", "response"])


def answer_keys(each: DataFrame, name: str, number: str) -> list[tuple[str, int, int]]:
    columns = each[name].astype(object), each["row"], each[number]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def length_effects(verdicts: Verdicts, features: DataFrame | None, draws: Draws) -> list[LengthEffect]:
    """How each judge's scores relate to answer length within rows; rows with one answer are ignored.

    Spearman: the correlation of ranks within the row, centred there. Slope: `sum dy dx / sum dx²` with dx the
    difference of `log2(length)` from the row's mean. Intervals: bootstrap by rows.
    """
    if features is None or features.empty or verdicts.compares:
        return []
    found = []
    for name, rows in verdicts.authors.items():
        known = np.isin(rows["row"].to_numpy(), features.index.unique("row"))
        scored = rows[known & rows["kind"].isin(["number", "bool"]).to_numpy()]
        effect = _length_effect(verdicts.metric, name, scored, features, draws)
        if effect is not None:
            found.append(effect)
    return found


def _length_effect(
    metric: Metric, judge: str, scored: DataFrame, features: DataFrame, draws: Draws
) -> LengthEffect | None:
    import pandas as pd

    length = (
        features["length"].reindex(answer_keys(scored, "candidate", "response")).to_numpy(dtype=np.float64)
    )
    known = np.isfinite(length)
    of_row = np.unique(scored["row"].to_numpy()[known], return_inverse=True)[1]
    several = np.bincount(of_row)[of_row] > 1 if of_row.size else np.zeros(0, np.bool_)
    rows = np.unique(of_row[several], return_inverse=True)[1].astype(np.int64)
    units = scored["unit"].to_numpy()[known][several]
    if not rows.size:
        return None
    score = scored["value"].to_numpy(dtype=np.float64)[known][several]
    size = np.log2(np.maximum(length[known][several], 1.0))
    both = pd.DataFrame({"score": score, "size": size})
    apart, ranks = both - both.groupby(rows).transform("mean"), both.groupby(rows).rank()
    ranks -= ranks.groupby(rows).transform("mean")
    (a, b), (x, y) = ranks.to_numpy().T, apart.to_numpy().T
    parts = np.column_stack([a * b, a**2, b**2, x * y, y**2])
    correlations, slopes = _figures(draws.sums(units, parts))
    whole = _figures(parts.sum(axis=0)[None])
    low, high = percentiles(correlations)
    slope_low, slope_high = percentiles(slopes)
    return LengthEffect(
        metric=metric.name,
        judge=judge,
        items=int(np.unique(rows).size),
        spearman=finite(whole[0][0]),
        ci_low=low,
        ci_high=high,
        slope_per_doubling=finite(whole[1][0]),
        slope_low=slope_low,
        slope_high=slope_high,
    )


def _figures(sums: Floats) -> tuple[Floats, Floats]:
    """Correlation and slope from sums (draws, 5); NaN if nothing varies."""
    both, first, second, product, square = sums.T
    spread = np.sqrt(first * second)
    nothing = np.full(both.shape, np.nan)
    correlation = np.divide(both, spread, out=nothing.copy(), where=spread > 1e-12)
    return correlation, np.divide(product, square, out=nothing.copy(), where=square > 1e-12)


FEWEST_LABELLED = 2


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """People's labels and a judge's scores.

    `people` and `judge` (n,): of the labelled items. `drawn_with` (n,): each one's sampling probability (NaN: not
    sampled at random). `rest` (N,): the judge's scores of the unlabelled items.
    """

    people: Floats
    judge: Floats
    drawn_with: Floats
    rest: Floats


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected mean, its standard error and λ, the weight of the judge's scores (0…1)."""

    value: float
    se: float
    weight: float


def correct(given: Labelled) -> Correction:
    """Correct by `inverse_probability` if sampling probabilities differ, otherwise by `prediction_powered`."""
    differing = not np.allclose(given.drawn_with, given.drawn_with[0], rtol=1e-9, atol=0.0)
    return inverse_probability(given) if differing else prediction_powered(given)


def prediction_powered(given: Labelled) -> Correction:
    """`λ mean_N(f) + mean_n(y − λ f)`, `se² = λ² var_N(f) / N + var_n(y − λ f) / n`.

    `λ = cov_n(y, f) / ((1 + n/N) var(f))` clipped to 0…1, var(f) over all n + N items; 0 without unlabelled items. In
    score units. Assumes that the n are a simple random sample. Source: Angelopoulos, Duchi and Zrnic, "PPI++", 2023,
    with the closed form of λ for the mean; the same estimator as `ppi_py.ppi_mean_ci`.
    """
    y, f, rest = given.people, given.judge, given.rest
    weight = _weight(y, f, rest)
    rectified = y - weight * f
    value = float(rectified.mean()) + (weight * float(rest.mean()) if rest.size else 0.0)
    variance = float(rectified.var()) / y.size
    if rest.size:
        variance += weight**2 * float(rest.var()) / rest.size
    return Correction(value, math.sqrt(variance), weight)


def _weight(y: Floats, f: Floats, rest: Floats) -> float:
    spread = float(np.concatenate([f, rest]).var(ddof=1)) if f.size + rest.size > 1 else 0.0
    if not rest.size or spread <= 0:
        return 0.0
    together = float(np.cov(y, f, ddof=0)[0, 1])
    return float(np.clip(together / ((1 + y.size / rest.size) * spread), 0.0, 1.0))


def inverse_probability(given: Labelled) -> Correction:
    """`mean_T(λ f + ξ (y − λ f) / π)` over all T = n + N items, ξ = 1 if labelled, π the probability of being labelled.

    λ minimises the variance of these terms, clipped to 0…1; `se² = var_T(terms) / T`. Unbiased for any π > 0. Source:
    Horvitz and Thompson 1952; Zrnic and Candès, "Active Statistical Inference", 2024.
    """
    y, f, chance = given.people, given.judge, given.drawn_with
    none = np.zeros(given.rest.size)
    labelled = np.concatenate([y / chance, none])
    judged = np.concatenate([f - f / chance, given.rest])
    spread = float(judged.var())
    weight = 0.0
    if spread > 0:
        weight = float(
            np.clip(-np.mean((labelled - labelled.mean()) * (judged - judged.mean())) / spread, 0, 1)
        )
    terms = labelled + weight * judged
    return Correction(float(terms.mean()), math.sqrt(float(terms.var()) / terms.size), weight)


def ratings_to_halve(given: Labelled) -> int | None:
    """How many more random labels halve the interval: the smallest m with `v(n + m) <= v(n) / 4`.

    `v(n) = (var(y) - N/(n + N) cov(y, f)² / var(f)) / n` at the optimal λ, with n + N fixed while unlabelled items
    remain. None if nothing varies. Source: PPI++ (above), the variance at its λ.
    """
    n, pool = given.people.size, given.people.size + given.rest.size
    spread = float(np.concatenate([given.judge, given.rest]).var())
    together = float(np.cov(given.people, given.judge, ddof=0)[0, 1])
    explained = max(0.0, together) ** 2 / spread if spread > 0 else 0.0
    variance = float(given.people.var())
    if not 0 < variance < math.inf or not math.isfinite(explained):
        return None

    def spread_of(labels: int) -> float:
        rest = max(0.0, 1 - labels / pool)
        return max(variance - rest * explained, variance * 1e-9) / labels

    wanted = spread_of(n) / 4
    low, high = n, max(4 * n, pool, math.ceil(variance / wanted)) + 1
    while low < high:
        middle = (low + high) // 2
        if spread_of(middle) <= wanted:
            high = middle
        else:
            low = middle + 1
    return low - n


def corrected_scores(verdicts: Verdicts) -> list[Corrected]:
    """Corrected scores for each candidate and judge of a scored metric, if people labelled some of its answers."""
    people = verdicts.value[verdicts.value["kind"].isin(["number", "bool"]).to_numpy()]
    if people.empty or verdicts.compares:
        return []
    labels = people.set_index("item")[["value", "drawn_with"]]
    found = []
    for judge, rows in verdicts.authors.items():
        scored = rows[rows["kind"].isin(["number", "bool"]).to_numpy()]
        for candidate, cell in scored.groupby("candidate", observed=True, sort=False):
            of_people = labels.reindex(cell["item"])
            given = _labelled(cell["value"].to_numpy(), of_people)
            if given.people.size:
                found.append(_corrected(verdicts.metric, str(candidate), judge, given))
    return found


def _labelled(judged: Floats, people: DataFrame) -> Labelled:
    labels = people["value"].to_numpy(dtype=np.float64)
    known = ~np.isnan(labels)
    chances = people["drawn_with"].to_numpy(dtype=np.float64)
    return Labelled(labels[known], judged[known], chances[known], judged[~known])


def _corrected(metric: Metric, candidate: str, judge: str, given: Labelled) -> Corrected:
    whole = np.concatenate([given.judge, given.rest])
    refused = why_refused(given)
    found = None if refused else correct(given)
    reach = normal_quantile(UPPER) * found.se if found else 0.0
    return Corrected(
        {
            "metric": metric.name,
            "candidate": candidate,
            "judge": judge,
            "labelled": int(given.people.size),
            "judged": int(given.rest.size),
            "people_mean": finite(given.people.mean()),
            "judge_mean": finite(whole.mean()),
            "value": finite(found.value) if found else None,
            "se": finite(found.se) if found else None,
            "ci_low": finite(found.value - reach) if found else None,
            "ci_high": finite(found.value + reach) if found else None,
            "lambda": finite(found.weight) if found else None,
            "halve": ratings_to_halve(given) if found else None,
            "refused": refused,
        }
    )


def why_refused(given: Labelled) -> str | None:
    """A code of `document.REFUSED` if the labels cannot correct the judge, otherwise None."""
    chance = given.drawn_with
    if np.isnan(chance).any() or (chance <= 0).any() or (chance > 1).any():
        return "not_random"
    return "too_few" if given.people.size < FEWEST_LABELLED else None
