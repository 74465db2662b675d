"""Means over items with standard errors and clusters; rates; differences of candidates on shared items, with tests,
corrections and power; and figures of several responses per item. The intervals are those of `intervals`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .document import Pair
from .frame import ScaledMetric
from .intervals import (
    Ends,
    Interval,
    difference_interval,
    effective_trials,
    mean_interval,
    rate_interval,
)
from .numeric import (
    LEVEL,
    POWER,
    ROUNDING,
    UPPER,
    Bools,
    Floats,
    Ints,
    finite,
    normal_quantile,
    quiet,
    same,
    t_quantile,
    t_two_sided,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its uncertainty.

    `mean` is None without items. `se` is None with fewer than two independent units (items, or clusters of items),
    because there is no spread to estimate; `low` and `high` also with fewer than three, see `intervals`.
    """

    mean: float | None
    se: float | None
    low: float | None
    high: float | None
    items: int
    clusters: int


NO_ESTIMATE = Estimate(None, None, None, None, 0, 0)


def item_means(judgements: DataFrame) -> Series[float]:
    """The mean `value` of each item's responses (mean@n) in one cell, indexed and sorted by `row`.

    Judgements without a value are left out. Items have equal weight, however many responses they have.
    """
    return judgements.groupby("row")["value"].mean()


def item_units(judgements: DataFrame) -> Ints:
    """The independent unit of each item in one cell, in the order of `item_means`: shape (items,)."""
    return judgements.groupby("row")["unit"].first().to_numpy()


def standard_error(values: Floats) -> float | None:
    """`sqrt(sum((s_i - mean)^2) / (n (n - 1)))` over items, in score units; None with fewer than two items.

    Assumes independent items. Source: the central limit theorem; Miller, "Adding Error Bars to Evals", 2024, eq. 1.
    """
    return clustered_standard_error(values, np.arange(values.size))


def clustered_standard_error(values: Floats, clusters: Ints) -> float | None:
    """`sqrt(G / (G - 1) * sum_g (sum_{i in g} (s_i - mean))^2) / n`; None with fewer than two clusters.

    In score units. `values` and `clusters` have shape (items,); items within a cluster may depend on each other,
    clusters must be independent. Equals `standard_error` with one item per cluster. Source: Liang and Zeger 1986;
    Miller 2024, eq. 4, with the usual correction G / (G - 1) for a small number G of clusters.
    """
    member = np.unique(clusters, return_inverse=True)[1]
    count = int(member.max()) + 1 if member.size else 0
    if count < 2:
        return None
    if same(values):
        return 0.0
    with quiet():
        deviations = values - values.mean()
        sums = np.bincount(member, weights=deviations)
        return finite(np.sqrt(count / (count - 1) * np.sum(sums**2)) / values.size)


def estimate_mean(values: Floats, clusters: Ints | None = None, ends: Ends | None = None) -> Estimate:
    """The mean of the items' scores (items,) with its standard error and `intervals.mean_interval`.

    `clusters` (items,): items that depend on each other; by default each item is its own unit. `ends`: of the scale,
    None if it has none. If all values are equal, `se` is 0.
    """
    estimate = _estimate(values, clusters)
    return _with_interval(estimate, mean_interval(estimate.mean, estimate.se, estimate.clusters, ends))


def estimate_difference(values: Floats, clusters: Ints | None = None, width: float | None = None) -> Estimate:
    """The mean of the items' differences (items,), with `intervals.difference_interval`.

    `width`: of the scale of the scores that were subtracted, None if it has none.
    """
    estimate = _estimate(values, clusters)
    return _with_interval(estimate, difference_interval(estimate.mean, estimate.se, estimate.clusters, width))


def _estimate(values: Floats, clusters: Ints | None) -> Estimate:
    """Without an interval."""
    if not values.size:
        return NO_ESTIMATE
    se = standard_error(values) if clusters is None else clustered_standard_error(values, clusters)
    units = values.size if clusters is None else np.unique(clusters).size
    return Estimate(mean_of_items(values), se, None, None, values.size, units)


def _with_interval(estimate: Estimate, interval: Interval) -> Estimate:
    low, high = interval
    return replace(estimate, low=low, high=high)


def apart(a: Estimate, b: Estimate) -> Estimate:
    """The difference a − b of two means of different items, with an interval made of their own intervals.

    `d - sqrt((a - a_low)² + (b_high - b)²)` … `d + sqrt((a_high - a)² + (b - b_low)²)`, so it stays on the scale of the
    differences if theirs stay on the scale. None if a mean has no interval. Source: Zou and Donner, Statistics in
    Medicine 27(10), 2008; Newcombe, Statistics in Medicine 17, 1998, for rates.
    """
    if a.mean is None or b.mean is None:
        return NO_ESTIMATE
    counts = a.items + b.items, a.clusters + b.clusters
    difference = Estimate(finite(a.mean - b.mean), None, None, None, *counts)
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return difference
    down, up = math.hypot(a.mean - a.low, b.high - b.mean), math.hypot(a.high - a.mean, b.mean - b.low)
    return _with_interval(difference, (finite(a.mean - b.mean - down), finite(a.mean - b.mean + up)))


def mean_if_all_got(judgements: DataFrame, fill: float) -> float | None:
    """The mean over items if every judgement without a value had got the score `fill`.

    Averaged per item first; items without any scored response count too. With the scale's ends as `fill` these are the
    worst-case bounds of Manski, "Partial Identification", 2003. None without judgements.
    """
    filled = judgements.assign(value=judgements["value"].fillna(fill))
    return mean_of_items(np.asarray(item_means(filled), dtype=np.float64))


def mean_of_items(values: Floats) -> float | None:
    """The mean, or exactly the common value if all are equal; None without items or if it is not finite."""
    if not values.size:
        return None
    with quiet():
        return finite(values[0] if same(values) else values.mean())


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate in 0…1 with its interval, the number of true responses, and how many independent trials they are worth."""

    rate: float | None
    low: float | None
    high: float | None
    count: int
    trials: float = 0.0


def estimate_rate(judgements: DataFrame) -> Rate:
    """The rate of true values in one cell, averaged per item first, with its `intervals.rate_interval`.

    `value` is 1 if true, otherwise 0.
    """
    means = np.asarray(item_means(judgements), dtype=np.float64)
    return _rate(_estimate(means, item_units(judgements)), judgements["value"].to_numpy(np.float64))


def rate_of(values: Floats, clusters: Ints, upper: float = UPPER) -> Rate:
    """The rate over responses with values (responses,) 1 for true, 0 for false and ½ for a tie.

    `clusters` (responses,): their rows, or clusters of rows. `upper`: the quantile at which the interval ends.
    """
    return _rate(_estimate(values, clusters), values, upper)


def _rate(estimate: Estimate, responses: Floats, upper: float = UPPER) -> Rate:
    share, spread = (estimate.mean, estimate.se), (estimate.clusters, responses.size)
    trials = 0.0 if share[0] is None else effective_trials(share[0], share[1], *spread)
    low, high = rate_interval(*share, *spread, upper)
    return Rate(share[0], low, high, count=int((responses == 1).sum()), trials=trials)


def rate_difference(a: Rate, b: Rate) -> Estimate:
    """The difference a − b of two independent rates with its interval, as `apart`."""
    return apart(*(Estimate(rate.rate, None, rate.low, rate.high, round(rate.trials), 0) for rate in (a, b)))


def sign_test(higher: int, lower: int) -> float:
    """`min(1, 2 P(X <= min(higher, lower)))` with X binomial over both, each with chance ½: the exact two-sided p.

    Items that are equal are left out. Assumes independent items. Source: Dixon and Mood, Journal of the American
    Statistical Association 41, 1946; McNemar's exact test where the items are right or wrong.
    """
    trials = higher + lower
    tail = sum(math.comb(trials, count) for count in range(min(higher, lower) + 1))
    return min(1.0, 2 * tail / (1 << trials))


def sign_test_higher(higher: int, lower: int) -> float:
    """`P(X >= higher)` with X as in `sign_test`: the exact one-sided p for "higher more often than lower"."""
    trials = higher + lower
    return sum(math.comb(trials, count) for count in range(higher, trials + 1)) / (1 << trials)


TIE = 1e-9  # relative; item means of equal responses may differ by rounding


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of a − b over shared items, its two-sided p, and the number of items that a wins, ties and loses."""

    estimate: Estimate
    p: float | None
    wins: int
    ties: int
    losses: int


def metric_pairs(
    means: DataFrame, units: Series[int], metric: ScaledMetric, width: float | None
) -> list[Pair]:
    """All pairs of candidates under one metric, by name, with Holm's correction over all of them.

    `means` has a row per item and a column per candidate, NaN for a missing mean; `units` are the items' units;
    `width` is that of the scale, None if it has none.
    """
    clusters, values = units.to_numpy(), {str(name): means[name].to_numpy() for name in means}
    pairs = []
    for a, b in combinations(sorted(values), 2):
        shared = ~(np.isnan(values[a]) | np.isnan(values[b]))
        difference = paired_difference(values[a][shared], values[b][shared], clusters[shared], width)
        pairs.append(_pair(a, b, metric, difference))
    for pair, corrected in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = corrected
        pair["distinguishable"] = None if corrected is None else corrected < 1 - LEVEL
    return pairs


def _pair(a: str, b: str, metric: ScaledMetric, difference: MeanDifference) -> Pair:
    estimate, wanted = difference.estimate, metric.wanted_difference
    return Pair(
        a=a,
        b=b,
        metric=metric.name,
        items=estimate.items,
        clusters=estimate.clusters,
        difference=estimate.mean,
        se=estimate.se,
        ci_low=estimate.low,
        ci_high=estimate.high,
        p=difference.p,
        p_holm=None,
        distinguishable=None,
        wins=difference.wins,
        ties=difference.ties,
        losses=difference.losses,
        smallest_difference=smallest_difference(estimate),
        wanted_difference=wanted,
        items_needed=items_needed(estimate, wanted) if wanted else None,
    )


def paired_difference(
    a: Floats, b: Floats, clusters: Ints | None = None, width: float | None = None
) -> MeanDifference:
    """Compare two candidates' item means on shared items; `a`, `b` and `clusters` have shape (shared items,).

    The difference is the mean of a_i − b_i with the interval of `estimate_difference` and the (clustered) t test, so
    that at the border the two may disagree. Differences within rounding are ties. Source: paired t test (Student 1908).
    """
    gaps = differences(a, b)
    wins, losses = int(np.sum(gaps > 0)), int(np.sum(gaps < 0))
    estimate = estimate_difference(gaps, clusters, width)
    return MeanDifference(estimate, p_value(estimate), wins, int(a.size) - wins - losses, losses)


def differences(a: Floats, b: Floats) -> Floats:
    """`a - b`; 0 within rounding, which is a tie."""
    near = TIE * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    return np.where(np.abs(a - b) <= near, 0.0, a - b)


def p_value(estimate: Estimate) -> float | None:
    """Two-sided p for "the mean is 0": t test with clusters − 1 degrees of freedom; None with fewer than two units.

    If all differences are equal, t is undefined: p is 1 if they are 0, otherwise that of the exact sign test,
    `2^(1 - n)` over the n independent units, so that two items cannot prove anything.
    """
    if estimate.mean is None or estimate.se is None:
        return None
    if estimate.se > 0:
        return t_two_sided(estimate.mean / estimate.se, estimate.clusters - 1)
    return 1.0 if estimate.mean == 0 else 2.0 ** (1 - estimate.clusters)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction, in the order given: `max_{j <= i} min(1, (m - j + 1) p_(j))`.

    None stays None. Controls the family-wise error under any dependence. m is the number of p values that are not None.
    Source: Holm 1979.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for done, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - done) * p))
        corrected[place] = largest
    return corrected


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """The Benjamini–Hochberg step-up correction, in the order given: `min_{j >= i} min(1, m p_(j) / j)`.

    None stays None. Controls the false discovery rate for independent or positively dependent tests. Source: Benjamini
    and Hochberg, Journal of the Royal Statistical Society B 57(1), 1995.
    """
    tested = sorted(((p, place) for place, p in enumerate(p_values) if p is not None), reverse=True)
    corrected: list[float | None] = [None] * len(p_values)
    least = 1.0
    for done, (p, place) in enumerate(tested):
        least = min(least, p * len(tested) / (len(tested) - done))
        corrected[place] = least
    return corrected


def smallest_difference(estimate: Estimate) -> float | None:
    """The smallest true difference that a test on these items detects with a power of 80 %.

    `(t_{1-a/2} + t_power) se`, in score units. Uses the observed spread as the true one; None without a spread. Source:
    Bloom, "Minimum Detectable Effects", Evaluation Review 19(5), 1995.
    """
    if not estimate.se:
        return None
    return _reach(estimate.clusters - 1) * estimate.se


def items_needed(estimate: Estimate, wanted: float) -> int | None:
    """The number of items of this kind that detects a true difference of `wanted` (score units) with a power of 80 %.

    The smallest n with `(t_{1-a/2, df} + t_{power, df})² n0 se² / n <= wanted²`, where df keeps the observed ratio of
    clusters to items. None without a spread, or if `wanted` is 0.
    """
    if not estimate.se or wanted == 0:
        return None
    variance, per_item = estimate.items * estimate.se**2, estimate.clusters / estimate.items
    normal = normal_quantile(UPPER) + normal_quantile(POWER)
    n = max(math.ceil(2 / per_item), math.ceil(normal**2 * variance / wanted**2))
    enough = wanted**2 * (1 + ROUNDING) / variance
    while _reach(n * per_item - 1) ** 2 / n > enough:
        n += max(1, n // 1000)
    return n


def _reach(df: float) -> float:
    return t_quantile(UPPER, df) + t_quantile(POWER, df)


MANY = 10  # every k up to this is shown; beyond it only powers of two and the largest


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance components in squared score units, and the share of the total that is between items (0…1)."""

    between: float | None
    within: float | None
    share_between: float | None

    def error_of_mean(self, items: float, responses: float) -> float | None:
        """`sqrt((between + within / responses) / items)`: the standard error of a mean; `responses` is per item.

        Source: Miller, "Adding Error Bars to Evals", 2024, section 3.2.
        """
        if self.between is None or self.within is None:
            return None
        return finite(np.sqrt((self.between + self.within / responses) / items))


def sizes_shown(most: int) -> list[int]:
    """The values of k that a report shows if items have at most `most` scored responses."""
    if most <= MANY:
        return list(range(1, most + 1))
    powers = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*powers, most]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A cell's scored responses, by item and ascending value; all arrays have shape (responses,).

    `items`: item numbers from 0; `ranks`: ranks within the item, from 0; `sizes`: the item's number of responses.
    """

    values: Floats
    items: Ints
    ranks: Ints
    sizes: Ints


def ranked(judgements: DataFrame) -> Ranked:
    """A cell's scored judgements as `Ranked`."""
    values, rows = judgements["value"].to_numpy(dtype=np.float64), judgements["row"].to_numpy()
    items = np.unique(rows, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((values, items))
    items, many = items[order], np.bincount(items)
    starts = np.cumsum(many) - many
    return Ranked(values[order], items, np.arange(items.size) - starts[items], many[items])


def best_at_k(responses: Ranked, k: int) -> tuple[float | None, int]:
    """The expected best of k of an item's responses, averaged over items, and the number of items.

    `sum_r s_(r) C(r-1, k-1) / C(n, k)` with the item's n scores ascending (draws without replacement): unbiased for the
    best of k new responses. Items with fewer than k scored responses are left out, so the number is returned too.
    Source: order statistics; the same argument as pass@k (Chen et al. 2021).
    """
    return _expected(responses, responses.ranks, k)


def worst_at_k(responses: Ranked, k: int) -> tuple[float | None, int]:
    """The expected worst of k of an item's responses, as `best_at_k` with the scores descending."""
    return _expected(responses, responses.sizes - 1 - responses.ranks, k)


def _expected(responses: Ranked, ranks: Ints, k: int) -> tuple[float | None, int]:
    enough = responses.sizes >= k
    if not enough.any():
        return None, 0
    with quiet():
        shares = _share_of_draws(ranks[enough], k - 1, responses.sizes[enough], k)
        sums = np.bincount(responses.items[enough], weights=responses.values[enough] * shares)
    means = sums[np.unique(responses.items[enough])]
    return finite(means.mean()), int(means.size)


def pass_at_k(responses: Ranked, k: int, threshold: float = 1.0) -> tuple[float | None, int]:
    """The probability (0…1) that at least one of k responses passes, averaged over items, and the number of items.

    `1 - C(n - c, k) / C(n, k)` for an item with c responses of at least `threshold` among n: unbiased. Items are left
    out as in `best_at_k`. Source: Chen et al., "Evaluating Large Language Models Trained on Code", 2021, eq. 1.
    """
    none_passes, items = _all_among(responses, responses.values < threshold, k)
    return (None, 0) if none_passes is None else (finite(1 - none_passes), items)


def all_pass_at_k(responses: Ranked, k: int, threshold: float = 1.0) -> tuple[float | None, int]:
    """The probability (0…1) that all of k responses pass, averaged over items, and the number of items.

    `C(c, k) / C(n, k)` for an item with c responses of at least `threshold` among n: unbiased. Items are left out as in
    `best_at_k`. Source: Yao et al., "τ-bench", 2024, where it is called pass^k.
    """
    return _all_among(responses, responses.values >= threshold, k)


def _all_among(responses: Ranked, meant: Bools, k: int) -> tuple[float | None, int]:
    """The probability that k responses of an item are all selected by the mask `meant` (responses,).

    Averaged over items; also returns their number.
    """
    sizes = np.bincount(responses.items)
    counts = np.bincount(responses.items[meant], minlength=sizes.size)
    enough = sizes >= k
    if not enough.any():
        return None, 0
    return finite(_share_of_draws(counts[enough], k, sizes[enough], k).mean()), int(enough.sum())


def variance_components(judgements: DataFrame) -> Variance:
    """The variance between items and within them (between an item's responses), by analysis of variance.

    within = MSW, between = max(0, (MSB - MSW) / n0), n0 = (N - sum n_i² / N) / (I - 1); the share is the intraclass
    correlation ICC(1). None if no item has two responses or there is only one item. Assumes that responses to an item
    are exchangeable and equally noisy. Source: Searle, Casella and McCulloch, "Variance Components", 1992, 3.6; Shrout
    and Fleiss 1979.
    """
    items = judgements.groupby("row")["value"]
    scores, sizes = judgements["value"].to_numpy(), items.size().to_numpy()
    total, groups = scores.size, sizes.size
    if groups < 2 or total == groups:
        return Variance(None, None, None)
    with quiet():
        means = items.mean().to_numpy()
        within = float(np.sum((scores - items.transform("mean").to_numpy()) ** 2)) / (total - groups)
        mean_square = float(np.sum(sizes * (means - scores.mean()) ** 2)) / (groups - 1)
        per_item = (total - float(np.sum(sizes**2)) / total) / (groups - 1)
        between = max(0.0, (mean_square - within) / per_item)
        share = between / (between + within) if between + within > 0 else np.nan
    return Variance(finite(between), finite(within), finite(share))


def _share_of_draws(chosen_from: Ints, chosen: int, pool: Ints, drawn: int) -> Floats:
    """`C(chosen_from, chosen) / C(pool, drawn)`, computed with logarithms so that large pools do not overflow."""
    most = int(max(chosen_from.max(initial=0), pool.max(initial=0)))
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1)))))

    def log_binomial(n: Ints, k: int) -> Floats:
        rest = np.maximum(n - k, 0)
        value: Floats = log_factorial[n] - log_factorial[min(k, most)] - log_factorial[rest]
        return np.where(n < k, -np.inf, value)

    possible = pool >= drawn
    ratio = log_binomial(chosen_from, chosen) - np.where(possible, log_binomial(pool, drawn), 0.0)
    shares: Floats = np.exp(ratio)
    return shares
