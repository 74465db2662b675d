"""A candidate's mean corrected with the opened test of its judge's licence, for runs without ratings of their own.

The test is an even draw of answers with a value of people and one of the judge. It is carried over to a run on the
assumption that the judge errs there as it does in the test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .corrected import cut_checklist
from .document import Corrected, CorrectedPair
from .frame import ScaledMetric
from .intervals import FEWEST_UNITS, Ends, effective_trials
from .judges import extended
from .means import Estimate, Rate, estimate_mean, rate_of
from .numeric import UPPER, Floats, Ints, finite, normal_quantile, t_quantile
from .ranking import Document, under

FEWEST_VERDICTS = 10  # passes, and failures, of people in the test
FEWEST_TEST_ROWS = 20
LEAST_INFORMED = 0.2
"""The lower end of the interval of TPR + TNR − 1 must reach this."""
MIDDLE = (0.1, 0.9)
"""The quantiles of the test's scores between which a run's mean should lie."""
FEW_PASSES, FEW_FAILURES, FEW_ROWS, UNINFORMED = "few_passes", "few_failures", "few_rows", "uninformed"
LAPSED, SUSPENDED = "lapsed", "suspended"


@dataclass(frozen=True, slots=True, eq=False)
class OpenedTest:
    """The answers of an opened test: arrays of shape (answers,).

    `judge`, `people`: the values of both; `units`: the answer's row, or its row's cluster. `passes`: the values are
    pass (1) or fail (0).
    """

    judge: Floats
    people: Floats
    units: Ints
    passes: bool

    @property
    def rows(self) -> int:
        return int(np.unique(self.units).size)

    def rate_right(self, verdict: float) -> Rate:
        """How often the judge agrees where people say `verdict`: 1 gives the true positive rate, 0 the true negative
        rate."""
        here = self.people == verdict
        return rate_of((self.judge[here] == verdict).astype(np.float64), self.units[here])


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """A run's corrected mean with its 95 % interval, or why there is none (`refused`).

    `slope`: the corrected value's change for a change of the judge's mean. `outside`: the run lies where the test says
    little about the judge's errors: its mean score outside the middle 80 % of the test's, or a pass rate that a judge
    with the test's errors could not give.
    """

    value: float | None
    low: float | None
    high: float | None
    slope: float = 1.0
    outside: bool = False
    refused: str | None = None


def carry_over(
    scores: Floats, units: Ints, test: OpenedTest, ends: Ends | None, state: str | None = None
) -> CarriedOver:
    """The mean of a run's scores (answers,), corrected with a licence's test.

    `units` (answers,): the rows, or clusters of rows. `ends`: of the scale. `state`: `LAPSED` or `SUSPENDED` if the
    licence does not hold.
    """
    return carry_over_mean(estimate_mean(scores, units), scores.size, test, ends, state)


def carry_over_mean(
    run: Estimate, responses: int, test: OpenedTest, ends: Ends | None, state: str | None = None
) -> CarriedOver:
    """The same from the mean over the run's items, with its standard error by rows or clusters."""
    refused = state or why_not_carried(test)
    if refused or run.mean is None:
        return CarriedOver(None, None, None, refused=refused)
    if not test.passes:
        return _scores(run, test, ends)
    trials = effective_trials(run.mean, run.se, run.clusters, responses)
    judged = Rate(run.mean, None, None, round(run.mean * responses), trials)
    return _passes(judged, test.rate_right(1), test.rate_right(0))


def why_not_carried(test: OpenedTest) -> str | None:
    """Why a test can correct nothing: a code, otherwise None."""
    if not test.passes:
        return FEW_ROWS if test.rows < FEWEST_TEST_ROWS else None
    passes = int((test.people == 1).sum())
    if passes < FEWEST_VERDICTS:
        return FEW_PASSES
    if test.people.size - passes < FEWEST_VERDICTS:
        return FEW_FAILURES
    low, _high = informedness(test.rate_right(1), test.rate_right(0))
    return UNINFORMED if low < LEAST_INFORMED else None


def _shrunk(rate: Rate) -> tuple[float, float]:
    """`(k + 1) / (n + 2)` and `n + 2` of k right among n; a rate over no answers counts as 1 of 2."""
    share, trials = rate.rate or 0.0, rate.trials
    return (share * trials + 1) / (trials + 2), trials + 2


def informedness(positive: Rate, negative: Rate) -> tuple[float, float]:
    """The 95 % interval of TPR + TNR − 1: `S + T − 1 ± z sqrt(S (1 − S)/(a + 2) + T (1 − T)/(b + 2))`.

    S = (k₁ + 1)/(a + 2) and T = (k₂ + 1)/(b + 2), with k₁ of a passes and k₂ of b failures right. Source: as
    `prevalence`.
    """
    (s, a), (t, b) = _shrunk(positive), _shrunk(negative)
    reach = normal_quantile(UPPER) * math.sqrt(s * (1 - s) / a + t * (1 - t) / b)
    return s + t - 1 - reach, s + t - 1 + reach


def prevalence(judged: Rate, positive: Rate, negative: Rate) -> tuple[float, float, float]:
    """The true pass rate and its interval, both still to be cut to 0…1.

    `(q + TNR − 1) / (TPR + TNR − 1)`, q the judge's pass rate.

    With x of N judged PASS in the run, k₁ of a passes and k₂ of b failures right: z = 1.96, P = (x + z²/2)/(N + z²),
    S = (k₁ + 1)/(a + 2), T = (k₂ + 1)/(b + 2), p = (P + T − 1)/(S + T − 1),
    δ = 2z²(p S(1 − S)/(a + 2) − (1 − p) T(1 − T)/(b + 2)), and the interval is
    `p + δ ± z sqrt(P(1 − P)/(N + z²) + p² S(1 − S)/(a + 2) + (1 − p)² T(1 − T)/(b + 2)) / (S + T − 1)`.
    Where rows hold several answers, the rates stay and N, a and b are `intervals.effective_trials`. Assumes that the
    judge errs on these passes and on these failures as often as on the test's; how many of each there are may differ.
    Source: Rogan and Gladen, American Journal of Epidemiology 107(1), 1978; Lang and Reiczigel, Preventive Veterinary
    Medicine 113(1), 2014. Coverage by simulation: tools/bench/coverage.py.
    """
    z = normal_quantile(UPPER)
    (s, a), (t, b) = _shrunk(positive), _shrunk(negative)
    judged_rate, n = judged.rate or 0.0, judged.trials + z * z
    q = (judged_rate * judged.trials + z * z / 2) / n
    informed = s + t - 1
    p = (q + t - 1) / informed
    of_s, of_t = s * (1 - s) / a, t * (1 - t) / b
    shift = 2 * z * z * (p * of_s - (1 - p) * of_t)
    reach = z * math.sqrt(q * (1 - q) / n + p * p * of_s + (1 - p) ** 2 * of_t) / informed
    exact = (positive.rate or 0.0) + (negative.rate or 0.0) - 1
    value = (judged_rate + (negative.rate or 0.0) - 1) / exact
    return value, p + shift - reach, p + shift + reach


def _passes(judged: Rate, positive: Rate, negative: Rate) -> CarriedOver:
    rates = (0.0, 1.0)
    uncut, low, high = prevalence(judged, positive, negative)
    value = _cut(uncut, rates)
    ends = min(_cut(low, rates), value), max(_cut(high, rates), value)
    slope = 1 / ((positive.rate or 0.0) + (negative.rate or 0.0) - 1)
    return CarriedOver(value, *ends, slope, outside=low > 1 or high < 0)


def _scores(run: Estimate, test: OpenedTest, ends: Ends | None) -> CarriedOver:
    """`mean(run) + mean(people − judge)` over the test; se² is the sum of both.

    The interval is `value ± t se` with the smaller number of degrees of freedom, cut to the scale like the value.
    Assumes that the judge's mean error is the same in both.
    """
    error = estimate_mean(test.people - test.judge, test.units)
    value = (run.mean or 0.0) + (error.mean or 0.0)
    low, high = np.quantile(test.judge, MIDDLE)
    outside = not low <= (run.mean or 0.0) <= high
    units_behind = min(run.clusters, error.clusters)
    if run.se is None or error.se is None or units_behind < FEWEST_UNITS:
        return CarriedOver(_cut(value, ends), None, None, outside=outside)
    reach = t_quantile(UPPER, units_behind - 1) * math.hypot(run.se, error.se)
    return CarriedOver(
        _cut(value, ends), _cut(value - reach, ends), _cut(value + reach, ends), outside=outside
    )


def _cut(value: float, ends: Ends | None) -> float:
    return value if ends is None else min(max(value, ends[0]), ends[1])


def carried_scores(
    document: Document, metric: ScaledMetric, judge: str, test: OpenedTest, state: str | None
) -> tuple[list[Corrected], list[CorrectedPair]]:
    """A report's candidates corrected by a licence's test, and all their pairs.

    `judge`: the author of the values. One test corrects all candidates, so its error falls out of a difference of
    scores; of pass rates it stretches the difference by 1/(TPR + TNR − 1). The judge's p therefore stays, and the
    interval takes the stretch as known.
    """
    ends = (0.0, 1.0) if test.passes else extended(metric, test.judge, test.people)
    scores, slope = [], 1.0
    for name, cells in document["candidates"].items():
        cell = cells[metric.name]
        if cell["mean"] is None:
            continue
        run = Estimate(cell["mean"], cell["se"], None, None, cell["items"], cell["clusters"])
        carried = carry_over_mean(run, cell["scored"], test, ends, state)
        slope = carried.slope
        entry = _corrected(metric.name, name, judge, cell, test, carried)
        scores.append(cut_checklist(metric, entry))
    if any(score["value"] is None for score in scores):
        return scores, []
    return scores, [_pair(pair, judge, slope) for pair in under(document, "pairs", metric.name)]


def _corrected(
    metric: str, candidate: str, judge: str, cell: Mapping[str, Any], test: OpenedTest, carried: CarriedOver
) -> Corrected:
    return Corrected(
        {
            "metric": metric,
            "candidate": candidate,
            "judge": judge,
            "labelled": int(test.people.size),
            "judged": cell["scored"],
            "people_mean": None,
            "judge_mean": cell["mean"],
            "value": carried.value,
            "se": None,
            "ci_low": carried.low,
            "ci_high": carried.high,
            "lambda": None,
            "halve": None,
            "draw": None,
            "source": "licence",
            "outside": carried.outside,
            "refused": carried.refused,
        }
    )


def _pair(pair: Mapping[str, Any], judge: str, slope: float) -> CorrectedPair:
    return CorrectedPair(
        {
            "metric": pair["metric"],
            "judge": judge,
            "a": pair["a"],
            "b": pair["b"],
            "items": pair["items"],
            "difference": _times(slope, pair["difference"]),
            "se": _times(slope, pair["se"]),
            "ci_low": _times(slope, pair["ci_low"]),
            "ci_high": _times(slope, pair["ci_high"]),
            "lambda": None,
            "p": pair["p"],
            "p_holm": pair["p_holm"],
            "distinguishable": pair["distinguishable"],
        }
    )


def _times(slope: float, value: float | None) -> float | None:
    return None if value is None else finite(slope * value)
