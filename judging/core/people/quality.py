"""How a rater of a study does against thresholds: figures with one-sided p values, and flags over all raters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import Literal

import numpy as np

from datasets.core.kinds import COMPARISON_CODES, PASS_FAIL, SCORE
from judging.core.people.criteria import Criterion
from judging.core.people.item_outcomes import kind_of_item
from judging.core.people.order_change import order_changes
from judging.core.statistics.licence import binomial
from judging.core.statistics.means import (
    Estimate,
    benjamini_hochberg,
    estimate_difference,
)
from judging.core.statistics.numeric import FEWEST_RESAMPLED, Floats, Ints, t_two_sided
from judging.core.statistics.resampling import resampled
from judging.core.values import Value

FigureName = Literal["time", "side", "value", "gold", "agreement", "deviation", "repeats"]
FEWEST_SHARED = 10  # items that others rated too, before a deviation is said
DRAWS = 2000
FLAGGED = 0.05
_FIVE = 4  # steps from 1 to 5, for which the deviation's threshold is set


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where a figure stands out.

    time: share of the others' median; side, value: share of one side, of one value; gold: pass mark; agreement: below
    the others' mean; deviation: steps of 1–5, scaled to other scales; repeats: share with the same value.
    """

    time: float = 1 / 3
    side: float = 0.7
    value: float = 0.8
    gold: float = 0.8
    agreement: float = 0.2
    deviation: float = 0.5
    repeats: float = 0.6

    def deviation_on(self, criterion: Criterion) -> float:
        """The threshold of the deviation in the units of a criterion's scale."""
        return self.deviation * _width(criterion) / _FIVE


@dataclass(frozen=True, slots=True)
class RatedValue:
    """A value that counts. `unit`: its row; `shown`: a comparison from the rater's point of view, where `A` stood
    left; `candidate`: whose answer was rated."""

    rater: int
    item: int
    unit: int
    criterion: int
    value: Value
    shown: Value
    candidate: int = 0


@dataclass(frozen=True, slots=True)
class Trials:
    """`hits` of `of`."""

    hits: int
    of: int


@dataclass(slots=True)
class StudyRatings:
    """The ratings in force of a study. `values`: on ordinary items; `seconds`: {rater: active seconds of each ordinary
    item}; `gold`: {rater: gold items of which all known answers were hit}; `repeats`: {(rater, criterion): repeats with
    the same value}."""

    criteria: Mapping[int, Criterion]
    values: Sequence[RatedValue] = ()
    seconds: Mapping[int, Sequence[float]] = field(default_factory=dict)
    gold: Mapping[int, Trials] = field(default_factory=dict)
    repeats: Mapping[tuple[int, int], Trials] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a rater, over `of` ratings, items or repeats.

    `value`: seconds, a share (0…1), or a deviation in the units of the scale (with `low` and `high`); None: too few to
    say. `threshold`: in the same units, beyond which it stands out. `p`: one-sided, against the threshold. `what`: the
    value, or the side ("A" left, "B" right), whose share it is. `flagged`: see `quality`. `reorders`: whether the
    candidates stand in another order without the deviation; None for other figures.
    """

    rater: int
    name: FigureName
    criterion: int | None
    value: float | None
    threshold: float
    of: int
    p: float | None
    low: float | None = None
    high: float | None = None
    what: Value = ""
    flagged: bool = False
    reorders: bool | None = None


def quality(ratings: StudyRatings, thresholds: Thresholds) -> dict[int, list[Figure]]:
    """{rater: figures}. A figure is flagged if its p is at most 0.05 after Benjamini and Hochberg's correction over all
    raters and figures (`means.benjamini_hochberg`)."""
    figures = [
        *time_figures(ratings.seconds, thresholds.time),
        *(gold_figure(rater, trials, thresholds.gold) for rater, trials in ratings.gold.items()),
        *(
            repeats_figure(rater, criterion, trials, thresholds.repeats)
            for (rater, criterion), trials in ratings.repeats.items()
        ),
    ]
    for number, criterion in ratings.criteria.items():
        values = [value for value in ratings.values if value.criterion == number]
        figures += criterion_figures(criterion, values, thresholds)
    by_rater: dict[int, list[Figure]] = defaultdict(list)
    corrected = benjamini_hochberg([figure.p for figure in figures])
    for figure, p in zip(figures, corrected, strict=True):
        by_rater[figure.rater].append(replace(figure, flagged=p is not None and p <= FLAGGED))
    return dict(by_rater)


def criterion_figures(
    criterion: Criterion, values: Sequence[RatedValue], thresholds: Thresholds
) -> list[Figure]:
    """The figures under one criterion; none for free text. A ranking is one value: its pairs are not independent, so it
    has no side. `values`: of this criterion only."""
    if not values or criterion.scale == "text":
        return []
    figures: list[Figure] = []
    for own in _by_rater(values).values():
        if criterion.compares and not criterion.ranks:
            figures.append(side_figure(own, thresholds.side))
        if criterion.choices and not criterion.ranks:
            figures.append(value_figure(own, thresholds.value))
    figures += agreement_figures(criterion, values, thresholds.agreement)
    if criterion.gives in (SCORE, PASS_FAIL):
        figures += _with_order(
            deviation_figures(criterion, values, thresholds.deviation_on(criterion)), values
        )
    return figures


def _with_order(figures: Sequence[Figure], values: Sequence[RatedValue]) -> list[Figure]:
    deviations = {figure.rater: figure.value for figure in figures if figure.value is not None}
    ratings = [(value.rater, value.candidate, float(value.value)) for value in values]
    changes = order_changes(ratings, deviations)
    return [replace(figure, reorders=changes.get(figure.rater)) for figure in figures]


def at_least(hits: int, trials: int, chance: float) -> float:
    """`P(X >= hits)` with X binomial over `trials`, each with `chance`: exact, one-sided."""
    return min(1.0, float(binomial(trials, chance)[hits:].sum()))


def at_most(hits: int, trials: int, chance: float) -> float:
    """`P(X <= hits)` with X binomial over `trials`, each with `chance`: exact, one-sided."""
    return min(1.0, float(binomial(trials, chance)[: hits + 1].sum()))


def time_figures(seconds: Mapping[int, Sequence[float]], share: float) -> list[Figure]:
    """Each rater's median time against `share` times the median of all others' times.

    p: sign test, `P(X >= below)` with X binomial over the times that differ from the threshold, each with chance ½.
    Source: Dixon and Mood, Journal of the American Statistical Association 41, 1946. No figure without others.
    """
    figures = []
    for rater, own in seconds.items():
        others = [time for other, times in seconds.items() if other != rater for time in times]
        if not own or not others:
            continue
        threshold = share * median(others)
        below, above = sum(time < threshold for time in own), sum(time > threshold for time in own)
        p = at_least(below, below + above, 0.5)
        figures.append(Figure(rater, "time", None, median(own), threshold, len(own), p))
    return figures


def side_figure(own: Sequence[RatedValue], share: float) -> Figure:
    """The share of the side that a rater prefers more often, among the comparisons with a preference.

    p: `P(X >= most)` with X binomial over them, each with chance `share`."""
    places = [COMPARISON_CODES.index(value.shown) for value in own if value.shown in COMPARISON_CODES]
    left, right = sum(place < 2 for place in places), sum(place > 2 for place in places)
    most, decided = max(left, right), left + right
    what = "A" if left >= right else "B"
    return _share_figure(own[0], "side", Trials(most, decided), share, what)


def value_figure(own: Sequence[RatedValue], share: float) -> Figure:
    """The share of a rater's most frequent value, as shown. p: `P(X >= most)` with X binomial, each with chance
    `share`."""
    what, most = Counter(value.shown for value in own).most_common(1)[0]
    return _share_figure(own[0], "value", Trials(most, len(own)), share, what)


def _share_figure(
    first: RatedValue, name: FigureName, trials: Trials, threshold: float, what: Value
) -> Figure:
    share = trials.hits / trials.of if trials.of else None
    p = at_least(trials.hits, trials.of, threshold) if trials.of else None
    return Figure(first.rater, name, first.criterion, share, threshold, trials.of, p, what=what)


def gold_figure(rater: int, trials: Trials, mark: float) -> Figure:
    """The share of gold items that are right. p: `P(X <= hits)` with X binomial, each with the pass mark as chance."""
    return _hits_figure(rater, "gold", None, trials, mark)


def repeats_figure(rater: int, criterion: int, trials: Trials, share: float) -> Figure:
    """The share of hidden repeats with the same value. p: `P(X <= hits)` with X binomial, each with chance `share`."""
    return _hits_figure(rater, "repeats", criterion, trials, share)


def _hits_figure(
    rater: int, name: FigureName, criterion: int | None, trials: Trials, threshold: float
) -> Figure:
    share = trials.hits / trials.of if trials.of else None
    p = at_most(trials.hits, trials.of, threshold) if trials.of else None
    return Figure(rater, name, criterion, share, threshold, trials.of, p)


def agreement_figures(criterion: Criterion, values: Sequence[RatedValue], margin: float) -> list[Figure]:
    """How often each rater agrees with the others on shared items, against the mean of the others' shares − `margin`.

    Two values agree where an item with these two would count as agreed (`item_outcomes.kind_of_item`). p: the share of
    2,000 seeded resamplings of the rows in which the rater is not that far below; None with fewer than ten rows or two
    raters. Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993.
    """
    raters, pairs = sorted({value.rater for value in values}), _pairs(criterion, values)
    shares = _shares(pairs.sum(axis=0)[None, :])[0]
    draws = np.empty((0, len(raters)))
    if len(pairs) >= FEWEST_RESAMPLED and len(raters) > 2:
        draws = np.vstack([_shares(totals) for totals in resampled(pairs, DRAWS)])
    figures = []
    for place, rater in enumerate(raters):
        others = np.delete(shares, place)
        if np.isnan(shares[place]) or np.isnan(others).all():
            continue
        p = _share_not_below(draws, place, margin) if len(draws) else None
        threshold = max(0.0, float(np.nanmean(others)) - margin)
        shared = int(pairs[:, len(raters) + place].sum())
        first = Figure(rater, "agreement", values[0].criterion, float(shares[place]), threshold, shared, p)
        figures.append(first)
    return figures


def _pairs(criterion: Criterion, values: Sequence[RatedValue]) -> Floats:
    """(rows, 2 raters): each rater's agreements with others on a row's items, then their pairs with others. Only rows
    with a pair."""
    places = {rater: place for place, rater in enumerate(sorted({value.rater for value in values}))}
    table: dict[int, Floats] = {}
    agree: dict[tuple[Value, Value], bool] = {}
    for item in _by_item(values).values():
        for a, b in combinations(item, 2):
            both = a.value, b.value
            if both not in agree:
                agree[both] = kind_of_item(criterion, both) in ("agreed", "equal")
            counts = table.setdefault(a.unit, np.zeros(2 * len(places)))
            for rater in (a.rater, b.rater):
                counts[places[rater]] += agree[both]
                counts[len(places) + places[rater]] += 1
    return np.array(list(table.values())) if table else np.zeros((0, 2 * len(places)))


def _shares(totals: Floats) -> Floats:
    """(draws, raters) from totals as in `_pairs`, NaN without a pair."""
    agreed, shared = np.hsplit(totals, 2)
    shares: Floats = np.divide(agreed, shared, out=np.full(agreed.shape, np.nan), where=shared > 0)
    return shares


def _share_not_below(draws: Floats, place: int, margin: float) -> float | None:
    """Among the draws in which the rater and another one have a share; None without such a draw."""
    others = np.delete(draws, place, axis=1)
    defined = ~np.isnan(draws[:, place]) & ~np.isnan(others).all(axis=1)
    if not defined.any():
        return None
    gaps = np.nanmean(others[defined], axis=1) - draws[defined, place]
    return float((gaps <= margin).mean())


def deviation_figures(criterion: Criterion, values: Sequence[RatedValue], threshold: float) -> list[Figure]:
    """Each rater's mean of own value − mean of the others', over items that others rated too, with its 95 % interval by
    rows: that of the t test with rows − 1 degrees of freedom which `beyond` makes. None with fewer than ten such items.
    """
    gaps: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for item in _by_item(values).values():
        total = sum(float(value.value) for value in item)
        for value in item if len(item) > 1 else ():
            others = (total - float(value.value)) / (len(item) - 1)
            gaps[value.rater].append((float(value.value) - others, value.unit))
    figures = []
    for rater, own in gaps.items():
        estimate = None
        if len(own) >= FEWEST_SHARED:
            units: Ints = np.array([unit for _, unit in own], dtype=np.int64)
            estimate = estimate_difference(np.array([gap for gap, _ in own]), units)
        figures.append(_deviation(rater, values[0].criterion, len(own), estimate, threshold))
    return figures


def _deviation(rater: int, criterion: int, items: int, estimate: Estimate | None, threshold: float) -> Figure:
    if estimate is None:
        return Figure(rater, "deviation", criterion, None, threshold, items, None)
    p = beyond(estimate, threshold)
    mean, ends = estimate.mean, (estimate.low, estimate.high)
    return Figure(rater, "deviation", criterion, mean, threshold, items, p, *ends)


def beyond(estimate: Estimate, threshold: float) -> float | None:
    """One-sided p for "the mean is at most `threshold` away from 0": `P(T >= (|mean| − threshold) / se)` with clusters
    − 1 degrees of freedom, but no less than the two-sided p of a mean of 0: with few rows and a low threshold the
    95 % interval can hold 0 where the one-sided test alone would flag.

    Without a spread, that of the exact sign test, `2^-n` over n clusters, or 1 if the mean is not beyond. None with
    fewer than two clusters. Source: t test (Student 1908).
    """
    if estimate.mean is None or estimate.se is None:
        return None
    excess, df = abs(estimate.mean) - threshold, estimate.clusters - 1
    if estimate.se == 0:
        return 2.0**-estimate.clusters if excess > 0 else 1.0
    half = t_two_sided(excess / estimate.se, df) / 2
    return max(half if excess > 0 else 1 - half, t_two_sided(estimate.mean / estimate.se, df))


def _width(criterion: Criterion) -> float:
    choices = [float(choice) for choice in criterion.choices if not isinstance(choice, str)]
    return max(choices) - min(choices) if choices else 1.0


def _by_rater(values: Sequence[RatedValue]) -> dict[int, list[RatedValue]]:
    by_rater: dict[int, list[RatedValue]] = defaultdict(list)
    for value in values:
        by_rater[value.rater].append(value)
    return by_rater


def _by_item(values: Sequence[RatedValue]) -> dict[int, list[RatedValue]]:
    by_item: dict[int, list[RatedValue]] = defaultdict(list)
    for value in values:
        by_item[value.item].append(value)
    return by_item
