"""What a sealed test says about a judge, what the judge may then be used for, and what a test will be worth.

Positive is PASS: the true positive rate (TPR) is the share of people's passes that the judge passes, the true negative
rate (TNR) the share of people's failures that it fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .agreement import (
    cohen_kappa,
    cohen_kappa_interval,
    contingency,
    quadratic_kappa,
    quadratic_kappa_interval,
)
from .intervals import wilson
from .means import Estimate, Rate, estimate_difference, rate_difference, rate_of
from .numeric import DRAWS, LEVEL, UPPER, Draws, Floats, Ints, normal_quantile
from .uses import USES, Thresholds, Use

Judged = Literal["passes", "ordered", "labels"]
"""What the values are: pass or fail, criteria too; scores and directions of comparisons; labels without an order."""
FEWEST_TEST_ROWS = 20
FEWEST_OF_LABEL = 10
MOST_DRAWS = 20_000
RARER_VERDICTS = 40
"""How many of the rarer verdict a test should hold to allow gates."""
UNMEASURED_SECONDS = 30.0
"""Of rating an item, until ten ratings have been measured."""


@dataclass(frozen=True, slots=True)
class LicenceFigures:
    """A judge against people on a test, at the level of its `opening` (1 for the first).

    `rows`, `items`: in the test with values of both. `agreement`: the share on which both say the same. `positive`,
    `negative`: TPR and TNR of two-valued verdicts, else None. `kappa` with its interval: quadratic for ordered
    values, Cohen's for others. `bias`: judge − people of ordered values. `rarest`: how many times people gave the
    rarest of the labels. `passed`, `failed`: how many items people passed and failed, None in older licences. The items
    of a checklist are its criteria, of so many `answers`.
    """

    judged: Judged
    rows: int
    items: int
    opening: int
    agreement: Rate
    positive: Rate | None = None
    negative: Rate | None = None
    kappa: float | None = None
    kappa_low: float | None = None
    kappa_high: float | None = None
    bias: Estimate | None = None
    rarest: int = 0
    passed: int | None = None
    failed: int | None = None
    answers: int | None = None


def upper_at(opening: int) -> float:
    """The quantile at which intervals end at the k-th opening of a test: their level is `1 − 0.05 / 2^(k − 1)`.

    All openings of a test together then allow a use wrongly at most twice as often as the first alone.
    """
    return 1 - (1 - LEVEL) / (1 << opening)


def licence_figures(
    judge: Floats, people: Floats, units: Ints, judged: Judged, opening: int = 1, draws: Draws | None = None
) -> LicenceFigures:
    """The figures of an opened test. `judge`, `people` (items,): the values of both, labels as codes; `units` (items,):
    the items' rows, or clusters of rows."""
    upper = upper_at(opening)
    figures = LicenceFigures(
        judged,
        rows=int(np.unique(units).size),
        items=judge.size,
        opening=opening,
        agreement=rate_of((judge == people).astype(np.float64), units, upper),
        rarest=int(contingency(judge, people)[1].sum(axis=0).min()) if judge.size else 0,
    )
    if judged == "passes":
        rates = [
            rate_of((judge[people == verdict] == verdict).astype(np.float64), units[people == verdict], upper)
            for verdict in (1.0, 0.0)
        ]
        passed = int((people == 1).sum())
        return replace(
            figures,
            positive=rates[0],
            negative=rates[1],
            kappa=cohen_kappa(judge, people),
            passed=passed,
            failed=people.size - passed,
        )
    draws = draws or Draws(count=_draws_at(opening))
    if judged == "labels":
        low, high = cohen_kappa_interval(judge, people, units, draws, upper)
        return replace(figures, kappa=cohen_kappa(judge, people), kappa_low=low, kappa_high=high)
    low, high = quadratic_kappa_interval(judge, people, units, draws, upper)
    bias = estimate_difference(judge - people, units)
    return replace(figures, kappa=quadratic_kappa(judge, people), kappa_low=low, kappa_high=high, bias=bias)


def with_kappa_interval(
    figures: LicenceFigures, judge: Floats, people: Floats, units: Ints, draws: Draws | None = None
) -> LicenceFigures:
    """The figures of passes and failures with the interval of their kappa, which decides nothing about them."""
    draws, upper = draws or Draws(count=_draws_at(figures.opening)), upper_at(figures.opening)
    low, high = cohen_kappa_interval(judge, people, units, draws, upper)
    return replace(figures, kappa_low=low, kappa_high=high)


def _draws_at(opening: int) -> int:
    """More for stricter levels, whose ends lie further out."""
    return min(MOST_DRAWS, DRAWS << (opening - 1))


def use_allowed(figures: LicenceFigures, thresholds: Thresholds) -> Use | None:
    """The most that a judge may be used for, None for nothing: the lower bounds must reach the thresholds.

    Exploring needs a test of at least 20 rows; both rates must hold; labels need ten of each in the test.
    """
    if figures.rows < FEWEST_TEST_ROWS:
        return None
    return next((use for use in reversed(USES) if _reaches(figures, thresholds, use)), None)


def _reaches(figures: LicenceFigures, thresholds: Thresholds, use: Use) -> bool:
    if use == "exploring":
        return True
    if figures.judged == "passes":
        rates = (figures.positive, figures.negative)
        lows = [rate.low for rate in rates if rate is not None and rate.low is not None]
        return len(lows) == len(rates) and min(lows) >= thresholds.rate(use)
    if figures.judged == "labels" and figures.rarest < FEWEST_OF_LABEL:
        return False
    return figures.kappa_low is not None and figures.kappa_low >= thresholds.kappa(use)


def gap(dev: Rate, test: Rate) -> Estimate:
    """Dev agreement − test agreement with its interval, for two independent rates: `means.rate_difference`."""
    return rate_difference(dev, test)


def fewest_for(threshold: float, mistakes: int, opening: int = 1) -> int:
    """The fewest verdicts of a kind whose rate can reach a threshold (its lower bound, 0…1) with so many mistakes."""
    z, n = normal_quantile(upper_at(opening)), mistakes + 1
    while wilson((n - mistakes) / n, n, z)[0] < threshold:
        n += 1
    return n


def chance_of(use: Use, items: int, failing: float, right: float, thresholds: Thresholds) -> float:
    """The chance (0…1) that a judge gets a use from a test of so many independent items at its first opening.

    `failing`: the share of failures by people; `right`: the share of passes, and of failures, on which the judge is
    right. Exact, summed over the binomial number of failures: `sum_b P(b) R(b) R(items − b)` with R(n) the chance that
    the lower bound of Wilson's interval over n verdicts reaches the threshold.
    """
    threshold = thresholds.rate(use)
    z = normal_quantile(UPPER)
    reached, fewest = [0.0], 0
    for n in range(1, items + 1):
        while fewest <= n and wilson(fewest / n, n, z)[0] < threshold:
            fewest += 1  # never fewer right ones of more verdicts
        reached.append(float(binomial(n, right)[fewest:].sum()))
    weights = binomial(items, failing)
    return float(sum(weights[b] * reached[b] * reached[items - b] for b in range(items + 1)))


def binomial(n: int, chance: float) -> Floats:
    """P(X = k) for k = 0…n of a binomial X: shape (n + 1,)."""
    k = np.arange(n + 1)
    if chance in (0, 1):
        return np.asarray(k == (n if chance else 0), dtype=np.float64)
    logs = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k.tolist()])
    chances: Floats = np.exp(logs + k * math.log(chance) + (n - k) * math.log1p(-chance))
    return chances


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a test of `items` will be worth before anybody rates.

    `failures`: about how many of the rarer verdict it will hold. `least`: the fewest verdicts of a kind for gates with
    0, 1, 2 and 3 mistakes. `chances`: {share right: chance of a gate}. `proposed`: the items that hold 40 of the rarer
    verdict. `seconds`: of rating.
    """

    items: int
    failures: int
    least: tuple[int, ...]
    possible: bool
    chances: dict[float, float]
    proposed: int | None
    seconds: float


def prospect(
    items: int,
    failing: float,
    thresholds: Thresholds,
    seconds_per_item: float = UNMEASURED_SECONDS,
    right: Iterable[float] = (0.95, 0.98),
) -> Prospect:
    """What so many test items buy at a rate of failures (0…1). `seconds_per_item`: the pace, where it was measured."""
    rarer = min(failing, 1 - failing)
    least = tuple(fewest_for(thresholds.gates_rate, mistakes) for mistakes in range(4))
    expected = round(items * rarer)
    return Prospect(
        items=items,
        failures=expected,
        least=least,
        possible=expected >= least[0],
        chances={share: chance_of("gates", items, failing, share, thresholds) for share in right},
        proposed=math.ceil(RARER_VERDICTS / rarer) if rarer else None,
        seconds=items * seconds_per_item,
    )
