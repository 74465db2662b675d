"""Several verdicts on one answer as one: of judges their mean or majority, of people their value; and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from judging.core.values import NO_SCORE, SCORED, UNPARSED

from .frame import ANSWERS, COMBINED, KINDS, PEOPLE, REFERENCE, STATES, Metric, answers_coded, joined
from .numeric import Bools, Floats, Ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame, Series

T = TypeVar("T", str, float)

STEPS = {"A>>B": 2.0, "A>B": 1.0, "A=B": 0.0, "both_bad": 0.0, "B>A": -1.0, "B>>A": -2.0}
"""How far a comparison's verdict is on the side of A, the answer in `candidate` and `response`."""
LABELS = {2.0: "A>>B", 1.0: "A>B", 0.0: "A=B", -1.0: "B>A", -2.0: "B>>A"}
BOTH_BAD = "both_bad"
_TURNED = {"A>>B": "B>>A", "A>B": "B>A", "B>A": "A>B", "B>>A": "A>>B"}
_COUNTED_FIRST = ("scored", "unparsed", "error", "not_run", "no_score")
"""Which state several verdicts come to: the first of these that one of them has."""


def of_people(judgements: DataFrame) -> Bools:
    """Whether people said it: shape (rows,)."""
    return np.asarray(judgements["source"].isin(PEOPLE), dtype=np.bool_)


def compares(judgements: DataFrame, metric: Metric) -> bool:
    """Whether a metric's verdicts are about two answers."""
    return metric.compares or bool(judgements["other"].notna().any())


def as_comparisons(judgements: DataFrame, metric: Metric) -> DataFrame:
    """A metric's rows about two answers, each with the same answer as A whoever said it; the rest is left out.

    Numbers 1…5 of a metric that `compares` become labels, and the answer, which is B in them, becomes A.
    """
    rows = _from_numbers(judgements) if metric.compares else judgements
    rows = rows[rows["other"].notna()]
    labels = rows["label"].astype(object)
    rows = rows[(labels.isin(list(STEPS)) | (rows["state"] != SCORED)).to_numpy()]
    return _oriented(rows)


def _from_numbers(judgements: DataFrame) -> DataFrame:
    import pandas as pd

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


def _oriented(rows: DataFrame) -> DataFrame:
    """A is the candidate whose name comes first, of the same name the lower response; the reference is always B."""
    import pandas as pd

    mine, others = rows["candidate"].astype(object), rows["other"].astype(object)
    names = [(one == REFERENCE, one) for one in mine], [(one == REFERENCE, one) for one in others]
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
        label=pd.Categorical(labels.where(~turn, labels.map(lambda one: _TURNED.get(one, one)))),
        shown_first=np.where(turn & (first > 0), 3 - first, first),
    )


def steps_of(rows: DataFrame) -> Floats:
    """How far each scored comparison is on A's side, −2…2; NaN for the others: shape (rows,)."""
    return np.asarray(rows["label"].astype(object).map(STEPS), dtype=np.float64)


def one_each(judgements: DataFrame) -> DataFrame:
    """One row for each answer (or two) and metric, in the same order: what all verdicts of these rows come to.

    A row that stands alone stays as it is. Where a reviewer overrode, an adjudicator decided or several judges were
    combined already, that counts alone. Else a judge's repeats are one mean, and the judges (or people) the mean of
    theirs; of labels the one with more votes than any other, of a comparison without such a direction `A=B`, and its
    strength the median of those of that direction, the weaker of two in the middle. Labels without such a one leave no
    value: `unparsed` for judges, `no_score` for people.
    """
    items = answers_coded(judgements)
    _, first, item, sizes = np.unique(items, return_index=True, return_inverse=True, return_counts=True)
    if (sizes == 1).all():
        return judgements
    alone = sizes[item] == 1
    several = _deciding(judgements[~alone], item[~alone])
    merged = _merged(judgements.iloc[first[sizes > 1]], several, np.flatnonzero(sizes > 1))
    return _placed(judgements[alone], merged)


def _placed(alone: DataFrame, merged: DataFrame) -> DataFrame:
    """Both in the order of answers."""
    units = np.concatenate([alone["unit"].to_numpy(), merged["unit"].to_numpy()])
    together = joined([alone, merged]).reset_index(drop=True).assign(unit=units)
    order = np.argsort(answers_coded(together), kind="stable")
    return together.take(order).reset_index(drop=True)


def _deciding(rows: DataFrame, item: Ints) -> DataFrame:
    """The rows whose word counts, with the number of their `item`."""
    rows = rows.assign(item=item)
    for source in ("override", "adjudicator", COMBINED):
        mine = (rows["source"] == source).to_numpy()
        settled = np.isin(item, item[mine])
        rows, item = rows[mine | ~settled], item[mine | ~settled]
    return rows


def _merged(firsts: DataFrame, rows: DataFrame, items: Ints) -> DataFrame:
    """One row for each of `items`: `firsts` with the state and value that `rows` come to."""
    import pandas as pd

    scored = rows[rows["state"] == SCORED]
    values = _means(scored, items)
    labels = _majorities(scored, items)
    kinds = _kinds(scored, items)
    rank = rows["state"].astype(object).map({state: at for at, state in enumerate(_COUNTED_FIRST)})
    states = rank.groupby(rows["item"]).min().reindex(items).map(dict(enumerate(_COUNTED_FIRST)))
    hung = (kinds == "category") & labels.isna()
    without = NO_SCORE if len(rows) and of_people(rows).all() else UNPARSED
    states = states.where(~hung, without)
    kinds = kinds.where(~hung & (states == SCORED), None)
    deciding = rows.drop_duplicates("item").set_index("item").reindex(items)
    return firsts.assign(
        state=pd.Categorical(states, categories=list(STATES)),
        kind=pd.Categorical(kinds, categories=list(KINDS)),
        value=np.where((kinds == "number") | (kinds == "bool"), values, np.nan),
        label=pd.Categorical(labels.where(kinds == "category", None)),
        by=pd.Categorical(deciding["by"].astype(object)),
        source=pd.Categorical(deciding["source"].astype(object), categories=firsts["source"].cat.categories),
        drawn_with=rows.groupby("item")["drawn_with"].first().reindex(items).to_numpy(),
        shown_first=0,
        repeat=1,
    )


def _kinds(scored: DataFrame, items: Ints) -> Series[str]:
    """The kind that an item's value has: a number where one said a number, else bool, else category."""
    codes = scored["kind"].cat.codes.astype("float64").groupby(scored["item"]).min().reindex(items)
    return codes.map(dict(enumerate(scored["kind"].cat.categories))).astype(object)


def _means(scored: DataFrame, items: Ints) -> Floats:
    """Of each author's mean over repeats."""
    authors = scored.assign(author=scored["by"].cat.codes, of=scored["source"].cat.codes)
    by_author = authors.groupby(["item", "of", "author"])["value"].mean()
    return np.asarray(by_author.groupby("item").mean().reindex(items), dtype=np.float64)


def _majorities(scored: DataFrame, items: Ints) -> Series[str]:
    import pandas as pd

    labelled = scored[scored["kind"] == "category"]
    found = {
        item: _majority(mine["label"].tolist(), comparison=bool(mine["other"].notna().any()))
        for item, mine in labelled.groupby("item")
    }
    return pd.Series(found, dtype=object).reindex(items)


def _majority(labels: Sequence[str], *, comparison: bool) -> str | None:
    if not comparison or any(label not in STEPS for label in labels):
        return _most(labels)
    sides = [float(np.sign(STEPS[label])) for label in labels]
    side = _most(sides)
    if side is None:
        return "A=B"
    if side == 0:
        ties = [label for label in labels if STEPS[label] == 0]
        return _most(ties) or "A=B"
    strengths = sorted(abs(STEPS[label]) for label, one in zip(labels, sides, strict=True) if one == side)
    return LABELS[side * strengths[(len(strengths) - 1) // 2]]


def _most(votes: Sequence[T]) -> T | None:
    """What has more votes than anything else; None where two lead."""
    counts = dict.fromkeys(votes, 0)
    for vote in votes:
        counts[vote] += 1
    most = max(counts.values())
    leading = [vote for vote, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else None


def by_author(judgements: DataFrame) -> dict[str, DataFrame]:
    """Each author's verdicts under one metric, judges' and rules', one for each answer: repeats are one mean, and
    where it was asked in both orders only what both come to counts."""
    rows = judgements[~of_people(judgements) & (judgements["source"] != "override").to_numpy()]
    parts = {str(name): mine for name, mine in rows.groupby("by", observed=True)}
    return {name: one_each(without_single_orders(parts[name])) for name in sorted(parts)}


def without_single_orders(rows: DataFrame) -> DataFrame:
    """Of answers that were judged in both orders only what both come to."""
    both = (rows["order"] == "both").to_numpy()
    if not both.any():
        return rows
    items = answers_coded(rows)
    return rows[both | ~np.isin(items, items[both])]


def answer_index(rows: DataFrame) -> DataFrame:
    """The rows, indexed by what they are about: candidate, row, response, other, other response."""
    keys = [name for name in ANSWERS if name != "metric"]
    plain = {name: rows[name].astype(object) for name in ("candidate", "other")}
    plain["other"] = plain["other"].where(rows["other"].notna(), "")
    return rows.assign(**plain).set_index(keys)
