"""The document of a run's figures: the same for the page, the command line and the API."""

from collections.abc import Mapping
from typing import Any

from .cells import answers, cell_figures
from .columns import Columns, Table
from .comparisons import metric_pairs
from .document import Cell, Pair, Report
from .frame import Frame, frame
from .order import ordered


def report(
    columns: Columns,
    *,
    run: str,
    dataset: str,
    rows: int | None = None,
    cost: Mapping[str, Any] | None = None,
    level: float = 0.95,
    power: float = 0.8,
) -> Report:
    """The figures of `columns`, as strict JSON types (`document.Report` explains each).

    `rows`: how many rows the run covers, by default those that have a judgement. `level`: of the intervals;
    `power`: of the smallest difference and the items needed. Every candidate has a cell under every metric,
    with zeros and None where it has no judgement. With nothing scored every figure is None; with one item
    (or one cluster) there is a mean without error or interval (a rate has Wilson's); where all values are
    equal the error is 0 and the interval has no width, and `notes` says so. Columns with equal judgements
    give equal documents, whatever their order. ValueError as `order.ordered`.
    """
    table = ordered(columns)
    frames = [frame(table.columns, place) for place in range(len(columns.metrics))]
    return Report(
        run=run,
        dataset=dataset,
        rows=table.items if rows is None else rows,
        level=level,
        power=power,
        candidates=_candidates(table, frames, level),
        pairs=_pairs(table, frames, level, power),
        cost=dict(cost or {}),
    )


def _candidates(table: Table, frames: list[Frame], level: float) -> dict[str, dict[str, Cell]]:
    labels = table.columns.categories
    return {
        name: {
            shared.metric.name: cell_figures(answers(table, metric, candidate), shared, labels, level)
            for metric, shared in enumerate(frames)
        }
        for candidate, name in enumerate(table.columns.candidates)
    }


def _pairs(table: Table, frames: list[Frame], level: float, power: float) -> list[Pair]:
    by_name = sorted(range(len(frames)), key=lambda metric: frames[metric].metric.name)
    return [pair for metric in by_name for pair in metric_pairs(table, metric, frames[metric], level, power)]
