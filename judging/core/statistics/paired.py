"""The answers that a judge and people both gave a value, largest difference first."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from judging.core.values import Value

from .frame import Metric
from .judges import shared_values
from .numeric import Floats
from .verdicts import Verdicts, of_people, on_both, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame

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
        return [place for place, (a, b) in both if _means(judge, a) and _means(people, b)]

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


def _means(asked: str, value: Value) -> bool:
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
    values = [_values(said[order], shared.labels, shared.coded) for said in shared.said]
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


def _values(said: Floats, labels: list[str | float], coded: bool) -> list[Value]:
    return [labels[int(code)] for code in said] if coded else said.tolist()
