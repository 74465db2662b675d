"""Works out the record of a gallery metric from the verdicts of a judge and of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from judging.core.gallery.record import Record
from judging.core.licensing import coded, judged_as, places_of
from judging.core.statistics.licence import licence_figures
from judging.core.values import Value

FEWEST_FOR_RATES = 40
"""Labelled answers with a verdict of the judge; a record with fewer has no rates."""


class Pair(NamedTuple):
    """Two verdicts on an answer, the judge's None if it gave none. `unit`: the row that the answer belongs to."""

    judge: Value | None
    people: Value
    unit: str


def measured(record: Record, gives: str, pairs: Sequence[Pair]) -> Record:
    """The record with the counts of these verdicts, and with the rates if they are enough and no self-check."""
    read = [(pair.judge, pair.people, pair.unit) for pair in pairs if pair.judge is not None]
    judge, people = [verdict for verdict, _other, _unit in read], [verdict for _own, verdict, _unit in read]
    places = places_of(judge, people)
    codes = coded(judge, places), coded(people, places)
    equal = sum(own == other for own, other in zip(*codes, strict=True))
    counted = msgspec.structs.replace(record, n=len(read), unread=len(pairs) - len(read), equal=equal)
    if counted.is_self_check or counted.n < FEWEST_FOR_RATES:
        return counted
    return _with_rates(counted, gives, codes, [unit for _own, _other, unit in read])


def _with_rates(
    record: Record, gives: str, codes: tuple[list[float], list[float]], units: Sequence[str]
) -> Record:
    rows = np.unique(list(units), return_inverse=True)[1].astype(np.int64)
    judge, people = (np.array(column, dtype=np.float64) for column in codes)
    figures = licence_figures(judge, people, rows, judged_as(gives))
    rates = {"agreement": figures.agreement, "tpr": figures.positive, "tnr": figures.negative}
    columns: dict[str, float | None] = {}
    for name, rate in rates.items():
        if rate is not None:
            columns |= {name: rate.rate, f"{name}_low": rate.low, f"{name}_high": rate.high}
    return msgspec.structs.replace(record, kappa=figures.kappa, **columns)
