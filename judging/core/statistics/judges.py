"""Judge health: agreement with people and other judges, consistency of repeats, and position effects."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from . import agreement
from .agreement import kendall, pearson, raters_of, ratings_of, spearman
from .document import CandidateBias, FirstSide, HumanCeiling, JudgeAgreement, OrderEffect, Repeats
from .frame import Level
from .means import estimate_mean, welch, wilson
from .numeric import Draws, Floats, Ints, finite
from .verdicts import STEPS, Verdicts, on_both, steps_of, without_single_orders

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

MOST_LABELS = 20  # of a confusion table; more are rounded or omitted


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The answers for which two authors both have a value; arrays have shape (answers,).

    `a`, `b`: the values as numbers; `said`: codes to compare for equality; `clusters`: the rows; `places`: indices of
    these answers in the input; `level`: of the values' scale. `labels` and `counts` (labels, labels): the confusion
    table. `coded`: whether `said` holds indices into `labels` rather than numbers.
    """

    level: Level
    a: Floats
    b: Floats
    said: tuple[Floats, Floats]
    clusters: Ints
    places: Ints
    labels: list[str | float]
    counts: Floats
    coded: bool = True
    binary: bool = False


def judge_agreements(verdicts: Verdicts, draws: Draws) -> list[JudgeAgreement]:
    """Agreement of every judge, rule program and script with people, then of each pair of judges, by name."""
    authors, found = verdicts.authors, agreements_with_people(verdicts, draws)
    judges = [name for name, rows in authors.items() if (rows["source"] == "judge").all()]
    for a, b in combinations(judges, 2):
        rows, others = on_both(authors[a], authors[b])
        if len(rows):
            shared = shared_values(rows, others, verdicts.level)
            found.append(_agreement(verdicts, a, b, shared, draws))
    return found


def agreements_with_people(verdicts: Verdicts, draws: Draws) -> list[JudgeAgreement]:
    """Agreement with people of every judge, rule program and script that has answers in common with them, by name."""
    found = []
    for judge, judged in verdicts.authors.items() if len(verdicts.people) else ():
        rows, people = on_both(judged, verdicts.value)
        if len(rows):
            shared = shared_values(rows, people, verdicts.level)
            one = _agreement(verdicts, judge, "people", shared, draws)
            one["human"] = human_ceiling(verdicts, rows)
            if not verdicts.compares and shared.level != "nominal":
                one["by_candidate"] = bias_by_candidate(rows.take(shared.places), shared)
            found.append(one)
    return found


def _agreement(verdicts: Verdicts, judge: str, against: str, shared: Shared, draws: Draws) -> JudgeAgreement:
    a, b = shared.a, shared.b
    ordinal, small = shared.level != "nominal" or shared.binary, len(shared.labels) <= MOST_LABELS
    bias = estimate_mean(a - b, shared.clusters) if ordinal else None
    low, high = agreement.quadratic_kappa_interval(a, b, shared.clusters, draws) if ordinal else (None, None)
    found = JudgeAgreement(
        metric=verdicts.metric.name,
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
        alpha=agreement.krippendorff_alpha(np.column_stack([a, b]), shared.level) if a.size else None,
        mean_absolute_difference=finite(np.abs(a - b).mean()) if ordinal and a.size else None,
        bias=bias.mean if bias else None,
        bias_low=bias.low if bias else None,
        bias_high=bias.high if bias else None,
        confusion=shared.counts.astype(int).tolist() if small else [],
        labels=shared.labels if small else [],
        human=None,
    )
    if shared.binary:
        _add_rates(found, shared)
    return found


def bias_by_candidate(rows: DataFrame, shared: Shared) -> list[CandidateBias]:
    """A judge's bias on each candidate's answers compared with the other candidates', by name (`means.welch`).

    Rows shared between candidates make the interval too wide rather than too narrow.
    """
    names = rows["candidate"].astype(str).to_numpy()
    found = []
    for name in np.unique(names):
        here = names == name
        mine, others = (
            estimate_mean(shared.a[one] - shared.b[one], shared.clusters[one]) for one in (here, ~here)
        )
        apart = welch(mine, others)
        found.append(
            CandidateBias(
                candidate=str(name),
                items=int(here.sum()),
                bias=mine.mean,
                bias_low=mine.low,
                bias_high=mine.high,
                difference=apart.difference,
                ci_low=apart.low,
                ci_high=apart.high,
            )
        )
    return found


def shared_values(rows: DataFrame, others: DataFrame, level: Level) -> Shared:
    """The values of two authors on the same items, in the same order."""
    kinds = {*rows["kind"].unique(), *others["kind"].unique()}
    if "category" in kinds:
        compared = rows["other"].notna().all()
        return _of_labels(rows, others, level if compared else "nominal")  # unordered with numbers
    if kinds == {"bool"}:
        return _of_bools(rows, others)
    a, b = rows["value"].to_numpy(), others["value"].to_numpy()
    values, counts = agreement.contingency(a, b)
    if values.size > MOST_LABELS:  # the table then holds rounded values
        values, counts = agreement.contingency(np.floor(a + 0.5), np.floor(b + 0.5))
    clusters, labels = rows["unit"].to_numpy(), [plain_number(one) for one in values]
    return Shared(level, a, b, (a, b), clusters, np.arange(a.size), [*labels], counts, coded=False)


def plain_number(value: float) -> float:
    return int(value) if value.is_integer() else float(value)


def _of_bools(rows: DataFrame, others: DataFrame) -> Shared:
    """Several people count as their majority; items on which they are tied are left out."""
    a, b = rows["value"].to_numpy(), others["value"].to_numpy()
    kept = (a != 0.5) & (b != 0.5)
    a, b = ((one[kept] > 0.5).astype(np.float64) for one in (a, b))
    counts = np.zeros((2, 2))
    np.add.at(counts, (a.astype(int), b.astype(int)), 1)
    clusters = rows["unit"].to_numpy()[kept]
    places = np.flatnonzero(kept)
    return Shared("nominal", a, b, (a, b), clusters, places, [False, True], counts, binary=True)


def _of_labels(rows: DataFrame, others: DataFrame, level: Level) -> Shared:
    """Comparisons count by their steps; if one author's labels have no strengths, both count by direction only."""
    labelled = (rows["label"].notna().to_numpy()) & (others["label"].notna().to_numpy())
    first, second = (one["label"].to_numpy(dtype=object)[labelled] for one in (rows, others))
    if level != "nominal" and not (_has_strengths(first) and _has_strengths(second)):
        first, second = (_without_strengths(one) for one in (first, second))
    met = {*first, *second}
    known = sorted(met) if level == "nominal" else [label for label in STEPS if label in met]
    places = {label: float(place) for place, label in enumerate(known)}
    said = tuple(np.array([places[label] for label in one], dtype=np.float64) for one in (first, second))
    counts = np.zeros((len(known), len(known)))
    np.add.at(counts, (said[0].astype(int), said[1].astype(int)), 1)
    a, b = said
    if level != "nominal":
        a, b = (np.array([STEPS[label] for label in one], dtype=np.float64) for one in (first, second))
    clusters, both = rows["unit"].to_numpy()[labelled], np.flatnonzero(labelled)
    return Shared(level, a, b, (said[0], said[1]), clusters, both, [*known], counts)


def _without_strengths(labels: NDArray[np.object_]) -> NDArray[np.object_]:
    return np.array([{"A>>B": "A>B", "B>>A": "B>A"}.get(label, label) for label in labels], dtype=object)


def _has_strengths(labels: NDArray[np.object_]) -> bool:
    return bool(np.isin(labels, ["A>>B", "B>>A"]).any())


def _add_rates(found: JudgeAgreement, shared: Shared) -> None:
    """Add true positive and negative rates, from the columns of the confusion table."""
    for name, truth in (("positive", 1), ("negative", 0)):
        column = shared.counts[:, truth]
        total, right = column.sum(), column[truth]
        low, high = wilson(right / total, total) if total else (None, None)
        rates = {f"true_{name}_rate": right / total if total else None}
        rates |= {f"true_{name}_low": low, f"true_{name}_high": high}
        found.update({key: None if one is None else float(one) for key, one in rates.items()})  # type: ignore[typeddict-item]


def human_ceiling(verdicts: Verdicts, rows: DataFrame) -> HumanCeiling:
    """How well people agree with each other on these items of a judge."""
    raters = raters_of(verdicts)
    table = ratings_of(raters[raters["item"].isin(rows["item"]).to_numpy()], verdicts)
    several = (~np.isnan(table.by_slot)).sum(axis=1) >= 2
    by_slot, said = table.by_slot[several], table.said[several]
    ordinal = table.level != "nominal" or verdicts.is_binary
    return HumanCeiling(
        items=len(by_slot),
        exact=agreement.percent_agreement(said) if len(said) else None,
        kappa_weighted=agreement.quadratic_kappa(*_pairs_of(by_slot)) if ordinal else None,
        alpha=agreement.krippendorff_alpha(by_slot, table.level) if len(by_slot) else None,
    )


def _pairs_of(ratings: Floats) -> tuple[Floats, Floats]:
    """All pairs of ratings of an item, in both directions, because raters are interchangeable."""
    columns = [(a, b) for a, b in permutations(range(ratings.shape[1]), 2)]
    if not columns:
        return np.zeros(0), np.zeros(0)
    a = np.concatenate([ratings[:, one] for one, _ in columns])
    b = np.concatenate([ratings[:, other] for _, other in columns])
    known = ~np.isnan(a) & ~np.isnan(b)
    return a[known], b[known]


def judge_repeats(verdicts: Verdicts) -> list[Repeats]:
    """The consistency of each judge's repeats of the same question."""
    found = []
    again = (verdicts.rows["repeat"] > 1).any()
    for name, rows in verdicts.judges.items() if again else ():
        rows = without_single_orders(rows)
        table = ratings_of(rows.drop_duplicates(["item", "repeat"]), verdicts)
        several = (~np.isnan(table.by_slot)).sum(axis=1) >= 2
        if several.any():
            found.append(
                Repeats(
                    metric=verdicts.metric.name,
                    judge=name,
                    items=int(several.sum()),
                    exact=agreement.percent_agreement(table.said),
                    alpha=agreement.krippendorff_alpha(table.by_slot, table.level),
                )
            )
    return found


def order_effects(verdicts: Verdicts) -> list[OrderEffect]:
    """Position effects in each judge's comparisons seen in both orders; a flip means that the winner changed."""
    found = []
    for name, rows in verdicts.judges.items() if verdicts.compares else ():
        seen, twice = seen_both_ways(rows)
        if not len(twice):
            continue
        flips = int((twice[1] * twice[2] < 0).sum())
        low, high = wilson(flips / len(twice), len(twice))
        found.append(
            OrderEffect(
                metric=verdicts.metric.name,
                judge=name,
                pairs=len(twice),
                flips=flips,
                share=flips / len(twice),
                ci_low=low,
                ci_high=high,
                first_side=first_side(seen),
            )
        )
    return found


def seen_both_ways(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """A judge's verdicts with a known order, and a table of steps with A shown first (column 1) and B first (column 2).

    The table pairs the n-th verdict in one order with the n-th in the other, whatever their repeat numbers are.
    """
    seen = with_known_order(rows)
    steps = seen.assign(step=steps_of(seen)).sort_values(["item", "repeat"], kind="stable")
    steps["time"] = steps.groupby(["item", "shown_first"]).cumcount()
    wide = steps.set_index(["item", "time", "shown_first"])["step"].unstack("shown_first")
    return seen, wide.reindex(columns=[1, 2]).dropna()


def with_known_order(rows: DataFrame) -> DataFrame:
    """The scored comparisons for which the answer shown first is known."""
    return rows[((rows["order"] != "both") & (rows["shown_first"] > 0) & rows["kind"].notna()).to_numpy()]


def first_side(rows: DataFrame) -> FirstSide:
    """How often the answer shown first won, over verdicts with a known order, with Wilson's interval."""
    known = with_known_order(rows)
    ahead = np.sign(steps_of(known)) * np.where(known["shown_first"] == 1, 1, -1)
    first, second, ties = (int((ahead == sign).sum()) for sign in (1, -1, 0))
    total = first + second + ties
    share = (first + ties / 2) / total if total else None
    low, high = wilson(share, total) if share is not None else (None, None)
    return FirstSide(first=first, second=second, ties=ties, share=share, ci_low=low, ci_high=high)
