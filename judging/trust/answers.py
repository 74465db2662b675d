"""People's and a judge's values on the answers of a test, by keys of rows that hold in every version of a data set."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.db.models import QuerySet

from datasets.core.kinds import TIE
from datasets.models import Row, Version
from datasets.versions.row_match import digests
from judging.core.statistics.frame import REFERENCE, ScaledMetric
from judging.core.statistics.judges import human_ceiling
from judging.core.statistics.ranking import COUNTED_FIRST
from judging.core.statistics.verdicts import STEPS, Verdicts, verdicts_under
from judging.core.values import UNSETTLED, Value
from judging.records.models import Run, RunMetric
from judging.reports import selectors
from judging.reports.frames import run_frame

if TYPE_CHECKING:
    from pandas import DataFrame

ONE, MAJORITY, ADJUDICATED = "one", "majority", "adjudicated"
TIERS = (ONE, MAJORITY, ADJUDICATED)
"""Where a person's value comes from, weakest first: one rater, several, or an adjudicator."""


class Answer(NamedTuple):
    """An answer, or two that were compared: key of the row, names and numbers."""

    row: str
    candidate: str
    response: int
    other: str
    other_response: int

    @classmethod
    def of(cls, label: Mapping[str, Any]) -> Answer:
        """The answer that a stored label belongs to."""
        return cls(*(label[name] for name in cls._fields))

    @classmethod
    def compared(cls, row: str, side: Side, other: Side) -> Answer:
        """Two answers in the order of `core.statistics.verdicts.oriented`."""
        first, second = sorted((side, other), key=lambda each: (each[0] == REFERENCE, *each))
        return cls(row, *first, *second)


Side = tuple[str, int]
"""A candidate's name and the number of its answer."""


def ids_by_answer(
    rows: QuerySet[Any], keys: Mapping[int, str], *, with_reference: bool = False
) -> dict[Answer, int]:
    """{answer: id} of judgements or items; `keys`: {line: key} of the rows that count. `with_reference`: judgements of
    a single answer compare it with the row's reference."""
    parts = ("pk", "row__line", *_SIDE_PARTS, *(f"other_{part}" for part in _SIDE_PARTS))
    ids: dict[Answer, int] = {}
    for pk, line, *sides in rows.values_list(*parts):
        if line not in keys:
            continue
        side, other = _side(*sides[:3]), _side(*sides[3:]) if sides[3] else None
        if other is None and with_reference:
            other = (REFERENCE, 1)
        key = keys[line]
        ids[Answer.compared(key, side, other) if other else Answer(key, *side, "", 0)] = pk
    return ids


_SIDE_PARTS = ("response__candidate__name", "response__candidate__version__number", "response__number")


def _side(name: str, version: int, number: int) -> Side:
    return selectors.shown_name(name, version), number


def says_the_same(verdict: Value, other: Value) -> bool:
    """Whether two verdicts are equal; comparisons by their direction."""
    if verdict in STEPS and other in STEPS:
        return bool(np.sign(STEPS[str(verdict)]) == np.sign(STEPS[str(other)]))
    if isinstance(verdict, str) or isinstance(other, str):
        return verdict == other
    return math.isclose(verdict, other, abs_tol=SAME)


SAME = 1e-9  # scores that differ by less are equal


class Label(NamedTuple):
    """People's value of an answer, and its tier."""

    value: Value
    tier: str


def row_keys(version: Version, *, by_id: bool | None = None) -> tuple[dict[int, str], bool]:
    """{line: key} of a version's valid rows, and whether they are keyed by `id`: where every row has another one, or
    as `by_id` says. Equal rows are numbered."""
    if version.sha256 and version.valid_rows <= MOST_KEPT:
        keys, of_id = _keys_of(version.pk, version.sha256, version.format, version.valid_rows, by_id)
        return dict(keys), of_id
    return _keys(version.pk, by_id)


MOST_KEPT = 50_000
"""Rows of a version whose keys a process keeps: about a hundred bytes each."""


@lru_cache(maxsize=4)
def _keys_of(
    pk: int, _sha256: str, _format: str, _valid_rows: int, by_id: bool | None
) -> tuple[dict[int, str], bool]:
    """A version's rows never change once its file was read."""
    return _keys(pk, by_id)


def _keys(pk: int, by_id: bool | None) -> tuple[dict[int, str], bool]:
    rows = Row.objects.filter(version=pk, valid=True).order_by("line").values_list("line", "raw")
    of_rows = {line: digests(raw, None) for line, raw in rows.iterator(500)}
    if by_id is None:
        ids = {digest.identity for digest in of_rows.values()}
        by_id = None not in ids and len(ids) == len(of_rows)
    keys: dict[int, str] = {}
    counts: dict[str, int] = {}
    for line, digest in of_rows.items():
        key = ((digest.identity if by_id else None) or digest.content).hex()
        counts[key] = counts.get(key, 0) + 1
        keys[line] = key if counts[key] == 1 else f"{key}.{counts[key]}"
    return keys, by_id


def verdicts_of(
    run: Run, run_metric: RunMetric, *, sealed: bool = True, lines: Collection[int] | None = None
) -> tuple[Verdicts, ScaledMetric]:
    """All verdicts of a run under one of its metrics, with people's, also those that are sealed unless told not to.
    `lines`: only on these rows."""
    metric = selectors.metrics_of(run)[run_metric.pk]
    frame = run_frame(run, with_sealed=sealed, lines=lines)
    return verdicts_under(frame[(frame["metric"] == metric.name).to_numpy()], metric), metric


def value_author(verdicts: Verdicts) -> str:
    """Whose verdicts are the metric's value: all judges together, a script, or the only judge; '' for nobody."""
    return next((name for name in (*COUNTED_FIRST, *verdicts.authors) if name in verdicts.authors), "")


def labels_of(verdicts: Verdicts, keys: Mapping[int, str]) -> dict[Answer, Label]:
    """People's values, by answer. Items on which they have no majority have none."""
    raters = verdicts.people[(verdicts.people["source"] == "rater").to_numpy()].groupby("item")["by"]
    several = {item for item, count in raters.nunique().items() if count > 1}
    labels = {}
    for answer, value, source, item in _rows(verdicts.value, keys):
        tier = ADJUDICATED if source == "adjudicator" else MAJORITY if item in several else ONE
        labels[answer] = Label(value, tier)
    return labels


class Ceiling(NamedTuple):
    """Each rater against the value of the others on the same `items`: the share of equal values, and kappa."""

    items: int
    exact: float | None
    kappa: float | None


def ceiling_of(run: Run, criterion: str, lines: Collection[int] | None = None) -> Ceiling | None:
    """How well people agree with each other, on these rows only if `lines` is given; None with one rater an item."""
    run_metric = run.metrics.filter(name=criterion).first()
    if run_metric is None:
        return None
    verdicts, _metric = verdicts_of(run, run_metric, lines=lines)
    rows = verdicts.value
    if lines is not None:
        rows = rows[rows["row"].isin(list(lines)).to_numpy()]
    others = human_ceiling(verdicts, rows)["others"] if len(rows) else None
    return Ceiling(others["items"], others["exact"], others["kappa_weighted"]) if others else None


def joint_ceiling(ceilings: Sequence[Ceiling]) -> Ceiling | None:
    """That of several draws: their means, each draw counting by its items; None without any."""
    if len(ceilings) < 2:
        return next(iter(ceilings), None)
    exact, kappa = (
        sum(value * each.items for each, value in known) / sum(each.items for each, _value in known)
        if (known := [(each, value) for each in ceilings if (value := getattr(each, name)) is not None])
        else None
        for name in ("exact", "kappa")
    )
    return Ceiling(sum(each.items for each in ceilings), exact, kappa)


def judge_values(verdicts: Verdicts, judge: str, keys: Mapping[int, str]) -> dict[Answer, Value]:
    """A judge's values, by answer."""
    return {answer: value for answer, value, _source, _item in _rows(verdicts.authors[judge], keys)}


def _rows(rows: DataFrame, keys: Mapping[int, str]) -> list[tuple[Answer, Value, str, int]]:
    """A pair on which a judge's two orders disagree counts as a tie."""
    unsettled = (rows["state"] == UNSETTLED).to_numpy()
    rows = rows[rows["kind"].notna().to_numpy() | unsettled]
    names = ("row", "candidate", "response", "other", "other_response", "kind", "value", "label", "state")
    columns = [rows[name].astype(object).tolist() for name in names]
    sources, items = rows["source"].astype(object).tolist(), rows["item"].tolist()
    valued = []
    for line, candidate, response, other, other_response, kind, number, label, state, source, item in zip(
        *columns, sources, items, strict=True
    ):
        if line not in keys or (kind == "bool" and number == 0.5):  # 0.5: as many say pass as fail
            continue
        named = isinstance(other, str)
        answer = Answer(
            keys[line], candidate, response, other if named else "", other_response if named else 0
        )
        value = TIE if state == UNSETTLED else _value(kind, number, label)
        valued.append((answer, value, source, item))
    return valued


def _value(kind: str, number: float, label: str | None) -> Value:
    if kind == "category":
        return str(label)
    return number > 0.5 if kind == "bool" else float(number)
