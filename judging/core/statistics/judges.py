"""Judge health: agreement with people and other judges, consistency of repeats, position effects, answer length, use of
the scale's ends, verdict-like text in answers; and scores corrected with people's labels.

Length, headings, lists and bold describe only an answer's appearance, not its content; this is not AlpacaEval's
length-controlled win rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import agreement
from .agreement import kendall, pearson, raters_of, ratings_of, spearman
from .document import (
    CandidateBias,
    Corrected,
    FirstSide,
    HumanCeiling,
    InjectedVerdicts,
    JudgeAgreement,
    LengthEffect,
    OrderEffect,
    Repeats,
    ScaleEnds,
)
from .frame import Level, ScaledMetric
from .means import NO_ESTIMATE, estimate_mean, welch, wilson
from .numeric import (
    UPPER,
    Draws,
    Floats,
    Ints,
    Labelled,
    correct,
    finite,
    normal_quantile,
    percentiles,
    ratings_to_halve,
    why_refused,
)
from .verdicts import STEPS, Verdicts, counted, on_both, steps_of, without_single_orders

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_LABELS = 20  # of a confusion table; more are rounded or omitted
WEAKER = {"A>>B": "A>B", "B>>A": "B>A"}
"""A comparison's direction without its strength."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The answers for which two authors both have a value; arrays have shape (answers,).

    `rows`: the first author's verdicts on them; `a`, `b`: the values as numbers; `said`: codes to compare for equality;
    `level`: of the values' scale. `labels` and `counts` (labels, labels): the confusion table. `coded`: whether `said`
    holds indices into `labels` rather than numbers.
    """

    rows: DataFrame
    level: Level
    a: Floats
    b: Floats
    said: tuple[Floats, Floats]
    labels: list[str | float]
    counts: Floats
    coded: bool = True
    binary: bool = False

    @property
    def clusters(self) -> Ints:
        return self.rows["unit"].to_numpy()


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
                one["by_candidate"] = bias_by_candidate(shared)
            found.append(one)
    return found


def _agreement(verdicts: Verdicts, judge: str, against: str, shared: Shared, draws: Draws) -> JudgeAgreement:
    a, b = shared.a, shared.b
    ordinal, small = shared.level != "nominal" or shared.binary, len(shared.labels) <= MOST_LABELS
    bias = estimate_mean(a - b, shared.clusters) if ordinal else NO_ESTIMATE
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
        bias=bias.mean,
        bias_low=bias.low,
        bias_high=bias.high,
        confusion=shared.counts.astype(int).tolist() if small else [],
        labels=shared.labels if small else [],
        human=None,
    )
    if shared.binary:
        _add_rates(found, shared)
    return found


def bias_by_candidate(shared: Shared) -> list[CandidateBias]:
    """A judge's bias on each candidate's answers compared with the other candidates', by name (`means.welch`).

    Rows shared between candidates make the interval too wide rather than too narrow.
    """
    names = shared.rows["candidate"].astype(str).to_numpy()
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
                difference=apart["difference"],
                ci_low=apart["ci_low"],
                ci_high=apart["ci_high"],
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
    return Shared(rows, level, a, b, (a, b), [plain_number(one) for one in values], counts, coded=False)


def plain_number(value: float) -> float:
    return int(value) if value.is_integer() else float(value)


def _of_bools(rows: DataFrame, others: DataFrame) -> Shared:
    """Several people count as their majority; items on which they are tied are left out."""
    a, b = rows["value"].to_numpy(), others["value"].to_numpy()
    decided = (a != 0.5) & (b != 0.5)
    a, b = ((one[decided] > 0.5).astype(np.float64) for one in (a, b))
    counts = agreement.pair_counts(a, b, 2)
    return Shared(rows[decided], "nominal", a, b, (a, b), [False, True], counts, binary=True)


def _of_labels(rows: DataFrame, others: DataFrame, level: Level) -> Shared:
    """Comparisons count by their steps; if one author's labels have no strengths, both count by direction only."""
    labelled = rows["label"].notna().to_numpy() & others["label"].notna().to_numpy()
    first, second = (one["label"].astype(object)[labelled] for one in (rows, others))
    if level != "nominal" and not (first.isin(list(WEAKER)).any() and second.isin(list(WEAKER)).any()):
        first, second = (one.map(lambda label: WEAKER.get(label, label)) for one in (first, second))
    known = {*first, *second}
    labels = sorted(known) if level == "nominal" else [label for label in STEPS if label in known]
    places = {label: float(place) for place, label in enumerate(labels)}
    codes = first.map(places).to_numpy(np.float64), second.map(places).to_numpy(np.float64)
    a, b = codes
    if level != "nominal":
        a, b = first.map(STEPS).to_numpy(np.float64), second.map(STEPS).to_numpy(np.float64)
    return Shared(rows[labelled], level, a, b, codes, [*labels], agreement.pair_counts(*codes, len(labels)))


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
    by_slot, said = table.by_slot[table.several], table.said[table.several]
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
    for name, rows in repeated(verdicts).items():
        table = ratings_of(rows, verdicts)
        if table.several.any():
            found.append(
                Repeats(
                    metric=verdicts.metric.name,
                    judge=name,
                    items=int(table.several.sum()),
                    exact=agreement.percent_agreement(table.said),
                    alpha=agreement.krippendorff_alpha(table.by_slot, table.level),
                )
            )
    return found


def repeated(verdicts: Verdicts) -> dict[str, DataFrame]:
    """Each judge's verdicts, one for each item and repeat; empty if no judge was asked again."""
    if not (verdicts.rows["repeat"] > 1).any():
        return {}
    return {
        name: without_single_orders(rows).drop_duplicates(["item", "repeat"])
        for name, rows in verdicts.judges.items()
    }


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


def scale_ends(mine: DataFrame, metric: ScaledMetric) -> list[ScaleEnds]:
    """How often each judge gives the lowest and highest score of a declared scale, by judge name.

    `mine`: the rows of one metric.
    """
    if metric.low is None or metric.high is None or metric.compares:
        return []
    scores = mine[((mine["source"] == "judge") & (mine["kind"] == "number")).to_numpy()]
    return [
        ScaleEnds(
            metric=metric.name,
            judge=str(judge),
            scores=len(one),
            lowest=float((one == metric.low).mean()),
            highest=float((one == metric.high).mean()),
        )
        for judge, one in scores.groupby("by", observed=True)["value"]
    ]


class Flagged(NamedTuple):
    """A candidate's answers with verdict-like text: their number, how many are scored, the sum of the scores."""

    answers: int
    scores: int
    total: float


def injected_verdicts(
    flagged: Mapping[tuple[str, str], Flagged], frame: DataFrame, metrics: Sequence[ScaledMetric]
) -> list[InjectedVerdicts]:
    """Compare the mean score of each candidate's flagged answers with that of its other answers.

    `flagged` is keyed by (metric, candidate). A mean is None without a numeric score.
    """
    found = []
    for metric in metrics:
        mine = {name: one for (of, name), one in flagged.items() if of == metric.name}
        if mine:
            values = counted(frame, metric)
            found += [_injected(metric, name, one, values) for name, one in mine.items()]
    return found


def _injected(metric: ScaledMetric, candidate: str, flagged: Flagged, values: DataFrame) -> InjectedVerdicts:
    scores = values["value"][(values["candidate"] == candidate).to_numpy()].dropna()
    others = len(scores) - flagged.scores
    return InjectedVerdicts(
        metric=metric.name,
        candidate=candidate,
        answers=flagged.answers,
        mean=flagged.total / flagged.scores if flagged.scores else None,
        others_mean=(float(scores.sum()) - flagged.total) / others if others > 0 else None,
    )


FEATURES = ("length", "headers", "lists", "bold")
_HEADER = re.compile(r"^ {0,3}#{1,6}\s", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")


def features_of(text: str) -> tuple[int, int, int, int]:
    """The number of characters, Markdown headings, list items and bold passages."""
    return len(text), len(_HEADER.findall(text)), len(_LIST.findall(text)), len(_BOLD.findall(text))


def answer_features(answers: Iterable[tuple[str, int, int, str]]) -> DataFrame:
    """Features of answers (candidate, row, response, text): one row each, indexed by the first three."""
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    found = [(candidate, row, number, *features_of(text)) for candidate, row, number, text in answers]
    table = pd.DataFrame(found, columns=["candidate", "row", "response", *FEATURES])
    return table.set_index(["candidate", "row", "response"])


def answer_keys(each: DataFrame, name: str, number: str) -> list[tuple[str, int, int]]:
    columns = each[name].astype(object), each["row"], each[number]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def length_effects(verdicts: Verdicts, features: DataFrame | None, draws: Draws) -> list[LengthEffect]:
    """How each judge's scores relate to answer length within rows; rows with one answer are ignored.

    Spearman: the correlation of ranks within the row, centred there. Slope: `sum dy dx / sum dx²` with dx the
    difference of `log2(length)` from the row's mean. Intervals: bootstrap by rows.
    """
    if features is None or features.empty or verdicts.compares:
        return []
    found = []
    for name, rows in verdicts.authors.items():
        known = np.isin(rows["row"].to_numpy(), features.index.unique("row"))
        scored = rows[known & rows["kind"].isin(["number", "bool"]).to_numpy()]
        effect = _length_effect(verdicts.metric, name, scored, features, draws)
        if effect is not None:
            found.append(effect)
    return found


def _length_effect(
    metric: ScaledMetric, judge: str, scored: DataFrame, features: DataFrame, draws: Draws
) -> LengthEffect | None:
    import pandas as pd

    length = (
        features["length"].reindex(answer_keys(scored, "candidate", "response")).to_numpy(dtype=np.float64)
    )
    known = np.isfinite(length)
    of_row = np.unique(scored["row"].to_numpy()[known], return_inverse=True)[1]
    several = np.bincount(of_row)[of_row] > 1 if of_row.size else np.zeros(0, np.bool_)
    rows = np.unique(of_row[several], return_inverse=True)[1].astype(np.int64)
    units = scored["unit"].to_numpy()[known][several]
    if not rows.size:
        return None
    score = scored["value"].to_numpy(dtype=np.float64)[known][several]
    size = np.log2(np.maximum(length[known][several], 1.0))
    both = pd.DataFrame({"score": score, "size": size})
    apart, ranks = both - both.groupby(rows).transform("mean"), both.groupby(rows).rank()
    ranks -= ranks.groupby(rows).transform("mean")
    (a, b), (x, y) = ranks.to_numpy().T, apart.to_numpy().T
    parts = np.column_stack([a * b, a**2, b**2, x * y, y**2])
    correlations, slopes = _figures(draws.sums(units, parts))
    whole = _figures(parts.sum(axis=0)[None])
    low, high = percentiles(correlations)
    slope_low, slope_high = percentiles(slopes)
    return LengthEffect(
        metric=metric.name,
        judge=judge,
        items=int(np.unique(rows).size),
        spearman=finite(whole[0][0]),
        ci_low=low,
        ci_high=high,
        slope_per_doubling=finite(whole[1][0]),
        slope_low=slope_low,
        slope_high=slope_high,
    )


def _figures(sums: Floats) -> tuple[Floats, Floats]:
    """Correlation and slope from sums (draws, 5); NaN if nothing varies."""
    both, first, second, product, square = sums.T
    spread = np.sqrt(first * second)
    nothing = np.full(both.shape, np.nan)
    correlation = np.divide(both, spread, out=nothing.copy(), where=spread > 1e-12)
    return correlation, np.divide(product, square, out=nothing.copy(), where=square > 1e-12)


def corrected_scores(verdicts: Verdicts) -> list[Corrected]:
    """Corrected scores for each candidate and judge of a scored metric, if people labelled some of its answers."""
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


def _corrected(metric: ScaledMetric, candidate: str, judge: str, given: Labelled) -> Corrected:
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
