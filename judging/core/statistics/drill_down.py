"""The items behind the verdict statistics, for drill-down, and items with several answers.

Lists comparisons, ratings, judge agreement, repeats, order effects and scale ends.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from datasets.core.kinds import BOTH_BAD
from evalsite.rounding import significant
from judging.core.values import UNSETTLED, Value

from .agreement import raters_of, ratings_of
from .frame import ScaledMetric, of_kind
from .judges import plain_number, repeated, seen_both_ways, shared_values, with_known_order
from .numeric import Bools, Floats, Ints
from .preference import comparisons_by, is_unsettled
from .report import scale_of
from .verdicts import LABELS, STEPS, Verdicts, of_people, on_both, steps_of, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame, Series

WINS, TIES, LOSSES = "wins", "ties", "losses"
_BAD = 3  # stands for "both answers are bad" in place of a step
_UNSETTLED = 4  # likewise for an unsettled pair
_LABELS = {**LABELS, _BAD: BOTH_BAD, _UNSETTLED: UNSETTLED}
_COLUMNS = 6  # row, first candidate, its response, second candidate, its response, step


class ListedComparison(msgspec.Struct, frozen=True):
    """An author's verdict on two answers: `label` is one of `STEPS`, in which A is the answer of `candidate`, or
    `unsettled`."""

    row: int
    candidate: str
    response: int
    other: str
    other_response: int
    label: str


class Comparisons(msgspec.Struct, frozen=True):
    """Comparisons by one author under a metric: `packed` is a table (comparisons, `_COLUMNS`) of int32."""

    names: list[str]
    packed: bytes

    @property
    def table(self) -> Ints:
        return np.frombuffer(self.packed, "<i4").reshape(-1, _COLUMNS).astype(np.int64)

    def __len__(self) -> int:
        return len(self.table)

    def of(self, candidate: str, other: str = "") -> Comparisons:
        """A candidate's comparisons with all others, or with one; it is always first. Raises ValueError for names not
        compared."""
        table, a = self.table, self.names.index(candidate)
        second = (table[:, 3] == a) & (table[:, 1] != a)
        step = np.where(second & (table[:, 5] < _BAD), -table[:, 5], table[:, 5])
        table = np.column_stack([np.where(second[:, None], table[:, [0, 3, 4, 1, 2]], table[:, :5]), step])
        mine = table[:, 1] == a
        if other:
            mine &= table[:, 3] == self.names.index(other)
        return self._with(table[mine])

    def having(self, outcome: str) -> Comparisons:
        """Those that the first candidate wins, loses or ties (including both bad), unsettled ones, or those with one
        label."""
        return self._with(self.table[self._where(outcome)])

    def count(self, outcome: str) -> int:
        return int(self._where(outcome).sum())

    def page(self, places: range) -> list[ListedComparison]:
        return [
            ListedComparison(row, self.names[a], response, self.names[b], other, _LABELS[step])
            for row, a, response, b, other, step in self.table[places.start : places.stop].tolist()
        ]

    def _with(self, table: Ints) -> Comparisons:
        return Comparisons(self.names, table.astype("<i4").tobytes())

    def _where(self, outcome: str) -> Bools:
        step = self.table[:, 5]
        unsettled = step == _UNSETTLED
        side = np.where(step == _BAD, 0, np.sign(step))
        masks: dict[str, Bools] = {
            WINS: (side > 0) & ~unsettled,
            TIES: side == 0,
            LOSSES: side < 0,
            BOTH_BAD: step == _BAD,
            UNSETTLED: unsettled,
        }
        return masks[outcome] if outcome in masks else step == STEPS.get(outcome, _BAD + 1)


def comparisons_listed(verdicts: Verdicts) -> dict[str, Comparisons]:
    """Comparisons by author, as `preference.side_by_side` counts them."""
    return {by: _packed(each) for by, each, _ in comparisons_by(verdicts) if len(each)}


def _packed(each: DataFrame) -> Comparisons:
    first, second = (each[name].astype(object) for name in ("candidate", "other"))
    names = sorted({*first, *second})
    places = {name: place for place, name in enumerate(names)}
    step = np.where(each["label"] == BOTH_BAD, _BAD, steps_of(each))
    step = np.where(is_unsettled(each), _UNSETTLED, step)
    columns: list[Any] = [
        each["row"], first.map(places), each["response"], second.map(places), each["other_response"], step,
    ]  # fmt: skip
    return Comparisons([str(name) for name in names], np.column_stack(columns).astype("<i4").tobytes())


MOST_LISTED = 20_000  # most answers listed


class Listed(msgspec.Struct, frozen=True):
    """Answers, or pairs of answers, as parallel lists.

    `others`: the candidates that the answers are compared with. `total`: how many answers there are; the lists are
    limited to those with the largest differences, which are first.
    """

    total: int
    rows: list[int]
    candidates: list[str]
    responses: list[int]
    others: list[str | None]
    other_responses: list[int]

    def __len__(self) -> int:
        return len(self.rows)


def _answers(about: DataFrame) -> dict[str, Any]:
    """The lists of `Listed`, from one verdict of each entry."""
    others = about["other"].astype(object)
    return {
        "rows": about["row"].tolist(),
        "candidates": [str(name) for name in about["candidate"]],
        "responses": about["response"].tolist(),
        "others": others.where(others.notna(), None).tolist(),
        "other_responses": about["other_response"].tolist(),
    }


class ListedVerdicts(Listed, frozen=True):
    """Answers with several verdicts.

    `said`: for each, (index into `names`, value) per verdict. `apart`: whether they differ (for two orders: whether the
    winner changed).
    """

    names: list[str]
    said: list[list[tuple[int, Value]]]
    apart: list[bool]

    def places(self, *wanted: tuple[str, str], apart: bool = False, least: int = 1) -> list[int]:
        """Indices of the entries with all of the `wanted` (name, value) verdicts, '' being any value.

        Entries need at least `least` verdicts; with `apart`, verdicts that differ. Raises ValueError for an unknown
        name.
        """
        conditions = [(self.names.index(name), value) for name, value in wanted if name]
        return [
            place
            for place, said in enumerate(self.said)
            if (self.apart[place] or not apart)
            and len(said) >= least
            and all(
                any(who == number and matches_key(value, what) for who, what in said)
                for number, value in conditions
            )
        ]


def ratings_listed(verdicts: Verdicts) -> ListedVerdicts | None:
    """The raters' verdicts, as `agreement.rater_agreement` counts them; None without ratings."""
    rows = raters_of(verdicts)
    return _by_author(rows[rows["kind"].notna().to_numpy()], verdicts)


def judges_listed(verdicts: Verdicts) -> ListedVerdicts | None:
    """The judge models' values for the same answers, as in `judges.judge_agreements`; None for fewer than two."""
    import pandas as pd

    judges = [rows for rows in verdicts.authors.values() if (rows["source"] == "judge").all()]
    if len(judges) < 2:
        return None
    rows = pd.concat([of_judge.astype({"by": object, "label": object}) for of_judge in judges])
    rows = _several(rows)
    return _by_author(rows.assign(by=pd.Categorical(rows["by"])), verdicts)


def _by_author(rows: DataFrame, verdicts: Verdicts) -> ListedVerdicts | None:
    if not len(rows):
        return None
    table = ratings_of(rows, verdicts)
    return _by_item(rows, table.items, table.authors, table.names, table.values, table.codes)


def _several(rows: DataFrame) -> DataFrame:
    """The scored verdicts on items that have at least two."""
    rows = rows[rows["kind"].notna().to_numpy()]
    return rows[rows["item"].duplicated(keep=False).to_numpy()]


def repeats_listed(verdicts: Verdicts) -> dict[str, ListedVerdicts]:
    """By judge, the answers that it judged several times, as `judges.judge_repeats` counts them."""
    by_judge = {}
    for judge, every in repeated(verdicts).items():
        rows = _several(every)
        if len(rows):
            table = ratings_of(rows, verdicts)
            places, names = _numbered(rows["repeat"])
            by_judge[judge] = _by_item(rows, table.items, places, names, table.values, table.codes)
    return by_judge


def _numbered(column: Series[int]) -> tuple[Ints, list[str]]:
    """The place of each number among the different ones, and those as texts."""
    numbers, places = np.unique(column.to_numpy(), return_inverse=True)
    return places, [str(number) for number in numbers.tolist()]


SHOWN_FIRST = ("1", "2")  # which of the two answers was shown first


def orders_listed(verdicts: Verdicts) -> dict[str, ListedVerdicts]:
    """By judge, its verdicts on two answers in both orders, as `judges.order_effects` counts them."""
    by_judge = {}
    for judge, all_rows in verdicts.judges.items() if verdicts.compares else ():
        seen, twice = seen_both_ways(all_rows)
        if not len(twice):
            continue
        firsts = seen.drop_duplicates("item").set_index("item").loc[twice.index.get_level_values("item")]
        rows = firsts.iloc[np.repeat(np.arange(len(twice)), 2)]
        steps = twice.to_numpy().ravel()
        rows = rows.assign(label=[LABELS[step] for step in steps.tolist()])
        pairs, places = np.repeat(np.arange(len(twice)), 2), np.tile([0, 1], len(twice))
        by_judge[judge] = _by_item(rows, pairs, places, [*SHOWN_FIRST], steps, np.sign(steps), opposed=True)
    return by_judge


def first_sides_listed(verdicts: Verdicts) -> dict[str, ListedVerdicts]:
    """By author, each comparison with a known order, as `judges.first_side` counts them.

    `apart`: whether the answer shown first won.
    """
    by_author = {}
    for by, _, all_of in comparisons_by(verdicts):
        rows = with_known_order(all_of)
        if len(rows):
            places = rows["shown_first"].to_numpy().astype(np.int64) - 1
            steps = steps_of(rows)
            by_author[by] = _alone(rows, places, [*SHOWN_FIRST], steps * np.where(places, -1, 1) > 0)
    return by_author


def scale_ends_listed(mine: DataFrame, metric: ScaledMetric, end: float | None) -> dict[str, ListedVerdicts]:
    """By judge, the answers to which it gave this end of a metric's scale, as `judges.scale_ends` counts them."""
    if end is None or metric.compares:
        return {}
    rows = mine[
        ((mine["source"] == "judge") & (mine["kind"] == "number") & (mine["value"] == end)).to_numpy()
    ]
    return {
        str(judge): _alone(
            at_end, np.zeros(len(at_end), np.int64), [str(judge)], np.zeros(len(at_end), np.bool_)
        )
        for judge, at_end in rows.groupby("by", observed=True)
    }


def answers_listed(values: DataFrame, metric: ScaledMetric) -> dict[str, ListedVerdicts]:
    """By candidate, the items with several scored answers and their scores, as `means.best_at_k` counts them.

    `values`: the rows that a cell is computed from (`verdicts.counted`).
    """
    scale, by_candidate = scale_of(values, metric), {}
    if scale.kind in (None, "category"):
        return {}
    for name, mine in of_kind(values, scale.kind).groupby("candidate", observed=True):
        rows = mine[mine["row"].duplicated(keep=False).to_numpy()]
        if len(rows):
            places, names = _numbered(rows["response"])
            scores = rows["value"].to_numpy(dtype=np.float64)
            by_candidate[str(name)] = _by_item(rows, rows["row"].to_numpy(), places, names, scores, scores)
    return by_candidate


def _alone(rows: DataFrame, places: Ints, names: list[str], apart: Bools) -> ListedVerdicts:
    """One entry per verdict, with those that are `apart` first."""
    order = np.argsort(~apart, kind="stable")[:MOST_LISTED]
    about = rows.iloc[order]
    said = [[entry] for entry in zip(places[order].tolist(), _values(about), strict=True)]
    return ListedVerdicts(
        total=len(rows), **_answers(about), names=names, said=said, apart=apart[order].tolist()
    )


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
    """Group verdicts (verdicts,) by `entries`; equal `codes` mean equal verdicts.

    `opposed`: only codes of opposite signs count as different.
    """
    import pandas as pd

    columns = {
        "entry": entries,
        "place": places,
        "number": numbers,
        "code": codes,
        "at": np.arange(len(rows)),
    }
    verdicts = pd.DataFrame(columns).sort_values(["entry", "place"])
    ends = verdicts.groupby("entry").agg(
        low=("number", "min"), high=("number", "max"), least=("code", "min"), most=("code", "max"), at=("at", "first")
    )  # fmt: skip
    ends["apart"] = ends["least"] * ends["most"] < 0 if opposed else ends["most"] > ends["least"]
    unknown = verdicts["number"].isna().groupby(verdicts["entry"]).any()  # labels among numbers
    ends["closeness"] = (ends["low"] - ends["high"]).mask(unknown)
    listed = ends.sort_values(["apart", "closeness"], ascending=[False, True])[:MOST_LISTED]
    shown = verdicts[verdicts["entry"].isin(listed.index)]
    said = defaultdict(list)
    for entry, place, value in zip(
        shown["entry"], shown["place"], _values(rows.iloc[shown["at"]]), strict=True
    ):
        said[entry].append((place, value))
    return ListedVerdicts(
        total=len(ends),
        **_answers(rows.iloc[listed["at"]]),
        names=names,
        said=[said[entry] for entry in listed.index],
        apart=listed["apart"].tolist(),
    )


def _values(rows: DataFrame) -> list[Value]:
    """The value of each scored verdict."""
    verdicts = zip(rows["kind"], rows["label"], rows["value"].tolist(), strict=True)
    return [
        str(label) if kind == "category" else value == 1 if kind == "bool" else plain_number(value)
        for kind, label, value in verdicts
    ]


MOST_LISTED_PAIRS = 20_000  # most answers listed per judge
MOST_UNROUNDED = 11  # most different numbers; if there are more, they are rounded to whole numbers
ABOUT = "~"  # prefix of a number that stands for all values rounded to it


class Paired(Listed, frozen=True):
    """A judge's and people's values for the same answers."""

    judge: list[Value]
    people: list[Value]
    differences: list[float]

    @property
    def numeric(self) -> bool:
        return not any(isinstance(value, str | bool) for value in (*self.judge, *self.people))

    @property
    def rounded(self) -> bool:
        """Whether there are so many different numbers that tables round them."""
        return self.numeric and len({*self.judge, *self.people}) > MOST_UNROUNDED

    def places(self, judge: str = "", people: str = "") -> list[int]:
        """Indices of the entries with these values, given as `value_key` (exact or rounded); '' is any value."""
        both = enumerate(zip(self.judge, self.people, strict=True))
        return [place for place, (a, b) in both if matches_key(judge, a) and matches_key(people, b)]

    def counts(self) -> Counter[tuple[Value, Value]]:
        """How many answers have each pair of values."""
        return Counter(zip(self.judge, self.people, strict=True))


def value_key(value: Value, *, rounded: bool = False) -> str:
    """A value as it appears in a URL; `rounded`: the key of all values that round to the same whole number."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return f"{ABOUT}{math.floor(value + 0.5)}" if rounded else significant(value, 6)


def matches_key(key: str, value: Value) -> bool:
    """Whether a value has this key; '' matches any."""
    if not key or key == value_key(value):
        return True
    return key.startswith(ABOUT) and not isinstance(value, str) and key == value_key(value, rounded=True)


def paired_under(
    judgements: DataFrame, metric: ScaledMetric, most: int = MOST_LISTED_PAIRS
) -> dict[str, Paired]:
    """By name, the pairs of each judge, rule program and script of a metric that has answers in common with people."""
    mine = judgements[(judgements["metric"] == metric.name).to_numpy()]
    if not of_people(mine).any():
        return {}
    verdicts = verdicts_under(mine, metric)
    pairs = {name: _paired(verdicts, rows, most) for name, rows in verdicts.authors.items()}
    return {name: paired for name, paired in pairs.items() if len(paired)}


def _paired(verdicts: Verdicts, judged: DataFrame, most: int) -> Paired:
    rows, people = on_both(judged, verdicts.value)
    shared = shared_values(rows, people, verdicts)
    differs: Floats = np.abs(shared.a - shared.b)
    if shared.level == "nominal":
        differs = (shared.said[0] != shared.said[1]).astype(np.float64)
    order = np.argsort(-differs, kind="stable")[:most]
    of_judge, of_others = (_said(said[order], shared.labels, shared.coded) for said in shared.said)
    return Paired(
        total=int(differs.size),
        **_answers(shared.rows.take(order)),
        judge=of_judge,
        people=of_others,
        differences=differs[order].tolist(),
    )


def _said(said: Floats, labels: list[str | float], coded: bool) -> list[Value]:
    return [labels[int(code)] for code in said] if coded else said.tolist()
