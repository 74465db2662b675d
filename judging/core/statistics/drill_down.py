"""The items that figures of verdicts were counted over: comparisons by an author, what raters said of the same answers,
what people and a judge said of them, a judge's repeats, what it said in both orders, the ends of its scale; and items
with several answers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from judging.core.values import Value

from .agreement import raters_of, ratings_of
from .cells import scale_of
from .frame import Metric, of_kind
from .judges import plain_number, seen_both_ways, shared_values, with_known_order
from .numeric import Bools, Floats, Ints
from .preference import comparisons_by
from .verdicts import (
    BOTH_BAD,
    LABELS,
    Verdicts,
    of_people,
    on_both,
    steps_of,
    verdicts_under,
    without_single_orders,
)

if TYPE_CHECKING:
    from pandas import DataFrame

WINS, TIES, LOSSES = "wins", "ties", "losses"
_BAD = 3  # in place of a step: both answers were bad
_COLUMNS = 6  # row, first candidate, its response, second candidate, its response, step


class Comparison(msgspec.Struct, frozen=True):
    """What an author said of two answers: `label` of `STEPS`, in which A is `candidate`'s."""

    row: int
    candidate: str
    response: int
    other: str
    other_response: int
    label: str


class Comparisons(msgspec.Struct, frozen=True):
    """All comparisons under a metric by one author: `packed` is a table (comparisons, `_COLUMNS`) of int32."""

    names: list[str]
    packed: bytes

    def of(self, candidate: str, other: str = "") -> ComparisonsOf:
        """Those of a candidate with all others, or with one of them. ValueError for names that were not compared."""
        table = np.frombuffer(self.packed, "<i4").reshape(-1, _COLUMNS).astype(np.int64)
        a = self.names.index(candidate)
        second = (table[:, 3] == a) & (table[:, 1] != a)
        step = np.where(second & (table[:, 5] != _BAD), -table[:, 5], table[:, 5])
        table = np.column_stack([np.where(second[:, None], table[:, [0, 3, 4, 1, 2]], table[:, :5]), step])
        kept = table[:, 1] == a
        if other:
            kept &= table[:, 3] == self.names.index(other)
        return ComparisonsOf(self.names, table[kept])


class ComparisonsOf(msgspec.Struct, frozen=True):
    """Comparisons in which one candidate always stands first."""

    names: list[str]
    table: Ints

    def __len__(self) -> int:
        return len(self.table)

    def having(self, outcome: str) -> ComparisonsOf:
        """Those that the candidate wins, loses, or that tie (with those in which both were bad), or of one label."""
        return ComparisonsOf(self.names, self.table[self._where(outcome)])

    def count(self, outcome: str) -> int:
        return int(self._where(outcome).sum())

    def page(self, places: range) -> list[Comparison]:
        return [
            Comparison(row, self.names[a], response, self.names[b], other, _label(step))
            for row, a, response, b, other, step in self.table[places.start : places.stop].tolist()
        ]

    def _where(self, outcome: str) -> Bools:
        step = self.table[:, 5]
        found: Bools
        if outcome in (WINS, LOSSES):
            found = (step > 0) & (step != _BAD) if outcome == WINS else step < 0
        elif outcome == TIES:
            found = (step == 0) | (step == _BAD)
        else:
            found = step == (_BAD if outcome == BOTH_BAD else _steps().get(outcome, _BAD + 1))
        return found


def _label(step: int) -> str:
    return BOTH_BAD if step == _BAD else LABELS[step]


def _steps() -> dict[str, int]:
    return {label: int(step) for step, label in LABELS.items()}


def comparisons_listed(verdicts: Verdicts) -> dict[str, Comparisons]:
    """By author, as `preference.side_by_side` counts them."""
    return {by: _packed(each) for by, each, _ in comparisons_by(verdicts) if len(each)}


def _packed(each: DataFrame) -> Comparisons:
    first, second = (each[name].astype(object).to_numpy() for name in ("candidate", "other"))
    names = sorted({*first, *second})
    places = {name: place for place, name in enumerate(names)}
    step = np.where(each["label"] == BOTH_BAD, _BAD, steps_of(each))
    columns: list[Any] = [
        each["row"].to_numpy(),
        [places[name] for name in first],
        each["response"].to_numpy(),
        [places[name] for name in second],
        each["other_response"].to_numpy(),
        step,
    ]
    return Comparisons([str(name) for name in names], np.column_stack(columns).astype("<i4").tobytes())


MOST_LISTED = 20_000  # answers with several verdicts


class ListedVerdicts(msgspec.Struct, frozen=True):
    """Answers, or two, that several verdicts are about, those first on which they differ most; a list each.

    `said`: (who or which of `names`, what) of each. `apart`: do they differ (of two orders: is the other one the
    winner)? `total`: how many there are; of many only those that differ most are in the lists."""

    total: int
    names: list[str]
    rows: list[int]
    candidates: list[str]
    responses: list[int]
    others: list[str | None]
    other_responses: list[int]
    said: list[list[tuple[int, Value]]]
    apart: list[bool]

    def places(self, *wanted: tuple[str, str], apart: bool = False, least: int = 1) -> list[int]:
        """Where all of these, (name, value), spoke, and said this value ('' is any), and at least so many verdicts are;
        with `apart` those on which they differ. ValueError for an unknown name."""
        asked = [(self.names.index(name), value) for name, value in wanted if name]
        return [
            place
            for place, said in enumerate(self.said)
            if (self.apart[place] or not apart)
            and len(said) >= least
            and all(any(who == one and is_meant(value, what) for who, what in said) for one, value in asked)
        ]


def ratings_listed(verdicts: Verdicts) -> ListedVerdicts | None:
    """What raters said, as `raters.rater_agreement` counts it; None where nobody rated."""
    rows = raters_of(verdicts)
    rows = rows[rows["kind"].notna().to_numpy()]
    if not len(rows):
        return None
    table = ratings_of(rows, verdicts)
    return _by_item(rows, table.items, table.authors, table.names, table.values, table.codes)


def judges_listed(verdicts: Verdicts) -> ListedVerdicts | None:
    """What judge models said of the same answers, each one value, as `judges.judge_agreements` holds them against each
    other; None for fewer than two."""
    import pandas as pd

    judges = [rows for rows in verdicts.authors.values() if (rows["source"] == "judge").all()]
    if len(judges) < 2:
        return None
    rows = pd.concat(
        [one[one["kind"].notna().to_numpy()].astype({"by": object, "label": object}) for one in judges]
    )
    rows = rows[rows["item"].duplicated(keep=False).to_numpy()]
    if not len(rows):
        return None
    rows = rows.assign(by=pd.Categorical(rows["by"]))
    table = ratings_of(rows, verdicts)
    return _by_item(rows, table.items, table.authors, table.names, table.values, table.codes)


def repeats_listed(verdicts: Verdicts) -> dict[str, ListedVerdicts]:
    """By judge, the answers of which it was asked several times, as `judges.judge_repeats` counts them."""
    found = {}
    for judge, all_rows in verdicts.judges.items() if (verdicts.rows["repeat"] > 1).any() else ():
        rows = without_single_orders(all_rows).drop_duplicates(["item", "repeat"])
        rows = rows[rows["kind"].notna().to_numpy()]
        rows = rows[rows["item"].duplicated(keep=False).to_numpy()]
        if len(rows):
            table = ratings_of(rows, verdicts)
            numbers, places = np.unique(rows["repeat"].to_numpy(), return_inverse=True)
            names = [str(number) for number in numbers.tolist()]
            found[judge] = _by_item(rows, table.items, places, names, table.values, table.codes)
    return found


ORDERS = ("1", "2")  # which of the two answers stood first


def orders_listed(verdicts: Verdicts) -> dict[str, ListedVerdicts]:
    """By judge, what it said of two answers in either order, as `judges.order_effects` counts it."""
    found = {}
    for judge, all_rows in verdicts.judges.items() if verdicts.compares else ():
        seen, twice = seen_both_ways(all_rows)
        if not len(twice):
            continue
        firsts = seen.drop_duplicates("item").set_index("item").loc[twice.index.get_level_values("item")]
        rows = firsts.iloc[np.repeat(np.arange(len(twice)), 2)]
        steps = twice.to_numpy().ravel()
        rows = rows.assign(label=[LABELS[step] for step in steps.tolist()])
        pairs, places = np.repeat(np.arange(len(twice)), 2), np.tile([0, 1], len(twice))
        found[judge] = _by_item(rows, pairs, places, [*ORDERS], steps, np.sign(steps), opposed=True)
    return found


def first_sides_listed(verdicts: Verdicts) -> dict[str, ListedVerdicts]:
    """By author, the comparisons whose order is known, each alone, as `judges.first_side` counts them; `apart`: was the
    answer that stood first the winner?"""
    found = {}
    for by, _, all_of in comparisons_by(verdicts):
        rows = with_known_order(all_of)
        if len(rows):
            places = rows["shown_first"].to_numpy().astype(np.int64) - 1
            steps = steps_of(rows)
            found[by] = _alone(rows, places, [*ORDERS], steps * np.where(places, -1, 1) > 0)
    return found


def scale_ends_listed(mine: DataFrame, metric: Metric, end: float | None) -> dict[str, ListedVerdicts]:
    """By judge, the answers to which it gave this end of a metric's scale, as `bias.scale_ends` counts them."""
    if end is None or metric.compares:
        return {}
    rows = mine[
        ((mine["source"] == "judge") & (mine["kind"] == "number") & (mine["value"] == end)).to_numpy()
    ]
    return {
        str(judge): _alone(one, np.zeros(len(one), np.int64), [str(judge)], np.zeros(len(one), np.bool_))
        for judge, one in rows.groupby("by", observed=True)
    }


def answers_listed(values: DataFrame, metric: Metric) -> dict[str, ListedVerdicts]:
    """By candidate, the items with several scored answers and what each got, as `means.best_at_k` counts them; `values`
    are those that a cell is made of (`verdicts.counted`)."""
    scale, found = scale_of(values, metric), {}
    if scale.kind in (None, "category"):
        return {}
    for name, mine in of_kind(values, scale.kind).groupby("candidate", observed=True):
        rows = mine[mine["row"].duplicated(keep=False).to_numpy()]
        if len(rows):
            numbers, places = np.unique(rows["response"].to_numpy(), return_inverse=True)
            scores = rows["value"].to_numpy(dtype=np.float64)
            names = [str(number) for number in numbers.tolist()]
            found[str(name)] = _by_item(rows, rows["row"].to_numpy(), places, names, scores, scores)
    return found


def _alone(rows: DataFrame, places: Ints, names: list[str], apart: Bools) -> ListedVerdicts:
    """Each verdict for itself, those first that are `apart`."""
    order = np.argsort(~apart, kind="stable")[:MOST_LISTED]
    about = rows.iloc[order]
    said = [[one] for one in zip(places[order].tolist(), _values(about), strict=True)]
    return _listed(about, names, len(rows), said, apart[order])


def _by_item(
    rows: DataFrame,
    entries: Ints,
    places: Ints,
    names: list[str],
    numbers: Floats,
    codes: Floats,
    *,
    opposed: bool = False,
) -> ListedVerdicts:
    """From verdicts (verdicts,) on `entries`, whose `codes` are equal where they say the same; `opposed`: only codes of
    opposite signs are apart."""
    order = np.lexsort((places, entries))
    starts = np.flatnonzero(np.r_[True, np.diff(entries[order]) > 0])
    ends = np.r_[starts[1:], order.size]
    low, high, least, most = (
        of.reduceat(what[order], starts) for what in (numbers, codes) for of in (np.minimum, np.maximum)
    )
    apart = least * most < 0 if opposed else most > least
    first = np.lexsort((low - high, ~apart))[:MOST_LISTED]
    about = rows.iloc[order[starts[first]]]
    given = [order[starts[entry] : ends[entry]] for entry in first.tolist()]
    values = iter(_values(rows.iloc[np.concatenate(given)]))
    said = [[(int(places[one]), next(values)) for one in ones] for ones in given]
    return _listed(about, names, int(starts.size), said, apart[first])


def _listed(
    about: DataFrame, names: list[str], total: int, said: list[list[tuple[int, Value]]], apart: Bools
) -> ListedVerdicts:
    """`about`: a verdict of each entry, in the order of the list; `total`: how many entries there are in all."""
    others = about["other"].astype(object)
    return ListedVerdicts(
        total=total,
        names=names,
        rows=about["row"].tolist(),
        candidates=[str(name) for name in about["candidate"]],
        responses=about["response"].tolist(),
        others=others.where(others.notna(), None).tolist(),
        other_responses=about["other_response"].tolist(),
        said=said,
        apart=apart.tolist(),
    )


def _values(rows: DataFrame) -> list[Value]:
    """What each scored verdict says."""
    verdicts = zip(rows["kind"], rows["label"], rows["value"].tolist(), strict=True)
    return [
        str(label) if kind == "category" else value == 1 if kind == "bool" else plain_number(value)
        for kind, label, value in verdicts
    ]


MOST_PAIRED = 20_000  # answers of a judge that are kept
MOST_LABELS = 11  # different numbers; more are shown rounded to whole ones
ABOUT = "~"  # before a number: all that are rounded to it


class Paired(msgspec.Struct, frozen=True):
    """A judge's values and people's on the same answers, a list each. `others`: what the answers are compared with.

    `total`: how many answers there are; of many only those with the largest differences are in the lists.
    """

    total: int
    candidates: list[str]
    responses: list[int]
    others: list[str | None]
    other_responses: list[int]
    rows: list[int]
    judge: list[Value]
    people: list[Value]
    differences: list[float]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def numeric(self) -> bool:
        return not any(isinstance(value, str | bool) for value in (*self.judge, *self.people))

    @property
    def rounded(self) -> bool:
        """Are there so many different numbers that tables round them?"""
        return self.numeric and len({*self.judge, *self.people}) > MOST_LABELS

    def places(self, judge: str = "", people: str = "") -> list[int]:
        """Where these values are (`value_key`, or about a number); '' is any value."""
        both = enumerate(zip(self.judge, self.people, strict=True))
        return [place for place, (a, b) in both if is_meant(judge, a) and is_meant(people, b)]

    def counts(self) -> Counter[tuple[Value, Value]]:
        """How many answers have which two values."""
        return Counter(zip(self.judge, self.people, strict=True))


def value_key(value: Value, *, rounded: bool = False) -> str:
    """A value as an address names it; `rounded`: with all that are rounded to the same whole number, halves up."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return f"{ABOUT}{math.floor(value + 0.5)}" if rounded else f"{value:.6g}"


def is_meant(asked: str, value: Value) -> bool:
    """Does a value have this key? '' is any."""
    if not asked or asked == value_key(value):
        return True
    return asked.startswith(ABOUT) and not isinstance(value, str) and asked == value_key(value, rounded=True)


def paired_under(judgements: DataFrame, metric: Metric, most: int = MOST_PAIRED) -> dict[str, Paired]:
    """By each judge, rule program and script of a metric that has answers in common with people."""
    mine = judgements[(judgements["metric"] == metric.name).to_numpy()]
    if not of_people(mine).any():
        return {}
    verdicts = verdicts_under(mine, metric)
    found = {name: _paired(verdicts, rows, most) for name, rows in verdicts.authors.items()}
    return {name: one for name, one in found.items() if len(one)}


def _paired(verdicts: Verdicts, judged: DataFrame, most: int) -> Paired:
    rows, people = on_both(judged, verdicts.value)
    shared = shared_values(rows, people, verdicts.level)
    rows = rows.take(shared.places)
    differs: Floats = np.abs(shared.a - shared.b)
    if shared.level == "nominal":
        differs = (shared.said[0] != shared.said[1]).astype(np.float64)
    order = np.argsort(-differs, kind="stable")[:most]
    rows = rows.take(order)
    values = [_said(said[order], shared.labels, shared.coded) for said in shared.said]
    others = rows["other"].astype(object)
    return Paired(
        total=int(differs.size),
        candidates=[str(name) for name in rows["candidate"]],
        responses=rows["response"].tolist(),
        others=others.where(others.notna(), None).tolist(),
        other_responses=rows["other_response"].tolist(),
        rows=rows["row"].tolist(),
        judge=values[0],
        people=values[1],
        differences=differs[order].tolist(),
    )


def _said(said: Floats, labels: list[str | float], coded: bool) -> list[Value]:
    return [labels[int(code)] for code in said] if coded else said.tolist()
