"""Combines several verdicts on one answer (judges' by mean or majority, people's into one value); and comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, TIE, turned
from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED, UNSETTLED

from .frame import COMBINED, KINDS, PEOPLE, REFERENCE, STATES, Level, ScaledMetric, answers_coded
from .numeric import Bools, Floats, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

STEPS = {**dict(zip(COMPARISON_CODES, (2.0, 1.0, 0.0, -1.0, -2.0), strict=True)), BOTH_BAD: 0.0}
"""How strongly a comparison's verdict favours A, the answer in `candidate` and `response`."""
LABELS = {STEPS[code]: code for code in COMPARISON_CODES}
_COUNTED_FIRST = (SCORED, UNSETTLED, UNPARSED, ERROR, NOT_RUN, NO_SCORE)
"""The combined state of several verdicts: the first of these that any of them has."""


def of_people(judgements: DataFrame) -> Bools:
    """Whether each row is a person's verdict: shape (rows,)."""
    return np.asarray(judgements["source"].isin(PEOPLE), dtype=np.bool_)


def compares(judgements: DataFrame, metric: ScaledMetric) -> bool:
    """Whether a metric's verdicts compare two answers."""
    return metric.compares or bool(judgements["other"].notna().any())


def as_comparisons(judgements: DataFrame, metric: ScaledMetric) -> DataFrame:
    """A metric's comparison rows, oriented so that the same answer is always A; other rows are dropped.

    For a metric that `compares`, the numbers 1…5 become labels, and the judged answer, which is B in them, becomes A.
    """
    rows = _from_numbers(judgements) if metric.compares else judgements
    rows = rows[rows["other"].notna()]
    labels = rows["label"].astype(object)
    rows = rows[(labels.isin(list(STEPS)) | (rows["state"] != SCORED)).to_numpy()]
    return oriented(rows)


def _from_numbers(judgements: DataFrame) -> DataFrame:
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    numbers = ((judgements["kind"] == "number") & judgements["other"].isna()).to_numpy()
    if not numbers.any():
        return judgements
    steps = np.clip(np.sign(judgements["value"] - 3) * np.ceil(np.abs(judgements["value"] - 3)), -2, 2)
    labels = judgements["label"].astype(object).where(~numbers, steps.map(LABELS))
    lacking = judgements["other"].isna().to_numpy()
    others = judgements["other"].astype(object).where(~lacking, REFERENCE)
    first = np.where(judgements["order"] == "first", 2, np.where(judgements["order"] == "swapped", 1, 0))
    return judgements.assign(
        kind=judgements["kind"].where(~numbers, "category"),
        value=judgements["value"].where(~numbers),
        label=pd.Categorical(labels),
        other=pd.Categorical(others),
        other_response=np.where(lacking, 1, judgements["other_response"]),
        shown_first=np.where(lacking, first, judgements["shown_first"]),
    )


def oriented(rows: DataFrame) -> DataFrame:
    """Make A the candidate with the lower name, or the lower response of one candidate; the reference is always B."""
    import pandas as pd

    mine, others = rows["candidate"].astype(object), rows["other"].astype(object)
    names = [(name == REFERENCE, name) for name in mine], [(name == REFERENCE, name) for name in others]
    numbers = rows["response"].tolist(), rows["other_response"].tolist()
    turn = np.array([(a, m) > (b, n) for a, b, m, n in zip(*names, *numbers, strict=True)], dtype=np.bool_)
    if not turn.any():
        return rows
    labels = rows["label"].astype(object)
    first = rows["shown_first"].to_numpy()
    return rows.assign(
        candidate=pd.Categorical(mine.where(~turn, others)),
        other=pd.Categorical(others.where(~turn, mine)),
        response=np.where(turn, rows["other_response"], rows["response"]),
        other_response=np.where(turn, rows["response"], rows["other_response"]),
        label=pd.Categorical(labels.where(~turn, labels.map(turned))),
        shown_first=np.where(turn & (first > 0), 3 - first, first),
    )


def steps_of(rows: DataFrame) -> Floats:
    """How strongly each scored comparison favours A, −2…2; NaN for other rows: shape (rows,)."""
    return np.asarray(rows["label"].astype(object).map(STEPS), dtype=np.float64)


def combined_per_item(judgements: DataFrame) -> DataFrame:
    """Combine the verdicts into one row for each answer (or pair) and metric, in the same order.

    A single row is returned unchanged. A reviewer's override, otherwise an adjudicator's decision, otherwise an already
    combined value, takes precedence over all other rows. Otherwise a judge's repeats are averaged first, then the
    judges (or people). Labels are combined by majority (more than half). Comparisons are combined by the majority of
    their directions and the median strength in that direction, the weaker of the two middle ones; without a majority
    they are `A=B` for people and for comparisons with the reference, `unsettled` for judges that compare candidates.
    Other labels without a majority leave no value: `unparsed` for judges, `no_score` for people.
    """
    codes = answers_coded(judgements)
    if (codes[1:] > codes[:-1]).all():  # sorted, without duplicates
        return judgements
    _, first, item = np.unique(codes, return_index=True, return_inverse=True)
    if first.size == len(judgements):
        return judgements
    counts = _deciding(judgements, item)
    return _merged(judgements.iloc[first], judgements[counts], item[counts].astype(np.int64))


def counted(frame: DataFrame, metric: ScaledMetric) -> DataFrame:
    """The rows behind a metric's cells, one per answer: judges' and rules' values, or people's if only people rated."""
    mine = frame[((frame["metric"] == metric.name) & frame["main"]).to_numpy()]
    people = of_people(mine)
    return combined_per_item(mine if people.all() else mine[~people])


def with_own_values(mine: DataFrame) -> DataFrame:
    """The rows of one metric with the value of its judge, script or program in place of every override: overrides are
    made seeing the verdict, so no corrected value counts them."""
    overridden = (mine["source"] == "override").to_numpy()
    if not overridden.any():
        return mine
    items = answers_coded(mine)
    behind = np.isin(items, items[overridden]) & ~overridden & ~of_people(mine)
    whole = mine["source"].isin([COMBINED, "script", "rules"]).to_numpy()
    single = behind & ~whole & np.isin(items, items[behind & whole])
    own = mine.assign(main=mine["main"] | behind, item=items)[~overridden & ~single]
    return without_single_orders(own).drop(columns="item")


def _deciding(rows: DataFrame, item: Ints) -> Bools:
    """Whether each row takes precedence among the rows for the same item, and so counts."""
    counts = np.ones(len(rows), dtype=np.bool_)
    for source in ("override", "adjudicator", COMBINED):
        mine = (rows["source"] == source).to_numpy() & counts
        counts &= mine | (np.bincount(item, weights=mine) == 0)[item]
    return counts


def _merged(firsts: DataFrame, rows: DataFrame, item: Ints) -> DataFrame:
    """One row per item: `firsts` with the combined state and value of `rows`; `item` (rows,) numbers items from 0."""
    import pandas as pd

    size = len(firsts)
    ranks = np.array([_COUNTED_FIRST.index(state) for state in rows["state"].cat.categories], dtype=np.int64)
    rank = ranks[_codes(rows["state"])]
    states = np.array(_COUNTED_FIRST, dtype=object)[_least(rank, item, size, 0)]
    scored = (rows["state"] == SCORED).to_numpy()
    scores, of = rows[scored], item[scored]
    kinds = np.array([*KINDS, None], dtype=object)[_least(_codes(scores["kind"]), of, size, len(KINDS))]
    labels = _majorities(scores, of, size)
    labels[kinds != "category"] = None
    hung = (kinds == "category") & pd.isna(labels)
    states[hung] = (
        NO_SCORE if of_people(rows).all() else UNSETTLED if firsts["other"].notna().all() else UNPARSED
    )
    kinds[hung] = None
    numeric = (kinds == "number") | (kinds == "bool")
    last = np.zeros(size, dtype=np.int64)
    last[item[::-1]] = np.arange(len(rows))[::-1]
    return firsts.assign(
        state=pd.Categorical(states, categories=list(STATES)),
        kind=pd.Categorical(kinds, categories=list(KINDS)),
        value=np.where(numeric, _means(scores, of, size), np.nan),
        label=pd.Categorical(labels),
        **{name: rows[name].array.take(last) for name in ("by", "source", "drawn_with")},
        shown_first=0,
        repeat=1,
    )


def _codes(column: Series[Any]) -> Ints:
    return column.cat.codes.to_numpy().astype(np.int64)


def _least(values: Ints, item: Ints, size: int, most: int) -> Ints:
    """Each item's minimum; `most` for an item without values."""
    import pandas as pd

    return pd.Series(values).groupby(item).min().reindex(range(size), fill_value=most).to_numpy()


def _means(scores: DataFrame, item: Ints, size: int) -> Floats:
    """The mean of the authors' means over their repeats: (items,), NaN without a number."""
    by_author = scores["value"].groupby([item, scores["source"].cat.codes, scores["by"].cat.codes]).mean()
    return by_author.groupby(level=0).mean().reindex(range(size)).to_numpy()


def _majorities(scores: DataFrame, item: Ints, size: int) -> NDArray[np.object_]:
    """Each item's majority label: (items,), None without a majority."""
    labelled = scores["label"].notna().to_numpy()
    majorities = np.full(size, None, dtype=object)
    if not labelled.any():
        return majorities
    scores, item = scores[labelled], item[labelled]
    names = np.array([*scores["label"].cat.categories, None], dtype=object)
    if scores["other"].notna().all() and set(scores["label"].dropna()) <= set(STEPS):
        ties = bool(of_people(scores).all() or (scores["other"] == REFERENCE).all())
        return _directions(steps_of(scores), scores["label"].to_numpy(dtype=object), item, size, ties=ties)
    return names[_majority(_codes(scores["label"]), item, size, len(names) - 1)]


def _directions(
    steps: Floats, labels: NDArray[np.object_], item: Ints, size: int, *, ties: bool
) -> NDArray[np.object_]:
    """Each item's combined direction and strength as a label: (items,), None without a majority unless that `ties`."""
    side = np.sign(steps).astype(np.int64)
    winner = _majority(side + 1, item, size, 3) - 1  # 2: no majority
    combined = np.full(size, None, dtype=object)
    present = np.bincount(item, minlength=size) > 0
    combined[present & ((winner == 0) | (ties & (winner == 2)))] = TIE
    ties = (side == 0) & (winner[item] == 0)
    bad = (labels == BOTH_BAD)[ties]
    share = np.bincount(item[ties], weights=bad, minlength=size) * 2 > np.bincount(item[ties], minlength=size)
    combined[share] = BOTH_BAD
    agreeing = (side != 0) & (side == winner[item])
    of, strength = item[agreeing], np.abs(steps[agreeing])
    order = np.lexsort((strength, of))
    items, start, many = np.unique(of[order], return_index=True, return_counts=True)
    middle = strength[order][start + (many - 1) // 2] * winner[items]
    combined[items] = [LABELS[step] for step in middle.tolist()]
    return combined


def _majority(votes: Ints, item: Ints, size: int, none: int) -> Ints:
    """The value with more than half of each item's votes; `none` if there is no such value."""
    import pandas as pd

    votes_of = pd.Series(votes).groupby([item, votes]).size()
    won = votes_of[2 * votes_of > votes_of.groupby(level=0).transform("sum")].reset_index(level=1)["level_1"]
    return won.reindex(range(size), fill_value=none).to_numpy()


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """All verdicts under one metric; comparisons are oriented by `as_comparisons`.

    `rows` has a number for the answer or pair of answers (`item`). `people`: people's verdicts; `value`: those combined
    per item; `authors`: for each judge, script and rule program, by name, one row per item.
    """

    metric: ScaledMetric
    compares: bool
    rows: DataFrame
    people: DataFrame
    value: DataFrame
    authors: dict[str, DataFrame]

    @property
    def level(self) -> Level:
        """The level of measurement of the values.

        Nominal for labels and bools; ordinal for comparisons and for whole numbers on a declared scale with whole ends;
        interval for all other numbers. Decided by people's numbers, or else single judges', because combined values are
        rarely whole.
        """
        if self.compares:
            return "ordinal"
        numbers = self.rows[(self.rows["kind"] == "number").to_numpy()]
        if not len(numbers):
            return "nominal"
        of = (of_people(numbers), (numbers["source"] == "judge").to_numpy(), np.ones(len(numbers), np.bool_))
        values = numbers["value"].to_numpy()[next(mask for mask in of if mask.any())]
        ends = [end for end in (self.metric.low, self.metric.high) if end is not None]
        whole = len(ends) == 2 and all(float(end).is_integer() for end in ends)
        return "ordinal" if whole and np.array_equal(np.floor(values), values, equal_nan=True) else "interval"

    @property
    def is_binary(self) -> bool:
        """Whether all values are bools."""
        return set(self.rows["kind"].dropna().unique()) == {"bool"}

    def of_part(self, part: str) -> Verdicts:
        """The verdicts on the rows of this `part`. `rows` is not filtered, so that `level` stays the same."""

        def of_this_part(rows: DataFrame) -> DataFrame:
            return rows[(rows["part"] == part).to_numpy()]

        authors = {name: of_this_part(rows) for name, rows in self.authors.items()}
        return replace(
            self, people=of_this_part(self.people), value=of_this_part(self.value), authors=authors
        )

    @property
    def judges(self) -> dict[str, DataFrame]:
        """All individual verdicts of the judge models, by name."""
        mine = self.rows[(self.rows["source"] == "judge").to_numpy()]
        parts = {str(name): part for name, part in mine.groupby("by", observed=True)}
        return {name: parts[name] for name in sorted(parts)}


def has_single_scores(mine: DataFrame, metric: ScaledMetric) -> bool:
    """Whether a single judge scored every answer once, so that there are no verdicts to compare."""
    authors = np.unique(_codes(mine["by"])).size <= 1 and not of_people(mine).any()
    return bool(authors and not compares(mine, metric) and (mine["repeat"] <= 1).all() and mine["main"].all())


def verdicts_under(mine: DataFrame, metric: ScaledMetric) -> Verdicts:
    """Collect the verdicts from the rows of one metric."""
    comparing = compares(mine, metric)
    rows = as_comparisons(mine, metric) if comparing else mine
    rows = rows.assign(item=answers_coded(rows))
    by_people = of_people(rows)
    people = rows[by_people]
    return Verdicts(metric, comparing, rows, people, combined_per_item(people), _by_author(rows[~by_people]))


def _by_author(rows: DataFrame) -> dict[str, DataFrame]:
    """One row per item for each author: repeats averaged, and both orders replaced by their combined verdict."""
    rows = rows[(rows["source"] != "override").to_numpy()]
    parts = {str(name): mine for name, mine in rows.groupby("by", observed=True)}
    return {name: combined_per_item(without_single_orders(parts[name])) for name in sorted(parts)}


def without_single_orders(rows: DataFrame) -> DataFrame:
    """Drop the single-order verdicts of answers that also have a combined one."""
    both = (rows["order"] == "both").to_numpy()
    if not both.any():
        return rows
    items = rows["item"].to_numpy()
    return rows[both | ~np.isin(items, items[both])]


def on_both(rows: DataFrame, others: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The rows of two authors for the items on which both have a value, in the same order."""
    rows, others = rows[rows["kind"].notna().to_numpy()], others[others["kind"].notna().to_numpy()]
    _, a, b = np.intersect1d(
        rows["item"].to_numpy(), others["item"].to_numpy(), assume_unique=True, return_indices=True
    )
    return rows.take(a), others.take(b)
