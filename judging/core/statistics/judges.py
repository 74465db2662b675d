"""Judge health: agreement with people and other judges, consistency of repeats, position effects, answer length, use of
the scale's ends, verdict-like text in answers.

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

from datasets.core.kinds import STRONG, weaker

from . import agreement
from .agreement import kendall, pearson, raters_of, ratings_of, spearman
from .document import (
    AgainstOthers,
    CandidateBias,
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
from .intervals import Ends
from .means import NO_ESTIMATE, apart, estimate_difference, rate_of
from .numeric import Draws, Floats, Ints, finite, percentiles
from .verdicts import STEPS, Verdicts, combined_per_item, counted, on_both, steps_of, without_single_orders

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_LABELS = 20  # of a confusion table; more are rounded or omitted


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The answers for which two authors both have a value; arrays have shape (answers,).

    `rows`: the first author's verdicts on them; `a`, `b`: the values as numbers; `said`: codes to compare for equality;
    `level`: of the values' scale; `width`: its width, None if it is not declared. `labels` and `counts` (labels,
    labels): the confusion table. `coded`: whether `said` holds indices into `labels` rather than numbers. `continuous`:
    whether the values are fractions of which hardly any are equal, so that Cohen's kappa would always be about 0;
    `shares`: whether they are also all within 0…1, so that no kappa means anything.
    """

    rows: DataFrame
    level: Level
    a: Floats
    b: Floats
    said: tuple[Floats, Floats]
    labels: list[str | float]
    counts: Floats
    width: float | None = None
    coded: bool = True
    binary: bool = False
    continuous: bool = False
    shares: bool = False

    @property
    def weighted(self) -> bool:
        """Whether quadratic kappa means something."""
        return (self.level != "nominal" or self.binary) and not self.shares

    @property
    def clusters(self) -> Ints:
        return self.rows["unit"].to_numpy()


def judge_agreements(verdicts: Verdicts, draws: Draws) -> list[JudgeAgreement]:
    """Agreement of every judge, rule program and script with people, then of each pair of judges, by name."""
    authors, agreements = verdicts.authors, agreements_with_people(verdicts, draws)
    judges = [name for name, rows in authors.items() if (rows["source"] == "judge").all()]
    for a, b in combinations(judges, 2):
        rows, others = on_both(authors[a], authors[b])
        if len(rows):
            shared = shared_values(rows, others, verdicts)
            agreements.append(_agreement(verdicts, a, b, shared, draws))
    return agreements


def agreements_with_people(verdicts: Verdicts, draws: Draws) -> list[JudgeAgreement]:
    """Agreement with people of every judge, rule program and script that has answers in common with them, by name."""
    agreements = []
    for judge, judged in verdicts.authors.items() if len(verdicts.people) else ():
        rows, people = on_both(judged, verdicts.value)
        if len(rows):
            shared = shared_values(rows, people, verdicts)
            entry = _agreement(verdicts, judge, "people", shared, draws)
            entry["human"] = human_ceiling(verdicts, rows)
            if not verdicts.compares and shared.level != "nominal":
                entry["by_candidate"] = bias_by_candidate(shared)
            agreements.append(entry)
    return agreements


def _agreement(verdicts: Verdicts, judge: str, against: str, shared: Shared, draws: Draws) -> JudgeAgreement:
    a, b = shared.a, shared.b
    ordinal, small = shared.level != "nominal" or shared.binary, len(shared.labels) <= MOST_LABELS
    bias = estimate_difference(a - b, shared.clusters, shared.width) if ordinal else NO_ESTIMATE
    low, high = (
        agreement.quadratic_kappa_interval(a, b, shared.clusters, draws) if shared.weighted else (None, None)
    )
    figures = JudgeAgreement(
        metric=verdicts.metric.name,
        judge=judge,
        against=against,
        items=int(a.size),
        exact=_exact(shared),
        kappa=None if shared.continuous else agreement.cohen_kappa(*shared.said),
        kappa_weighted=agreement.quadratic_kappa(a, b) if shared.weighted else None,
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
        _add_rates(figures, shared)
    return figures


def bias_by_candidate(shared: Shared) -> list[CandidateBias]:
    """A judge's bias on each candidate's answers compared with the other candidates', by name (`means.apart`).

    Rows shared between candidates make the interval too wide rather than too narrow.
    """
    names = shared.rows["candidate"].astype(str).to_numpy()
    biases = []
    for name in np.unique(names):
        here = names == name
        mine, others = (
            estimate_difference(shared.a[part] - shared.b[part], shared.clusters[part], shared.width)
            for part in (here, ~here)
        )
        gap = apart(mine, others)
        biases.append(
            CandidateBias(
                candidate=str(name),
                items=int(here.sum()),
                bias=mine.mean,
                bias_low=mine.low,
                bias_high=mine.high,
                difference=gap.mean,
                ci_low=gap.low,
                ci_high=gap.high,
            )
        )
    return biases


def shared_values(rows: DataFrame, others: DataFrame, verdicts: Verdicts) -> Shared:
    """The values of two authors on the same items, in the same order; `verdicts` supplies the metric's scale."""
    level = verdicts.level
    kinds = {*rows["kind"].unique(), *others["kind"].unique()}
    if "category" in kinds:
        compared = rows["other"].notna().all()
        return _of_labels(rows, others, level if compared else "nominal")  # unordered with numbers
    if kinds == {"bool"}:
        return _of_bools(rows, others)
    a, b = rows["value"].to_numpy(), others["value"].to_numpy()
    values, counts = agreement.contingency(a, b)
    many = values.size > MOST_LABELS
    continuous = bool(many and (values % 1).any())
    shares = continuous and bool(values.min() >= 0 and values.max() <= 1)
    if many:  # the table then holds rounded values
        values, counts = agreement.contingency(np.floor(a + 0.5), np.floor(b + 0.5))
    labels: list[str | float] = [plain_number(value) for value in values]
    ends = extended(verdicts.metric, a, b)
    width = None if ends is None else ends[1] - ends[0]
    return Shared(
        rows, level, a, b, (a, b), labels, counts, width, coded=False, continuous=continuous, shares=shares
    )


def extended(metric: ScaledMetric, *values: Floats) -> Ends | None:
    """The ends of the metric's scale, extended to the values; None if it is not declared."""
    if metric.low is None or metric.high is None:
        return None
    all_of = np.concatenate([*values, [metric.low, metric.high]])
    low, high = float(all_of.min()), float(all_of.max())
    return (low, high) if low < high else None


def plain_number(value: float) -> float:
    return int(value) if value.is_integer() else float(value)


def _of_bools(rows: DataFrame, others: DataFrame) -> Shared:
    """Several people count as their majority; items on which they are tied are left out."""
    a, b = rows["value"].to_numpy(), others["value"].to_numpy()
    decided = (a != 0.5) & (b != 0.5)
    a, b = ((values[decided] > 0.5).astype(np.float64) for values in (a, b))
    counts = agreement.pair_counts(a, b, 2)
    return Shared(rows[decided], "nominal", a, b, (a, b), [False, True], counts, 1.0, binary=True)


def _of_labels(rows: DataFrame, others: DataFrame, level: Level) -> Shared:
    """Comparisons count by their steps; if one author's labels have no strengths, both count by direction only."""
    labelled = rows["label"].notna().to_numpy() & others["label"].notna().to_numpy()
    first, second = (side["label"].astype(object)[labelled] for side in (rows, others))
    strong = first.isin(list(STRONG)).any() and second.isin(list(STRONG)).any()
    if level != "nominal" and not strong:
        first, second = (side.map(weaker) for side in (first, second))
    said = {*first, *second}
    labels = sorted(said) if level == "nominal" else [label for label in STEPS if label in said]
    places = {label: float(place) for place, label in enumerate(labels)}
    codes = first.map(places).to_numpy(np.float64), second.map(places).to_numpy(np.float64)
    a, b = codes
    if level != "nominal":
        a, b = first.map(STEPS).to_numpy(np.float64), second.map(STEPS).to_numpy(np.float64)
    counts = agreement.pair_counts(*codes, len(labels))
    width = 4.0 if strong else 2.0  # of the steps, −2…2 or −1…1
    return Shared(rows[labelled], level, a, b, codes, [*labels], counts, width)


def _add_rates(entry: JudgeAgreement, shared: Shared) -> None:
    """Add true positive and negative rates: how often the judge agrees where the other says true, or false."""
    for name, truth in (("positive", 1.0), ("negative", 0.0)):
        here = shared.b == truth
        rate = rate_of((shared.a[here] == truth).astype(np.float64), shared.clusters[here])
        figures = {"rate": rate.rate, "low": rate.low, "high": rate.high}
        entry.update({f"true_{name}_{key}": value for key, value in figures.items()})  # type: ignore[typeddict-item]


def human_ceiling(verdicts: Verdicts, rows: DataFrame) -> HumanCeiling:
    """How well people agree with each other on these items of a judge."""
    raters = raters_of(verdicts)
    raters = raters[raters["item"].isin(rows["item"]).to_numpy()]
    table = ratings_of(raters, verdicts)
    by_slot, said = table.by_slot[table.several], table.said[table.several]
    ordinal = table.level != "nominal" or verdicts.is_binary
    return HumanCeiling(
        items=len(by_slot),
        exact=agreement.percent_agreement(said) if len(said) else None,
        kappa_weighted=agreement.quadratic_kappa(*_pairs_of(by_slot)) if ordinal else None,
        alpha=agreement.krippendorff_alpha(by_slot, table.level) if len(by_slot) else None,
        others=_against_others(verdicts, raters, rows),
    )


def _against_others(verdicts: Verdicts, raters: DataFrame, judged: DataFrame) -> AgainstOthers | None:
    """Each rater, and the judge, against the value of the other raters of the same items."""
    import pandas as pd

    raters = raters[raters["kind"].notna().to_numpy()]
    mine, others, of_judge, judged_values = [], [], [], []
    for name in raters["by"].unique():
        own = (raters["by"] == name).to_numpy()
        rest = raters[~own & raters["item"].isin(raters["item"][own]).to_numpy()]
        rows, values = on_both(raters[own], combined_per_item(rest))
        verdict, same = on_both(judged, values)
        mine.append(rows)
        others.append(values)
        of_judge.append(verdict)
        judged_values.append(same)
    if not sum(map(len, others)):
        return None
    values = pd.concat(others)
    by_people = shared_values(pd.concat(mine), values, verdicts)
    by_judge = shared_values(pd.concat(of_judge), pd.concat(judged_values), verdicts)
    return AgainstOthers(
        items=values["item"].nunique(),
        exact=_exact(by_people),
        kappa_weighted=agreement.quadratic_kappa(by_people.a, by_people.b) if by_people.weighted else None,
        judge_exact=_exact(by_judge),
        judge_kappa_weighted=agreement.quadratic_kappa(by_judge.a, by_judge.b) if by_judge.weighted else None,
    )


def _exact(shared: Shared) -> float | None:
    """The share of the items on which both say the same."""
    return finite(np.mean(shared.said[0] == shared.said[1])) if shared.a.size else None


def _pairs_of(ratings: Floats) -> tuple[Floats, Floats]:
    """All pairs of ratings of an item, in both directions, because raters are interchangeable."""
    columns = [(a, b) for a, b in permutations(range(ratings.shape[1]), 2)]
    if not columns:
        return np.zeros(0), np.zeros(0)
    a = np.concatenate([ratings[:, first] for first, _ in columns])
    b = np.concatenate([ratings[:, other] for _, other in columns])
    both_rated = ~np.isnan(a) & ~np.isnan(b)
    return a[both_rated], b[both_rated]


def judge_repeats(verdicts: Verdicts) -> list[Repeats]:
    """The consistency of each judge's repeats of the same question."""
    repeats = []
    for name, rows in repeated(verdicts).items():
        table = ratings_of(rows, verdicts)
        if table.several.any():
            repeats.append(
                Repeats(
                    metric=verdicts.metric.name,
                    judge=name,
                    items=int(table.several.sum()),
                    exact=agreement.percent_agreement(table.said),
                    alpha=agreement.krippendorff_alpha(table.by_slot, table.level),
                )
            )
    return repeats


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
    effects = []
    for name, rows in verdicts.judges.items() if verdicts.compares else ():
        seen, twice = seen_both_ways(rows)
        if not len(twice):
            continue
        flipped = (twice[1] * twice[2] < 0).to_numpy()
        rate = rate_of(flipped.astype(np.float64), _units_of(twice, seen))
        effects.append(
            OrderEffect(
                metric=verdicts.metric.name,
                judge=name,
                pairs=len(twice),
                flips=rate.count,
                share=rate.rate,
                ci_low=rate.low,
                ci_high=rate.high,
                first_side=first_side(seen),
            )
        )
    return effects


def seen_both_ways(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """A judge's verdicts with a known order, and a table of steps with A shown first (column 1) and B first (column 2).

    The table pairs the n-th verdict in one order with the n-th in the other, whatever their repeat numbers are.
    """
    seen = with_known_order(rows)
    steps = seen.assign(step=steps_of(seen)).sort_values(["item", "repeat"], kind="stable")
    steps["time"] = steps.groupby(["item", "shown_first"]).cumcount()
    wide = steps.set_index(["item", "time", "shown_first"])["step"].unstack("shown_first")
    return seen, wide.reindex(columns=[1, 2]).dropna()


def _units_of(twice: DataFrame, seen: DataFrame) -> Ints:
    """The unit of each row of a table indexed by item."""
    units = seen.drop_duplicates("item").set_index("item")["unit"]
    return units.reindex(twice.index.get_level_values("item")).to_numpy(dtype=np.int64)


def with_known_order(rows: DataFrame) -> DataFrame:
    """The scored comparisons for which the answer shown first is known."""
    return rows[((rows["order"] != "both") & (rows["shown_first"] > 0) & rows["kind"].notna()).to_numpy()]


def first_side(rows: DataFrame) -> FirstSide:
    """How often the answer shown first won, over verdicts with a known order."""
    ordered = with_known_order(rows)
    ahead = np.sign(steps_of(ordered)) * np.where(ordered["shown_first"] == 1, 1, -1)
    first, second, ties = (int((ahead == sign).sum()) for sign in (1, -1, 0))
    rate = rate_of((ahead + 1) / 2, ordered["unit"].to_numpy())
    return FirstSide(
        first=first, second=second, ties=ties, share=rate.rate, ci_low=rate.low, ci_high=rate.high
    )


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
            scores=len(values),
            lowest=float((values == metric.low).mean()),
            highest=float((values == metric.high).mean()),
        )
        for judge, values in scores.groupby("by", observed=True)["value"]
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
    comparisons = []
    for metric in metrics:
        mine = {name: marked for (of, name), marked in flagged.items() if of == metric.name}
        if mine:
            values = counted(frame, metric)
            comparisons += [_injected(metric, name, marked, values) for name, marked in mine.items()]
    return comparisons


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

    records = [(candidate, row, number, *features_of(text)) for candidate, row, number, text in answers]
    table = pd.DataFrame(records, columns=["candidate", "row", "response", *FEATURES])
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
    effects = []
    for name, rows in verdicts.authors.items():
        with_texts = np.isin(rows["row"].to_numpy(), features.index.unique("row"))
        scored = rows[with_texts & rows["kind"].isin(["number", "bool"]).to_numpy()]
        effect = _length_effect(verdicts.metric, name, scored, features, draws)
        if effect is not None:
            effects.append(effect)
    return effects


def _length_effect(
    metric: ScaledMetric, judge: str, scored: DataFrame, features: DataFrame, draws: Draws
) -> LengthEffect | None:
    import pandas as pd

    length = (
        features["length"].reindex(answer_keys(scored, "candidate", "response")).to_numpy(dtype=np.float64)
    )
    with_length = np.isfinite(length)
    of_row = np.unique(scored["row"].to_numpy()[with_length], return_inverse=True)[1]
    several = np.bincount(of_row)[of_row] > 1 if of_row.size else np.zeros(0, np.bool_)
    rows = np.unique(of_row[several], return_inverse=True)[1].astype(np.int64)
    units = scored["unit"].to_numpy()[with_length][several]
    if not rows.size:
        return None
    score = scored["value"].to_numpy(dtype=np.float64)[with_length][several]
    size = np.log2(np.maximum(length[with_length][several], 1.0))
    both = pd.DataFrame({"score": score, "size": size})
    apart, ranks = both - both.groupby(rows).transform("mean"), both.groupby(rows).rank()
    ranks -= ranks.groupby(rows).transform("mean")
    (a, b), (x, y) = ranks.to_numpy().T, apart.to_numpy().T
    parts = np.column_stack([a * b, a**2, b**2, x * y, y**2])
    correlations, slopes = _figures(draws.sums(units, parts))
    whole = _figures(parts.sum(axis=0)[None])
    count = np.unique(units).size
    low, high = percentiles(correlations, count)
    slope_low, slope_high = percentiles(slopes, count)
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
