"""The items behind figures of verdicts: of a small run looked up when a page asks, of a large one kept with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from judging.core.statistics.frame import Metric
from judging.core.statistics.listed import (
    Comparisons,
    Voices,
    comparisons_listed,
    judges_listed,
    orders_listed,
    ratings_listed,
    repeats_listed,
)
from judging.core.statistics.verdicts import Verdicts, verdicts_under
from judging.reports import selectors
from judging.reports.frames import run_frame
from judging.reports.kept_parts import part_of, parts_replace
from judging.runs.models import Run

if TYPE_CHECKING:
    from pandas import DataFrame

RATINGS, JUDGES, REPEATS, ORDERS = "ratings", "judges", "repeats", "orders"
KINDS = (RATINGS, JUDGES, REPEATS, ORDERS)
PREFIX = "items:"
_PARTS = ("side_by_side", "judges", "raters", "repeats", "order")
"""Parts of the document that have such items."""


def comparisons(run: Run, metric: Metric, by: str, *, large: bool) -> Comparisons | None:
    """What an author said of each two answers; None where that is not known."""
    if large:
        return _kept(run, _name(metric.name, "", by), Comparisons)
    return comparisons_listed(_verdicts(run_frame(run), metric)).get(by)


def voices(run: Run, metric: Metric, kind: str, judge: str, *, large: bool) -> Voices | None:
    """What raters said, or a judge (again, or in both orders); None where that is not known."""
    if large:
        return _kept(run, _name(metric.name, kind, judge), Voices)
    return _voices(_verdicts(run_frame(run), metric), kind).get(judge)


def keep(run: Run, judgements: DataFrame, document: Mapping[str, Any], revision: int) -> None:
    """Those that a large run's figures count."""
    found: dict[str, bytes] = {}
    for metric in selectors.metrics_of(run).values():
        if any(one["metric"] == metric.name for part in _PARTS for one in document[part]):
            found |= _packed(_verdicts(judgements, metric))
    parts_replace(run, PREFIX, found, revision)


def _packed(verdicts: Verdicts) -> dict[str, bytes]:
    metric, encode = verdicts.metric.name, msgspec.msgpack.encode
    found = {_name(metric, "", by): encode(one) for by, one in comparisons_listed(verdicts).items()}
    for kind in KINDS:
        found |= {_name(metric, kind, who): encode(one) for who, one in _voices(verdicts, kind).items()}
    return found


def _voices(verdicts: Verdicts, kind: str) -> dict[str, Voices]:
    if kind in (RATINGS, JUDGES):
        found = ratings_listed(verdicts) if kind == RATINGS else judges_listed(verdicts)
        return {} if found is None else {"": found}
    return repeats_listed(verdicts) if kind == REPEATS else orders_listed(verdicts)


def _verdicts(judgements: DataFrame, metric: Metric) -> Verdicts:
    return verdicts_under(judgements[(judgements["metric"] == metric.name).to_numpy()], metric)


def _name(*parts: str) -> str:
    return json.dumps(parts)


Listed = TypeVar("Listed", Comparisons, Voices)


def _kept(run: Run, name: str, kind: type[Listed]) -> Listed | None:
    part = part_of(run, PREFIX + name)
    return None if part is None else msgspec.msgpack.decode(part.packed, type=kind)
