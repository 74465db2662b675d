"""Inter-rater agreement corrected for chance, and rank correlation; agreement per metric, rater pair and rater.

Rating matrices have shape (units, raters), with NaN for a missing rating.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .document import ChanceCorrected, RaterFigures, RaterPair, Raters
from .frame import Level
from .numeric import FEWEST_RESAMPLED, ROUNDING, UPPER, Bools, Draws, Floats, Ints, finite, percentiles, same
from .verdicts import Verdicts, steps_of

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_RATED = 60  # most distinct values for which alpha is bootstrapped: each unit needs a matrix of this size


def krippendorff_alpha(ratings: Floats, level: Level) -> float | None:
    """`1 - D_o / D_e` over the coincidences of values within units; 1 is perfect, 0 is chance, unit-free.

    `ratings` has shape (units, raters) and holds numbers (codes if nominal), with NaN for a missing rating. Units with
    fewer than two ratings are ignored. None if no unit has two ratings or if nothing varies. Assumes that raters are
    interchangeable. Source: Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011.
    """
    together = coincidences(ratings)
    if together is None:
        return None
    values, observed = together
    return finite(_alphas(values, observed[None], level)[0])


def coincidences(ratings: Floats) -> tuple[Floats, Floats] | None:
    """The sorted values (values,) and their coincidence matrix (values, values); None if no unit has two ratings.

    The pairs of a unit with m ratings are weighted by 1 / (m - 1).
    """
    there = ~np.isnan(ratings)
    ratings = ratings[there.sum(axis=1) >= 2]
    if ratings.size == 0:
        return None
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = _counts(ratings)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    matrix = (counts * weights[:, None]).T @ counts
    return values, matrix - np.diag((counts * weights[:, None]).sum(axis=0))


def percent_agreement(ratings: Floats) -> float | None:
    """The share of pairs of raters within units who gave the same rating, 0…1; None if no unit has two ratings.

    `ratings` as in `krippendorff_alpha`. Not corrected for chance.
    """
    there = ~np.isnan(ratings)
    many = there.sum(axis=1).astype(float)
    pairs = float((many * (many - 1)).sum())
    if not pairs:
        return None
    counts = _counts(ratings)
    return float((counts * (counts - 1)).sum()) / pairs


def fleiss_kappa(ratings: Floats) -> float | None:
    """`(P - P_e) / (1 - P_e)` with P the mean pairwise agreement within items and P_e the agreement expected by chance.

    `ratings` (items, raters) as in `krippendorff_alpha`, treated as labels. None if items differ in their number of
    ratings or have fewer than two, or if nothing varies. Source: Fleiss, Psychological Bulletin 76(5), 1971.
    """
    counts = _counts(ratings)
    sizes = counts.sum(axis=1)
    if not counts.size or sizes.min() < 2 or sizes.min() != sizes.max():
        return None
    size = sizes[0]
    agreed = float(((counts**2).sum(axis=1) - size).mean() / (size * (size - 1)))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return None if chance >= 1 else float((agreed - chance) / (1 - chance))


def gwet_ac1(ratings: Floats, labels: int | None = None) -> float | None:
    """`(P - P_e) / (1 - P_e)` with `P_e = sum_k pi_k (1 - pi_k) / (q - 1)` over the q labels that raters could give.

    `ratings` (items, raters) as in `krippendorff_alpha`, treated as labels; `labels`: q, by default the number of those
    that occur. P is the mean over items with at least two ratings, pi_k the mean share of label k over all items.
    Unlike kappa, stable if one label dominates. None for a single label. Source: Gwet, British Journal of Mathematical
    and Statistical Psychology 61(1), 2008.
    """
    size = np.unique(ratings[~np.isnan(ratings)]).size
    q = size if labels is None else max(size, labels)
    return None if q < 2 else _gwet(ratings, np.eye(size), q)


def gwet_ac2(ratings: Floats, low: float, high: float) -> float | None:
    """AC1 for the whole numbers from `low` to `high`, with the quadratic weights `1 - (k - l)² / (high - low)²`.

    P is the mean over items with at least two ratings of `sum_k r_k (sum_l w_kl r_l - 1) / (r (r - 1))`, with r_k of an
    item's r ratings being k, and `P_e = T sum_k pi_k (1 - pi_k) / (q (q - 1))`, T the sum of all weights. A rating off
    the scale widens it. Source: Gwet, Handbook of Inter-Rater Reliability, 4th ed., 2014, chapter 4.
    """
    values = np.unique(ratings[~np.isnan(ratings)])
    if values.size:
        low, high = min(low, float(values[0])), max(high, float(values[-1]))
    if not high > low:
        return None
    weights = 1 - ((values[:, None] - values[None, :]) / (high - low)) ** 2
    q = high - low + 1
    total = q * q * (1 - (q + 1) / (6 * (q - 1)))  # the sum of all q² weights
    return _gwet(ratings, weights, q, total)


def _gwet(ratings: Floats, weights: Floats, q: float, total: float | None = None) -> float | None:
    """`weights` (values, values) of the values that occur; `total`: the sum of the weights of all q labels."""
    counts = _counts(ratings)
    sizes = counts.sum(axis=1)
    counts, sizes = counts[sizes > 0], sizes[sizes > 0]
    several = sizes >= 2
    if not several.any():
        return None
    twice, many = counts[several], sizes[several]
    agreed = (twice * (twice @ weights - 1)).sum(axis=1) / (many * (many - 1))
    shares = (counts / sizes[:, None]).mean(axis=0)
    chance = (q if total is None else total) / (q * (q - 1)) * float((shares * (1 - shares)).sum())
    return finite((agreed.mean() - chance) / (1 - chance))


def _counts(ratings: Floats) -> Floats:
    """The number of ratings with each value: (items, values)."""
    values = np.unique(ratings[~np.isnan(ratings)])
    if not values.size:
        return np.zeros((len(ratings), 0))
    return np.stack([(ratings == value).sum(axis=1) for value in values], axis=1).astype(float)


def cohen_kappa(a: Floats, b: Floats) -> float | None:
    """`(P - P_e) / (1 - P_e)` of two raters on the same items, both of shape (items,), treated as labels.

    None without items or if both raters only ever give the same single label. Source: Cohen, Educational and
    Psychological Measurement 20(1), 1960.
    """
    if not a.size:
        return None
    _, counts = contingency(a, b)
    shares = counts / counts.sum()
    chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return None if chance >= 1 - ROUNDING else (float(np.trace(shares)) - chance) / (1 - chance)


def quadratic_kappa(a: Floats, b: Floats) -> float | None:
    """`1 - sum (a_i - b_i)² / (sum_ij (a_i - b_j)² / n)`: Cohen's kappa with quadratic weights.

    Both have shape (items,) and hold numbers on one scale, not necessarily whole. None without items, or if both are
    constant and equal. Source: Cohen, Psychological Bulletin 70(4), 1968; Fleiss and Cohen 1973.
    """
    return finite(_quadratic_kappas(_kappa_parts(a, b).sum(axis=0)[None])[0]) if a.size else None


def cohen_kappa_interval(
    a: Floats, b: Floats, clusters: Ints, draws: Draws, upper: float = UPPER
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of `cohen_kappa`, as `quadratic_kappa_interval`."""
    units = np.unique(clusters).size
    if units < FEWEST_RESAMPLED or same(a) or same(b):
        return None, None
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    first, second = (np.eye(values.size)[part] for part in np.split(codes, 2))
    sums = draws.sums(clusters, np.column_stack([np.ones(a.size), first, second, a == b]))
    total = np.maximum(sums[:, :1], 1)
    shares = sums / total
    of_a, of_b = shares[:, 1 : values.size + 1], shares[:, values.size + 1 : -1]
    chance = (of_a * of_b).sum(axis=1)
    varies = chance < 1 - ROUNDING
    nothing = np.full(chance.shape, np.nan)
    return percentiles(np.divide(shares[:, -1] - chance, 1 - chance, out=nothing, where=varies), units, upper)


def quadratic_kappa_interval(
    a: Floats, b: Floats, clusters: Ints, draws: Draws, upper: float = UPPER
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of `quadratic_kappa`, resampling whole clusters of items.

    `upper`: the quantile at which it ends. None if either side is constant: kappa is then 0 in every draw, whatever the
    other side is; and as `percentiles`.
    """
    units = np.unique(clusters).size
    if units < FEWEST_RESAMPLED or same(a) or same(b):
        return None, None
    return percentiles(_quadratic_kappas(draws.sums(clusters, _kappa_parts(a, b))), units, upper)


def _kappa_parts(a: Floats, b: Floats) -> Floats:
    return np.column_stack([np.ones(a.size), a, b, a * a, b * b, (a - b) ** 2])


def _quadratic_kappas(sums: Floats) -> Floats:
    """Kappa for each row of summed `_kappa_parts` (draws, parts); NaN if nothing varies."""
    total, of_a, of_b, squares_a, squares_b, observed = sums.T
    expected = squares_a + squares_b - 2 * of_a * of_b / np.maximum(total, 1)
    varies = expected > ROUNDING * np.maximum(1.0, squares_a + squares_b)
    kappas: Floats = 1 - np.divide(observed, expected, out=np.full(total.shape, np.nan), where=varies)
    return kappas


def contingency(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The sorted values of both (values,) and the contingency table, a in rows and b in columns (values, values)."""
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    return values, pair_counts(codes[: a.size], codes[a.size :], values.size)


def pair_counts(a: Floats | Ints, b: Floats | Ints, size: int) -> Floats:
    """The contingency table (size, size) of the codes 0…size − 1 of two raters on the same items (items,)."""
    counts = np.bincount((a * size + b).astype(np.int64), minlength=size**2)
    return counts.reshape(size, size).astype(np.float64)


def alpha_interval(
    ratings: Floats, clusters: Ints, level: Level, draws: Draws
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of `krippendorff_alpha`, resampling whole clusters of units.

    `ratings` (units, raters), `clusters` (units,). Source: Efron and Tibshirani 1993; resampling units as in Zapf et
    al., BMC Medical Research Methodology 16, 2016.
    """
    rated_twice = (~np.isnan(ratings)).sum(axis=1) >= 2
    ratings, clusters = ratings[rated_twice], clusters[rated_twice]
    values = np.unique(ratings[~np.isnan(ratings)])
    units = np.unique(clusters).size
    if units < FEWEST_RESAMPLED or values.size < 2 or values.size > MOST_RATED:
        return None, None
    counts = _counts(ratings)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    matrix = counts[:, :, None] * counts[:, None, :] * weights[:, None, None]
    places = np.arange(values.size)
    matrix[:, places, places] -= counts * weights[:, None]
    observed = draws.sums(clusters, matrix.reshape(len(matrix), -1)).reshape(-1, values.size, values.size)
    return percentiles(_alphas(values, observed, level), units)


def _alphas(values: Floats, observed: Floats, level: Level) -> Floats:
    """Alpha for each coincidence matrix (draws, values, values); NaN if nothing varies."""
    marginal = observed.sum(axis=2)
    total = marginal.sum(axis=1)
    distance = _squared_distances(values, marginal, level)
    expected = marginal[:, :, None] * marginal[:, None, :]
    by_chance = (expected * distance).sum(axis=(1, 2))
    disagreement = (observed * distance).sum(axis=(1, 2)) * (total - 1)
    alphas: Floats = 1.0 - np.divide(
        disagreement, by_chance, out=np.full(total.shape, np.nan), where=by_chance > 0
    )
    return alphas


def _squared_distances(values: Floats, marginal: Floats, level: Level) -> Floats:
    """Krippendorff's distances between values: (draws or 1, values, values)."""
    apart = values[:, None] - values[None, :]
    if level == "nominal":
        return np.asarray((apart != 0)[None], dtype=np.float64)
    if level == "ordinal":  # the number of ratings between two values, with each end counted half
        middle = np.cumsum(marginal, axis=1) - marginal / 2
        apart = middle[:, :, None] - middle[:, None, :]
    elif level == "ratio":
        both = values[:, None] + values[None, :]
        apart = np.divide(apart, both, out=np.zeros_like(apart), where=both != 0)
    squared: Floats = np.square(apart if apart.ndim == 3 else apart[None])
    return squared


MOST_TABLED = 200  # most distinct values for which Kendall's tau uses a table; scipy sorts beyond it


def pearson(a: Floats, b: Floats) -> float | None:
    """`sum (a - ā)(b - b̄) / sqrt(sum (a - ā)² sum (b - b̄)²)`, −1…1, both of shape (items,)."""
    if a.size < 2 or same(a) or same(b):
        return None
    x, y = a - a.mean(), b - b.mean()
    return finite(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(a: Floats, b: Floats) -> float | None:
    """Pearson's correlation of the ranks, with ties at their mean rank. Source: Spearman 1904."""
    return pearson(mean_ranks(a), mean_ranks(b))


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1, with ties at their mean rank: shape (items,)."""
    import pandas as pd

    return np.asarray(pd.Series(values).rank(), dtype=np.float64)


def kendall(a: Floats, b: Floats) -> float | None:
    """tau-b: `(C - D) / sqrt((n0 - ties in a)(n0 - ties in b))` over pairs of items. Source: Kendall 1945."""
    if a.size < 2 or same(a) or same(b):
        return None
    if max(np.unique(a).size, np.unique(b).size) > MOST_TABLED:
        from scipy.stats import kendalltau  # imported here because it is slow to import

        return finite(kendalltau(a, b).statistic)
    _, counts = contingency(a, b)
    below = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))
    below[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    lower = below[:-1, :-1]  # items lower in both a and b
    crossed = below[:-1, -1:] - below[:-1, 1:]  # lower in a, higher in b
    concordant, discordant = float((counts * lower).sum()), float((counts * crossed).sum())
    pairs = a.size * (a.size - 1) / 2
    tied = [float((sums * (sums - 1)).sum() / 2) for sums in (counts.sum(axis=1), counts.sum(axis=0))]
    return finite((concordant - discordant) / np.sqrt((pairs - tied[0]) * (pairs - tied[1])))


MOST_PAIRED = 30  # raters compared in pairs: those with the most items


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Verdicts as numbers, or as codes for labels.

    `by_slot` (items, most ratings of an item): values without regard to who gave them; `said`: the same, as codes in
    which different labels always differ. `values`, `codes`, `items`, `authors` (verdicts,): the same in long form.
    `names`: of the authors; `clusters` (items,).
    """

    level: Level
    by_slot: Floats
    said: Floats
    values: Floats
    codes: Floats
    items: Ints
    authors: Ints
    names: list[str]
    clusters: Ints

    @property
    def several(self) -> Bools:
        """Whether each item has at least two verdicts: (items,)."""
        several: Bools = (~np.isnan(self.by_slot)).sum(axis=1) >= 2
        return several


def raters_of(verdicts: Verdicts) -> DataFrame:
    """People's own verdicts, excluding adjudicators'."""
    return verdicts.people[(verdicts.people["source"] == "rater").to_numpy()]


def ratings_of(rows: DataFrame, verdicts: Verdicts) -> Ratings:
    """The scored verdicts in `rows` as numbers; `verdicts` supplies the level of measurement."""
    level = verdicts.level
    scored = rows[rows["kind"].notna().to_numpy()]
    items = np.unique(scored["item"].to_numpy(), return_inverse=True)[1].astype(np.int64)
    labelled = scored["label"].astype(object)
    codes = labelled.where(labelled.notna(), scored["value"]).factorize()[0].astype(np.float64)
    if level == "nominal":
        values = codes
    elif verdicts.compares:
        values = steps_of(scored)
    else:
        values = scored["value"].to_numpy(dtype=np.float64)
    names = [str(category) for category in scored["by"].cat.remove_unused_categories().cat.categories]
    authors = scored["by"].cat.remove_unused_categories().cat.codes.to_numpy().astype(np.int64)
    first = np.unique(items, return_index=True)[1]
    return Ratings(
        level=level,
        by_slot=_slots(values, items),
        said=_slots(codes, items),
        values=values,
        codes=codes,
        items=items,
        authors=authors,
        names=names,
        clusters=scored["unit"].to_numpy()[first],
    )


def _slots(values: Floats, items: Ints) -> Floats:
    """One row per item, with its values from the left, padded with NaN."""
    import pandas as pd

    verdicts = pd.DataFrame({"item": items, "value": values})
    verdicts["slot"] = verdicts.groupby("item").cumcount()
    return verdicts.pivot(index="item", columns="slot", values="value").to_numpy(dtype=np.float64)


def rater_agreement(verdicts: Verdicts, draws: Draws) -> Raters | None:
    """Rater agreement under one metric, excluding adjudicators; None if there are no ratings."""
    rows = raters_of(verdicts)
    table = ratings_of(rows, verdicts)
    if not table.names:
        return None
    low, high = alpha_interval(table.by_slot, table.clusters, table.level, draws)
    return Raters(
        metric=verdicts.metric.name,
        level=table.level,
        items=int(table.several.sum()),
        raters=len(table.names),
        alpha=krippendorff_alpha(table.by_slot, table.level),
        ci_low=low,
        ci_high=high,
        percent=percent_agreement(table.said),
        **_chance_corrected(verdicts, table),
        fleiss=fleiss_kappa(table.said),
        pairs=_pairs(table),
        each=_each(table, rows),
    )


def _chance_corrected(verdicts: Verdicts, table: Ratings) -> ChanceCorrected:
    """AC1 of labels, bools and the three directions of comparisons, AC2 of scales of whole numbers."""
    metric, choices = verdicts.metric, verdicts.metric.choices
    if table.level == "ordinal" and not verdicts.compares:
        assert metric.low is not None and metric.high is not None  # noqa: PT018
        ac2 = gwet_ac2(table.by_slot, metric.low, metric.high)
        return ChanceCorrected(ac1=None, ac2=ac2, labels=None, labels_offered=None)
    if table.level == "interval":
        return ChanceCorrected(ac1=None, ac2=None, labels=None, labels_offered=None)
    said, offered = (np.sign(table.by_slot), 3) if verdicts.compares else (table.said, 0)
    labels = np.unique(said[~np.isnan(said)]).size
    if choices is not None:
        seen = {str(label) for label in raters_of(verdicts)["label"].dropna().unique()}
        labels = max(labels, offered or len({*choices, *seen}))
    return ChanceCorrected(
        ac1=gwet_ac1(said, labels), ac2=None, labels=labels, labels_offered=choices is not None
    )


def _pairs(table: Ratings) -> list[RaterPair]:
    """Agreement of every pair of raters with items in common, by name; limited to the raters with the most items."""
    most = np.argsort(-np.bincount(table.authors), kind="stable")[:MOST_PAIRED]
    mine = {}
    for author in sorted(most):
        here = table.authors == author
        items, first = np.unique(table.items[here], return_index=True)
        mine[author] = items, table.values[here][first], table.codes[here][first]
    pairs = []
    for a, b in combinations(mine, 2):
        shared, of_a, of_b = np.intersect1d(mine[a][0], mine[b][0], assume_unique=True, return_indices=True)
        if not shared.size:
            continue
        said = mine[a][2][of_a], mine[b][2][of_b]
        ordinal = table.level != "nominal"
        pairs.append(
            RaterPair(
                a=table.names[a],
                b=table.names[b],
                items=int(shared.size),
                exact=finite(np.mean(said[0] == said[1])),
                kappa=cohen_kappa(*said),
                kappa_weighted=quadratic_kappa(mine[a][1][of_a], mine[b][1][of_b]) if ordinal else None,
            )
        )
    return pairs


def _each(table: Ratings, rows: DataFrame) -> dict[str, RaterFigures]:
    """Each rater's item count, share of other raters' matching verdicts on them, and mean known seconds per item."""
    pairs = np.column_stack([table.items, table.codes])
    _, same, alike = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    agreeing = np.bincount(table.authors, weights=alike[same.ravel()] - 1.0)
    others = np.bincount(table.authors, weights=np.bincount(table.items)[table.items] - 1.0)
    totals = np.bincount(table.authors)
    seconds = rows[(rows["seconds"] > 0).to_numpy()].groupby("by", observed=True)["seconds"].mean()
    return {
        name: RaterFigures(
            items=int(totals[place]),
            agreement_with_others=float(agreeing[place] / others[place]) if others[place] else None,
            seconds=finite(seconds.get(name, np.nan)),
        )
        for place, name in enumerate(table.names)
    }
