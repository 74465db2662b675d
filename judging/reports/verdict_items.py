"""The items behind figures of verdicts: computed on request for small runs, stored with the figures for large ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from evalsite.derived import Part
from judging.core.statistics.drill_down import (
    Comparisons,
    ListedVerdicts,
    answers_listed,
    comparisons_listed,
    first_sides_listed,
    judges_listed,
    orders_listed,
    ratings_listed,
    repeats_listed,
    scale_ends_listed,
)
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.verdicts import Verdicts, counted, verdicts_under
from judging.records.models import Run
from judging.reports import selectors
from judging.reports.frames import run_frame
from judging.reports.stored import ITEMS

if TYPE_CHECKING:
    from pandas import DataFrame

RATINGS, JUDGES, REPEATS, ORDERS, FIRST = "ratings", "judges", "repeats", "orders", "first"
LOWEST, HIGHEST, ANSWERS = "lowest", "highest", "answers"
_OF_VERDICTS, _OF_SCORES = (RATINGS, JUDGES, REPEATS, ORDERS, FIRST), (LOWEST, HIGHEST, ANSWERS)
KINDS = (*_OF_VERDICTS, *_OF_SCORES)
_PARTS = ("side_by_side", "judges", "raters", "repeats", "order")
"""Parts of the document with items to list."""


def comparisons(run: Run, metric: ScaledMetric, by: str, *, large: bool) -> Comparisons | None:
    """An author's verdicts on pairs of answers; None if they are not stored."""
    if large:
        return _load(run, _name(metric.name, "", by), _COMPARISONS)
    return comparisons_listed(_verdicts(run_frame(run), metric)).get(by)


def listed_verdicts(
    run: Run, metric: ScaledMetric, kind: str, of: str, *, large: bool
) -> ListedVerdicts | None:
    """Verdicts of one kind: of raters, of a judge, or on a candidate's answers; `of`: its name. None if they are not
    stored."""
    if large:
        return _load(run, _name(metric.name, kind, of), _VERDICTS)
    judgements = run_frame(run)
    if kind in _OF_SCORES:
        return _of_scores(judgements, metric, kind).get(of)
    return _of_verdicts(_verdicts(judgements, metric), kind).get(of)


def store(run: Run, judgements: DataFrame, document: Mapping[str, Any], revision: int) -> None:
    """Store the items behind a large run's figures."""
    items: dict[Part, bytes] = {}
    for metric in selectors.metrics_of(run).values():
        if any(entry["metric"] == metric.name for part in _PARTS for entry in document[part]):
            items |= _packed(_verdicts(judgements, metric))
        cells = [by_metric[metric.name] for by_metric in document["candidates"].values()]
        due = any(entry["metric"] == metric.name for entry in document["scale_ends"])
        due = due or any("at_k_items" in cell for cell in cells)
        for kind in _OF_SCORES if due else ():
            items |= _named(metric.name, kind, _of_scores(judgements, metric, kind))
    ITEMS.replace(run.pk, items, revision)


def _packed(verdicts: Verdicts) -> dict[Part, bytes]:
    metric, encode = verdicts.metric.name, msgspec.msgpack.encode
    packed = {
        _name(metric, "", by): encode(comparisons) for by, comparisons in comparisons_listed(verdicts).items()
    }
    for kind in _OF_VERDICTS:
        packed |= _named(metric, kind, _of_verdicts(verdicts, kind))
    return packed


def _named(metric: str, kind: str, listed: Mapping[str, ListedVerdicts]) -> dict[Part, bytes]:
    return {_name(metric, kind, of): msgspec.msgpack.encode(verdicts) for of, verdicts in listed.items()}


def _of_scores(judgements: DataFrame, metric: ScaledMetric, kind: str) -> dict[str, ListedVerdicts]:
    if kind == ANSWERS:
        return answers_listed(counted(judgements, metric), metric)
    mine = judgements[(judgements["metric"] == metric.name).to_numpy()]
    return scale_ends_listed(mine, metric, metric.low if kind == LOWEST else metric.high)


def _of_verdicts(verdicts: Verdicts, kind: str) -> dict[str, ListedVerdicts]:
    if kind in (RATINGS, JUDGES):
        verdict_list = ratings_listed(verdicts) if kind == RATINGS else judges_listed(verdicts)
        return {} if verdict_list is None else {"": verdict_list}
    listed = {REPEATS: repeats_listed, ORDERS: orders_listed, FIRST: first_sides_listed}
    return listed[kind](verdicts)


def _verdicts(judgements: DataFrame, metric: ScaledMetric) -> Verdicts:
    return verdicts_under(judgements[(judgements["metric"] == metric.name).to_numpy()], metric)


def _name(*parts: str) -> Part:
    return parts


Listed = TypeVar("Listed", Comparisons, ListedVerdicts)

_COMPARISONS = msgspec.msgpack.Decoder(Comparisons)
_VERDICTS = msgspec.msgpack.Decoder(ListedVerdicts)


def _load(run: Run, name: Part, decoder: msgspec.msgpack.Decoder[Listed]) -> Listed | None:
    stored = ITEMS.get(run.pk, *name)
    return None if stored is None else decoder.decode(stored.value)
