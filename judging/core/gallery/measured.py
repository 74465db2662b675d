"""Works out the record of a gallery metric from the verdicts of a judge and of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from judging.core.checklists import Met
from judging.core.gallery.record import Record
from judging.core.licensing import coded, judged_as, places_of
from judging.core.statistics.licence import licence_figures
from judging.core.values import Value

Said = Value | Met
"""A verdict on an answer; of a checklist, those on its criteria."""
FEWEST_FOR_RATES = 40
"""Labelled answers with a verdict of the judge; a record with fewer has no rates."""


class Pair(NamedTuple):
    """Two verdicts on an answer, the judge's None if it gave none. `unit`: the row that the answer belongs to."""

    judge: Said | None
    people: Said
    unit: str


def measured(record: Record, gives: str, pairs: Sequence[Pair]) -> Record:
    """The record with the counts of these verdicts, and with the rates if they are enough and no self-check."""
    verdicts = [verdict for pair in pairs for verdict in _single(pair)]
    read = [(own, people, unit) for own, people, unit in verdicts if own is not None]
    judge, people = [verdict for verdict, _other, _unit in read], [verdict for _own, verdict, _unit in read]
    places = places_of(judge, people)
    codes = coded(judge, places), coded(people, places)
    equal = sum(own == other for own, other in zip(*codes, strict=True))
    counted = msgspec.structs.replace(record, n=len(read), unread=len(verdicts) - len(read), equal=equal)
    if counted.is_self_check or sum(pair.judge is not None for pair in pairs) < FEWEST_FOR_RATES:
        return counted
    return _with_rates(counted, gives, codes, [unit for _own, _other, unit in read])


def _single(pair: Pair) -> Iterator[tuple[Value | None, Value, str]]:
    """The verdicts that are compared: of a checklist, each that people gave on a criterion."""
    judge, people, unit = pair
    if not isinstance(people, Mapping):
        yield (None if isinstance(judge, Mapping) else judge), people, unit
        return
    met = judge if isinstance(judge, Mapping) else {}
    for criterion, verdict in people.items():
        yield met.get(criterion), verdict, unit


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
