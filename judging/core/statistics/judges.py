"""Judge health: each judge against people and against other judges, its repeats, and what order and length do to it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from . import agreement
from .correlation import kendall, pearson, spearman
from .document import FirstSide, HumanCeiling, JudgeAgreement, OrderEffect, Repeats
from .frame import Metric, answers_coded
from .means import estimate_mean
from .numeric import ROUNDING, Floats, Ints, finite
from .raters import level_of, ratings_of
from .rates import wilson
from .resampling import Draws, percentiles
from .verdicts import (
    STEPS,
    answer_index,
    as_comparisons,
    by_author,
    compares,
    of_people,
    one_each,
    steps_of,
    without_single_orders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pandas import DataFrame, Series

MOST_LABELS = 20  # of a confusion table


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The answers that two authors both have a value for.

    `a`, `b`: the values as numbers; `said`: what is the same or not, as codes; `clusters`: the rows; all of shape
    (answers,). `nominal`: the values have no order. `labels` and `counts` (labels, labels): the confusion table."""

    a: Floats
    b: Floats
    said: tuple[Floats, Floats]
    clusters: Ints
    labels: list[str | float]
    counts: Floats
    nominal: bool = False
    binary: bool = False


def judge_agreements(mine: DataFrame, metric: Metric, draws: Draws, level: float) -> list[JudgeAgreement]:
    """Every judge, rule program and script of a metric against people, then each two judges, by name."""
    mine = as_comparisons(mine, metric) if compares(mine, metric) else mine
    people = mine[of_people(mine)]
    authors = by_author(mine)
    value = one_each(people)
    found = [
        _agreement(metric, name, "people", rows, value, draws, level, people)
        for name, rows in authors.items()
        if len(people)
    ]
    judges = {name: rows for name, rows in authors.items() if (rows["source"] == "judge").all()}
    found += [
        _agreement(metric, a, b, judges[a], judges[b], draws, level, None) for a, b in combinations(judges, 2)
    ]
    return [one for one in found if one["items"]]


def _agreement(
    metric: Metric,
    judge: str,
    against: str,
    rows: DataFrame,
    others: DataFrame,
    draws: Draws,
    level: float,
    people: DataFrame | None,
) -> JudgeAgreement:
    shared = shared_values(rows, others)
    a, b = shared.a, shared.b
    ordinal, small = not shared.nominal, len(shared.labels) <= MOST_LABELS
    bias = estimate_mean(a - b, shared.clusters, level) if ordinal else None
    low, high = kappa_interval(shared, draws, level) if ordinal else (None, None)
    found = JudgeAgreement(
        metric=metric.name,
        judge=judge,
        against=against,
        items=int(a.size),
        exact=finite(np.mean(shared.said[0] == shared.said[1])) if a.size else None,
        kappa=agreement.cohen_kappa(*shared.said),
        kappa_weighted=agreement.quadratic_kappa(a, b) if ordinal else None,
        kappa_low=low,
        kappa_high=high,
        spearman=spearman(a, b) if ordinal else None,
        pearson=pearson(a, b) if ordinal else None,
        kendall=kendall(a, b) if ordinal else None,
        alpha=agreement.krippendorff_alpha(np.column_stack([a, b]), level_of(rows, metric))
        if a.size
        else None,
        mean_absolute_difference=finite(np.abs(a - b).mean()) if ordinal and a.size else None,
        bias=bias.mean if bias else None,
        bias_low=bias.low if bias else None,
        bias_high=bias.high if bias else None,
        confusion=shared.counts.astype(int).tolist() if small else [],
        labels=shared.labels if small else [],
        human=None if people is None else human_ceiling(people, rows, metric),
    )
    if shared.binary:
        _add_rates(found, shared, level)
    return found


def shared_values(rows: DataFrame, others: DataFrame) -> Shared:
    """The answers that both have a value for, one row each."""
    both = answer_index(rows[rows["kind"].notna()]).join(
        answer_index(others[others["kind"].notna()])[["kind", "value", "label"]],
        how="inner",
        rsuffix="_other",
    )
    kinds = both[["kind", "kind_other"]].astype(object)
    if (kinds == "category").to_numpy().any():
        return _of_labels(both)
    if len(both) and (kinds == "bool").to_numpy().all():
        return _of_bools(both)
    a, b = _two(both)
    clusters = both["unit"].to_numpy()
    values, counts = agreement.contingency(a, b)
    if values.size > MOST_LABELS:  # the table is of whole numbers then
        values, counts = agreement.contingency(np.floor(a + 0.5), np.floor(b + 0.5))
    return Shared(a, b, (a, b), clusters, [_plain(one) for one in values], counts)


def _two(both: DataFrame) -> tuple[Floats, Floats]:
    return both["value"].to_numpy(dtype=np.float64), both["value_other"].to_numpy(dtype=np.float64)


def _plain(value: float) -> float:
    return int(value) if value.is_integer() else float(value)


def _of_bools(both: DataFrame) -> Shared:
    """Of several people the side that more took; items on which they are even are left out."""
    even = (both["value"] == 0.5) | (both["value_other"] == 0.5)
    both = both[~even]
    a, b = ((one > 0.5).astype(np.float64) for one in _two(both))
    counts = np.zeros((2, 2))
    np.add.at(counts, (a.astype(int), b.astype(int)), 1)
    return Shared(a, b, (a, b), both["unit"].to_numpy(), [False, True], counts, binary=True)


def _of_labels(both: DataFrame) -> Shared:
    """Comparisons are numbers by their steps; where one author knows no strengths, both count by direction only."""
    import pandas as pd

    both = both[both["label"].notna() & both["label_other"].notna()]
    first, second = (both[name].astype(object) for name in ("label", "label_other"))
    comparing = both.index.get_level_values("other") != ""
    if len(both) and comparing.all() and first.isin(list(STEPS)).all() and second.isin(list(STEPS)).all():
        if not (_has_strengths(first) and _has_strengths(second)):
            first, second = (one.replace({"A>>B": "A>B", "B>>A": "B>A"}) for one in (first, second))
        known = [label for label in STEPS if (first == label).any() or (second == label).any()]
        nominal = False
        a, b = (np.asarray(one.map(STEPS), dtype=np.float64) for one in (first, second))
    else:
        known, nominal = sorted({*first, *second}), True
        a = b = np.zeros(len(both))
    said = [pd.Categorical(one, categories=known).codes.astype(np.float64) for one in (first, second)]
    counts = np.zeros((len(known), len(known)))
    np.add.at(counts, (said[0].astype(int), said[1].astype(int)), 1)
    a, b = (said[0], said[1]) if nominal else (a, b)
    return Shared(a, b, (said[0], said[1]), both["unit"].to_numpy(), [*known], counts, nominal)


def _has_strengths(labels: Series[str]) -> bool:
    return bool(labels.isin(["A>>B", "B>>A"]).any())


def kappa_interval(shared: Shared, draws: Draws, level: float) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of the quadratic kappa, whole rows drawn together."""
    if np.unique(shared.clusters).size < 2:
        return None, None
    drawn, member = draws.of(shared.clusters)
    a, b = shared.a, shared.b
    parts = np.column_stack([np.ones(a.size), a, b, a * a, b * b, (a - b) ** 2])
    sums = np.zeros((drawn.shape[1], parts.shape[1]))
    np.add.at(sums, member, parts)
    total, of_a, of_b, squares_a, squares_b, observed = (drawn @ sums).T
    expected = squares_a + squares_b - 2 * of_a * of_b / np.maximum(total, 1)
    known = expected > ROUNDING * np.maximum(1.0, squares_a + squares_b)
    kappas = 1 - np.divide(observed, expected, out=np.full(total.shape, np.nan), where=known)
    return percentiles(kappas, level)


def _add_rates(found: JudgeAgreement, shared: Shared, level: float) -> None:
    """True positive and negative rates, from the table's columns."""
    for name, truth in (("positive", 1), ("negative", 0)):
        column = shared.counts[:, truth]
        total, right = column.sum(), column[truth]
        low, high = wilson(right / total, total, level) if total else (None, None)
        rates = {f"true_{name}_rate": right / total if total else None}
        rates |= {f"true_{name}_low": low, f"true_{name}_high": high}
        found.update({key: None if one is None else float(one) for key, one in rates.items()})  # type: ignore[typeddict-item]


def human_ceiling(people: DataFrame, rows: DataFrame, metric: Metric) -> HumanCeiling:
    """How far people agree with each other on the answers that the judge scored."""
    judged = answer_index(rows[rows["kind"].notna()]).index
    there = answer_index(people).index.isin(judged)
    table = ratings_of(people[there], metric)
    several = table.by_slot[(~np.isnan(table.by_slot)).sum(axis=1) >= 2]
    said = table.said[(~np.isnan(table.by_slot)).sum(axis=1) >= 2]
    pairs = _pairs_of(several)
    return HumanCeiling(
        items=len(several),
        exact=agreement.percent_agreement(said) if len(said) else None,
        kappa_weighted=agreement.quadratic_kappa(*pairs) if table.level != "nominal" else None,
        alpha=agreement.krippendorff_alpha(several, table.level) if len(several) else None,
    )


def _pairs_of(ratings: Floats) -> tuple[Floats, Floats]:
    """Each two ratings of an item, both ways round, as raters are interchangeable."""
    columns = [(a, b) for a, b in permutations(range(ratings.shape[1]), 2)]
    if not columns:
        return np.zeros(0), np.zeros(0)
    a = np.concatenate([ratings[:, one] for one, _ in columns])
    b = np.concatenate([ratings[:, other] for _, other in columns])
    known = ~np.isnan(a) & ~np.isnan(b)
    return a[known], b[known]


def judge_repeats(mine: DataFrame, metric: Metric) -> list[Repeats]:
    """Each judge's repeats on the same question against each other."""
    mine = as_comparisons(mine, metric) if compares(mine, metric) else mine
    found = []
    for name, rows in _judges(mine):
        table = ratings_of(_one_a_repeat(rows), metric)
        several = (~np.isnan(table.by_slot)).sum(axis=1) >= 2
        if several.any():
            found.append(
                Repeats(
                    metric=metric.name,
                    judge=name,
                    items=int(several.sum()),
                    exact=agreement.percent_agreement(table.said),
                    alpha=agreement.krippendorff_alpha(table.by_slot, table.level),
                )
            )
    return found


def _judges(mine: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    of_judges = mine[(mine["source"] == "judge").to_numpy()]
    for name, rows in of_judges.groupby("by", observed=True, sort=True):
        yield str(name), rows


def _one_a_repeat(rows: DataFrame) -> DataFrame:
    """Of each repeat one verdict: what both orders come to, or that of the first order."""
    rows = without_single_orders(rows)
    return rows.loc[~rows.assign(item=answers_coded(rows)).duplicated(["item", "repeat"])]


def order_effects(mine: DataFrame, metric: Metric, level: float) -> list[OrderEffect]:
    """Each judge's comparisons that it saw in both orders. A flip: with the order the winner changed to the other."""
    if not compares(mine, metric):
        return []
    found = []
    for name, rows in _judges(as_comparisons(mine, metric)):
        seen = rows[((rows["order"] != "both") & (rows["shown_first"] > 0) & rows["kind"].notna()).to_numpy()]
        twice = _both_orders(seen)
        if not len(twice):
            continue
        flips = int((twice[1] * twice[2] < 0).sum())
        low, high = wilson(flips / len(twice), len(twice), level)
        found.append(
            OrderEffect(
                metric=metric.name,
                judge=name,
                pairs=len(twice),
                flips=flips,
                share=flips / len(twice),
                ci_low=low,
                ci_high=high,
                first_side=first_side(seen, level),
            )
        )
    return found


def _both_orders(seen: DataFrame) -> DataFrame:
    """The steps with A shown first (column 1) and with B first (column 2), of what was seen both ways."""
    steps = seen.assign(step=steps_of(seen), item=answers_coded(seen))
    steps = steps.drop_duplicates(["item", "repeat", "shown_first"])
    wide = steps.set_index(["item", "repeat", "shown_first"])["step"].unstack("shown_first")
    return wide.reindex(columns=[1, 2]).dropna()


def first_side(rows: DataFrame, level: float) -> FirstSide:
    """How often what stood first won, over verdicts whose order is known, with Wilson's interval."""
    known = rows[((rows["shown_first"] > 0) & (rows["order"] != "both") & rows["kind"].notna()).to_numpy()]
    ahead = np.sign(steps_of(known)) * np.where(known["shown_first"] == 1, 1, -1)
    first, second, ties = (int((ahead == sign).sum()) for sign in (1, -1, 0))
    total = first + second + ties
    share = (first + ties / 2) / total if total else None
    low, high = wilson(share, total, level) if share is not None else (None, None)
    return FirstSide(first=first, second=second, ties=ties, share=share, ci_low=low, ci_high=high)
