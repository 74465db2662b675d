"""Every pair of candidates under every metric, in an order that doesn't depend on how the run was set up."""

from itertools import combinations

import numpy as np

from .arrays import Floats, Ints
from .cells import answers
from .columns import Kind, Metric, Table
from .document import Pair
from .frame import Frame
from .means import item_means
from .pairs import Difference, holm, items_needed, paired_difference, smallest_difference


def metric_pairs(table: Table, metric: int, frame: Frame, level: float, power: float) -> list[Pair]:
    """The pairs of candidates under one metric, by name, Holm-corrected together; none for categories."""
    if frame.kind == Kind.CATEGORY:
        return []
    names = table.columns.candidates
    means = [_means_of_items(table, metric, place, frame.kind) for place in range(len(names))]
    places = combinations(sorted(range(len(names)), key=lambda place: names[place]), 2)
    pairs = []
    for a, b in places:
        difference = _difference(means[a], means[b], table.clusters, level)
        pairs.append(_pair(names[a], names[b], frame.metric, difference, level, power))
    for pair, corrected in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = corrected
        pair["distinguishable"] = None if corrected is None else corrected < 1 - level
    return pairs


def _means_of_items(table: Table, metric: int, candidate: int, kind: Kind) -> Floats:
    """One candidate's mean for each item (all items,), NaN where it has none."""
    scored = answers(table, metric, candidate).of(kind)
    means, items = item_means(scored.score, scored.item)
    spread = np.full(table.items, np.nan)
    spread[items] = means
    return spread


def _difference(a: Floats, b: Floats, clusters: Ints | None, level: float) -> Difference:
    shared = ~(np.isnan(a) | np.isnan(b))
    return paired_difference(a[shared], b[shared], None if clusters is None else clusters[shared], level)


def _pair(a: str, b: str, metric: Metric, difference: Difference, level: float, power: float) -> Pair:
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
        smallest_difference=smallest_difference(estimate, level, power),
        wanted_difference=wanted,
        items_needed=items_needed(estimate, wanted, level, power) if wanted else None,
    )
