"""What people say of a judge's answers: the score corrected by their labels on a random sample (PPI++), and the answers
that both gave a value.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from judging.core.values import Value

from .document import Corrected
from .frame import Metric
from .judges import shared_values
from .numeric import UPPER, Floats, finite, normal_quantile
from .verdicts import Verdicts, of_people, on_both, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame

FEWEST_LABELLED = 2


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """A judge's scores and people's: `people` and `judge` (n,) of the labelled items, `drawn_with` (n,) how likely each
    was drawn (NaN: not at random), `rest` (N,) the judge's scores of the items without a label."""

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
    """By `prediction_powered`, or by `inverse_probability` where items were drawn with different probabilities."""
    differing = not np.allclose(given.drawn_with, given.drawn_with[0], rtol=1e-9, atol=0.0)
    return inverse_probability(given) if differing else prediction_powered(given)


def prediction_powered(given: Labelled) -> Correction:
    """`λ mean_N(f) + mean_n(y − λ f)`, `se² = λ² var_N(f) / N + var_n(y − λ f) / n`.

    `λ = cov_n(y, f) / ((1 + n/N) var(f))` cut to 0…1, var(f) over all n + N items; without unlabelled items 0. In score
    units. Assumes that the n are a simple random sample. Source: Angelopoulos, Duchi and Zrnic, "PPI++", 2023, with
    the mean's closed form of λ; the same estimator as `ppi_py.ppi_mean_ci`.
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
    """`mean_T(λ f + ξ (y − λ f) / π)` over all T = n + N items, ξ = 1 for the labelled, π the probability of a label.

    λ minimises the variance of these terms, cut to 0…1; `se² = var_T(terms) / T`. Unbiased whatever the π > 0. Source:
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
    """How many further random labels halve the interval: the least m with `v(n + m) <= v(n) / 4`.

    `v(n) = (var(y) - N/(n + N) cov(y, f)² / var(f)) / n` at the best λ, n + N held while unlabelled items remain. None
    where nothing varies. Source: PPI++ (above), the variance at its λ.
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
    """For each candidate and each judge of a metric of scores, where people labelled some of its answers."""
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
    """A code of `document.REFUSED` where labels can't correct the judge, else None."""
    chance = given.drawn_with
    if np.isnan(chance).any() or (chance <= 0).any() or (chance > 1).any():
        return "not_random"
    return "too_few" if given.people.size < FEWEST_LABELLED else None


MOST_PAIRED = 20_000  # answers of a judge that are kept
MOST_LABELS = 11  # different numbers; more are shown rounded to whole ones
ABOUT = "~"  # before a number: all that are rounded to it


class Paired(msgspec.Struct, frozen=True):
    """A judge's values and people's on the same answers, a list each. `others`: what the answers are compared with.

    `total`: how many answers there are; of many only those with the largest differences are in the lists.
    """

    total: int
    candidates: list[str]
    responses: list[int]
    others: list[str | None]
    other_responses: list[int]
    rows: list[int]
    judge: list[Value]
    people: list[Value]
    differences: list[float]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def numeric(self) -> bool:
        return not any(isinstance(value, str | bool) for value in (*self.judge, *self.people))

    @property
    def rounded(self) -> bool:
        """Are there so many different numbers that tables round them?"""
        return self.numeric and len({*self.judge, *self.people}) > MOST_LABELS

    def places(self, judge: str = "", people: str = "") -> list[int]:
        """Where these values are (`value_key`, or about a number); '' is any value."""
        both = enumerate(zip(self.judge, self.people, strict=True))
        return [place for place, (a, b) in both if is_meant(judge, a) and is_meant(people, b)]

    def counts(self) -> Counter[tuple[Value, Value]]:
        """How many answers have which two values."""
        return Counter(zip(self.judge, self.people, strict=True))


def value_key(value: Value, *, rounded: bool = False) -> str:
    """A value as an address names it; `rounded`: with all that are rounded to the same whole number, halves up."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return f"{ABOUT}{math.floor(value + 0.5)}" if rounded else f"{value:.6g}"


def is_meant(asked: str, value: Value) -> bool:
    """Does a value have this key? '' is any."""
    if not asked or asked == value_key(value):
        return True
    return asked.startswith(ABOUT) and not isinstance(value, str) and asked == value_key(value, rounded=True)


def paired_under(judgements: DataFrame, metric: Metric, most: int = MOST_PAIRED) -> dict[str, Paired]:
    """By each judge, rule program and script of a metric that has answers in common with people."""
    mine = judgements[(judgements["metric"] == metric.name).to_numpy()]
    if not of_people(mine).any():
        return {}
    verdicts = verdicts_under(mine, metric)
    found = {name: _paired(verdicts, rows, most) for name, rows in verdicts.authors.items()}
    return {name: one for name, one in found.items() if len(one)}


def _paired(verdicts: Verdicts, judged: DataFrame, most: int) -> Paired:
    rows, people = on_both(judged, verdicts.value)
    shared = shared_values(rows, people, verdicts.level)
    rows = rows.take(shared.places)
    differs: Floats = np.abs(shared.a - shared.b)
    if shared.level == "nominal":
        differs = (shared.said[0] != shared.said[1]).astype(np.float64)
    order = np.argsort(-differs, kind="stable")[:most]
    rows = rows.take(order)
    values = [_values(said[order], shared.labels, shared.coded) for said in shared.said]
    others = rows["other"].astype(object)
    return Paired(
        total=int(differs.size),
        candidates=[str(name) for name in rows["candidate"]],
        responses=rows["response"].tolist(),
        others=others.where(others.notna(), None).tolist(),
        other_responses=rows["other_response"].tolist(),
        rows=rows["row"].tolist(),
        judge=values[0],
        people=values[1],
        differences=differs[order].tolist(),
    )


def _values(said: Floats, labels: list[str | float], coded: bool) -> list[Value]:
    return [labels[int(code)] for code in said] if coded else said.tolist()
