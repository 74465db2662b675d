"""Computes a report's cells (one metric for one candidate) and its pairs: difference, test, correction, power."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED

from .document import CategoryShare, Cell, OtherCategories, Pair, VarianceShares
from .frame import KINDS, Kind, Metric, of_kind
from .means import (
    Estimate,
    all_pass_at_k,
    best_at_k,
    estimate_mean,
    estimate_rate,
    item_means,
    item_units,
    mean_if_all_got,
    mean_of_items,
    pass_at_k,
    ranked,
    sizes_shown,
    variance_components,
    worst_at_k,
)
from .numeric import (
    LEVEL,
    POWER,
    ROUNDING,
    UPPER,
    Bins,
    Floats,
    Ints,
    choose_bins,
    histogram,
    normal_quantile,
    same,
    t_quantile,
    t_two_sided,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST_CATEGORIES = 30
FEW = 30  # below this many independent units, the t interval relies on scores being roughly normal


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """The scale shared by all candidates of one metric.

    `kind`: what the mean is over: numbers if any value is one, otherwise bools, otherwise categories; None without
    values. `low`, `high`: the declared scale (0…1 for bools); `lowest`, `highest`: the scale extended to the observed
    scores.
    """

    metric: Metric
    kind: Kind | None
    low: float | None = None
    high: float | None = None
    lowest: float | None = None
    highest: float | None = None
    bins: Bins | None = None

    @property
    def threshold(self) -> float | None:
        """The lowest score with which a response passes."""
        if self.kind == "bool":
            return 1.0
        return self.high if self.metric.pass_threshold is None else self.metric.pass_threshold


def scale_of(judgements: DataFrame, metric: Metric) -> Scale:
    """The scale of the metric that these judgements belong to."""
    kind = next((kind for kind in KINDS if (judgements["kind"] == kind).any()), None)
    if kind == "category":
        return Scale(metric, kind)
    low, high = (0.0, 1.0) if kind == "bool" else (metric.low, metric.high)
    scores = of_kind(judgements, kind)["value"].to_numpy()
    if not scores.size:
        return Scale(metric, kind, low, high, low, high)
    lowest = None if low is None else min(low, float(scores.min()))
    highest = None if high is None else max(high, float(scores.max()))
    return Scale(metric, kind, low, high, lowest, highest, choose_bins(scores, low, high))


def metric_cells(
    mine: DataFrame, scale: Scale, names: Sequence[str], *, clustered: bool
) -> tuple[dict[str, Cell], dict[str, Series[float]]]:
    """Each candidate's cell under one metric and its items' means, from one row per answer."""
    given: Mapping[str, DataFrame] = dict(iter(mine.groupby("candidate", observed=True)))  # type: ignore[arg-type]
    cells, means = {}, {}
    for name in names:
        cell = given.get(name, mine.iloc[:0])
        means[name] = item_means(of_kind(cell, scale.kind))
        cells[name] = _cell(cell, np.asarray(means[name], dtype=np.float64), scale, clustered)
    return cells, means


def _cell(given: DataFrame, means: Floats, scale: Scale, clustered: bool) -> Cell:
    """The figures of one metric for one candidate; `means`: of its items with a value of the scale's kind."""
    scored = of_kind(given, scale.kind)
    cell = _counts_and_mean(given, _main(means, item_units(scored), scale), scale)
    cell["off_scale"] = _off_scale(scored, scale)
    cell["top_share"] = _top_share(scored, scale)
    cell["distribution"] = histogram(scored["value"].to_numpy(), scale.bins) if scale.bins else []
    _add_rate(cell, given, scale)
    _add_categories(cell, given)
    if means.size < len(scored) and scale.kind != "category":
        _add_repeats(cell, scored, scale)
    cell["notes"] = _notes(cell, means, clustered)
    return cell


def _main(means: Floats, units: Ints, scale: Scale) -> Estimate:
    if scale.kind == "category":
        return Estimate(None, None, None, None, means.size, np.unique(units).size)
    return estimate_mean(means, units)


def _counts_and_mean(given: DataFrame, main: Estimate, scale: Scale) -> Cell:
    """Counts, mean and bounds; the other fields are left empty."""
    counts, kinds = _counts(given["state"]), _counts(given["kind"])
    states = {state: int(counts.get(state, 0)) for state in (SCORED, NO_SCORE, UNPARSED, ERROR, NOT_RUN)}
    asked = len(given) - states[NO_SCORE]
    low = high = main.mean
    if asked > states[SCORED] and scale.kind != "category":
        low, high = _bounds(given, scale)
    return Cell(
        kind=scale.kind,
        kinds={kind: int(kinds.get(kind, 0)) for kind in KINDS},
        mean=main.mean,
        ci_low=main.low,
        ci_high=main.high,
        se=main.se,
        items=main.items,
        clusters=main.clusters,
        responses=len(given),
        asked=asked,
        scored=states[SCORED],
        no_score=states[NO_SCORE],
        unparsed=states[UNPARSED],
        errors=states[ERROR],
        not_run=states[NOT_RUN],
        coverage=states[SCORED] / asked if asked else None,
        low_bound=low,
        high_bound=high,
        top_share=None,
        off_scale=0,
        distribution=[],
        notes=[],
    )


def _counts(column: Series[Any]) -> dict[str, int]:
    """How often each category occurs."""
    counts = np.bincount(column.cat.codes.to_numpy() + 1, minlength=len(column.cat.categories) + 1)[1:]
    return dict(zip(column.cat.categories, counts.tolist(), strict=True))


def _bounds(given: DataFrame, scale: Scale) -> tuple[float | None, float | None]:
    """The mean if all unscored responses had got the lowest, or the highest, score; None if that is unknown."""
    unscored = ~given["state"].isin([SCORED, NO_SCORE])
    counted = given[unscored | (given["kind"] == scale.kind)]
    low, high = (
        None if end is None else mean_if_all_got(counted, end) for end in (scale.lowest, scale.highest)
    )
    return low, high


def _off_scale(scored: DataFrame, scale: Scale) -> int:
    scores = scored["value"].to_numpy()
    below = 0 if scale.low is None else np.sum(scores < scale.low)
    above = 0 if scale.high is None else np.sum(scores > scale.high)
    return int(below + above)


def _top_share(scored: DataFrame, scale: Scale) -> float | None:
    if scale.high is None or scored.empty:
        return None
    at_top = item_means(scored.assign(value=scored["value"] >= scale.high))
    return mean_of_items(np.asarray(at_top, dtype=np.float64))


def _add_rate(cell: Cell, given: DataFrame, scale: Scale) -> None:
    """Add the rate of true values if there are bools; if they are the main kind, its interval replaces the cell's."""
    if scale.kind != "bool" and not cell["kinds"]["bool"]:
        return
    rate = estimate_rate(of_kind(given, "bool"))
    cell["rate"], cell["rate_ci_low"], cell["rate_ci_high"] = rate.rate, rate.low, rate.high
    if scale.kind == "bool":
        cell["ci_low"], cell["ci_high"] = rate.low, rate.high


def _add_categories(cell: Cell, given: DataFrame) -> None:
    """Add the most frequent labels, by frequency and then name, and the number of the rest."""
    if not cell["kinds"]["category"]:
        return
    mine = of_kind(given, "category")[["row", "unit", "label"]]
    counts = mine["label"].value_counts()
    present = sorted(((-count, str(label)) for label, count in counts[counts > 0].items()))
    cell["categories"] = {}
    for _, label in present[:MOST_CATEGORIES]:
        rate = estimate_rate(mine.assign(value=mine["label"] == label))
        share = CategoryShare(count=rate.count, share=rate.rate, ci_low=rate.low, ci_high=rate.high)
        cell["categories"][label] = share
    if rest := present[MOST_CATEGORIES:]:
        cell["other_categories"] = OtherCategories(labels=len(rest), count=-sum(count for count, _ in rest))


def _add_repeats(cell: Cell, scored: DataFrame, scale: Scale) -> None:
    """Add the figures that need several responses per item."""
    responses = ranked(scored)
    sizes = sizes_shown(int(responses.sizes.max()))
    best = {str(k): best_at_k(responses, k) for k in sizes}
    cell["best_at_k"] = {k: value for k, (value, _) in best.items()}
    cell["worst_at_k"] = {str(k): worst_at_k(responses, k)[0] for k in sizes}
    cell["at_k_items"] = {k: count for k, (_, count) in best.items()}
    threshold = scale.threshold
    if threshold is not None:
        cell["pass_at_k"] = {str(k): pass_at_k(responses, k, threshold)[0] for k in sizes}
        cell["all_pass_at_k"] = {str(k): all_pass_at_k(responses, k, threshold)[0] for k in sizes}
        cell["pass_threshold"] = threshold
    variance = variance_components(scored)
    items = int(responses.items[-1]) + 1
    each = responses.items.size / items
    cell["variance"] = VarianceShares(
        between=variance.between,
        within=variance.within,
        share_between=variance.share_between,
        se_twice_items=variance.error_of_mean(2 * items, each),
        se_twice_responses=variance.error_of_mean(items, 2 * each),
    )


def _notes(cell: Cell, means: Floats, clustered: bool) -> list[str]:
    """What a reader must know before trusting the mean, as codes from `document.NOTES`."""
    units = cell["clusters"]
    reasons = {
        "nothing_scored": cell["scored"] == 0,
        "one_unit": units == 1,
        "few_items": 1 < units < FEW and not clustered,
        "few_clusters": 1 < units < FEW and clustered,
        "no_variation": units > 1 and cell["mean"] is not None and same(means),
        "mixed_kinds": sum(count > 0 for count in cell["kinds"].values()) > 1,
        "off_scale": cell["off_scale"] > 0,
    }
    return [code for code, holds in reasons.items() if holds]


TIE = 1e-9  # relative; item means of equal responses may differ by rounding


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of a − b over shared items, its two-sided p, and the number of items that a wins, ties and loses."""

    estimate: Estimate
    p: float | None
    wins: int
    ties: int
    losses: int


def metric_pairs(means: DataFrame, units: Series[int], metric: Metric) -> list[Pair]:
    """All pairs of candidates under one metric, by name, with Holm's correction over all of them.

    `means` has a row per item and a column per candidate, NaN for a missing mean; `units` are the items' units.
    """
    clusters, values = units.to_numpy(), {str(name): means[name].to_numpy() for name in means}
    pairs = []
    for a, b in combinations(sorted(values), 2):
        shared = ~(np.isnan(values[a]) | np.isnan(values[b]))
        difference = paired_difference(values[a][shared], values[b][shared], clusters[shared])
        pairs.append(_pair(a, b, metric, difference))
    for pair, corrected in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = corrected
        pair["distinguishable"] = None if corrected is None else corrected < 1 - LEVEL
    return pairs


def _pair(a: str, b: str, metric: Metric, difference: MeanDifference) -> Pair:
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


def paired_difference(a: Floats, b: Floats, clusters: Ints | None = None) -> MeanDifference:
    """Compare two candidates' item means on shared items; all arguments have shape (shared items,).

    The difference is the mean of a_i − b_i with the (clustered) t interval and t test of `estimate_mean`. Differences
    within rounding are ties. Source: paired t test (Student 1908).
    """
    near = TIE * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    differences = np.where(np.abs(a - b) <= near, 0.0, a - b)
    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    estimate = estimate_mean(differences, clusters)
    return MeanDifference(estimate, p_value(estimate), wins, int(a.size) - wins - losses, losses)


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
