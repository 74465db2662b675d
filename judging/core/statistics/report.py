"""The document of a run's figures: the same for the page, the command line and the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cells import metric_cells, scale_of
from .correction import corrected_scores
from .document import Cell, Pair, Report
from .frame import REFERENCE, Metric, ordered
from .judge_bias import scale_ends
from .judges import judge_agreements, judge_repeats, order_effects
from .numeric import quiet
from .pairs import metric_pairs
from .raters import rater_agreement
from .resampling import Draws
from .side_by_side import side_by_side
from .style import length_effects
from .verdicts import counted, of_people, one_each, says_one_thing_each, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Cells = dict[str, dict[str, Cell]]


@dataclass(frozen=True, slots=True)
class Options:
    """`level`: of the intervals; `power`: of the smallest difference and the items needed; `seed`: of random draws."""

    level: float = 0.95
    power: float = 0.8
    seed: int = 0


def report(
    judgements: DataFrame,
    metrics: Sequence[Metric],
    *,
    run: str,
    dataset: str,
    rows: int | None = None,
    cost: Mapping[str, Any] | None = None,
    features: DataFrame | None = None,
    options: Options | None = None,
) -> Report:
    """The figures of a table of judgements (`frame`), as strict JSON types (`document.Report` explains each).

    `metrics`: those that figures are wanted of, with their scales, in this order. `rows`: how many rows the run
    covers, by default those that have a judgement. `features`: of the answers, from `style.answer_features`.
    Every candidate has a cell under every metric, with zeros and None where it has no judgement.
    With nothing scored every figure is None; with one item (or one cluster) there is a mean without error or interval
    (a rate has Wilson's); where all values are equal the error is 0 and the interval has no width, and `notes` says
    so. Equal judgements give equal documents, whatever their order. ValueError as `frame.ordered`.
    """
    options = options or Options()
    frame = ordered(judgements)
    units = frame.drop_duplicates("row").set_index("row")["unit"].sort_index()
    cells, pairs = _cells_and_pairs(frame, metrics, units, options)
    with quiet():
        verdicts = _verdict_figures(frame, metrics, features, options)
    document: Report = Report(
        run=run,
        dataset=dataset,
        rows=len(units) if rows is None else rows,
        level=options.level,
        power=options.power,
        seed=options.seed,
        candidates=cells,
        people_candidates=people_cells(frame, metrics, options.level),
        pairs=[pair for name in sorted(pairs) for pair in pairs[name]],
        **verdicts,  # type: ignore[typeddict-item]
        cost=dict(cost or {}),
    )
    return document


def _cells_and_pairs(
    frame: DataFrame, metrics: Sequence[Metric], units: Series[int], options: Options
) -> tuple[Cells, dict[str, list[Pair]]]:
    import pandas as pd

    names = [str(name) for name in frame["candidate"].cat.categories]
    clustered = bool(frame["cluster"].notna().any())
    cells: Cells = {name: {} for name in names}
    pairs: dict[str, list[Pair]] = {}
    for metric in metrics:
        mine = counted(frame, metric)
        scale = scale_of(mine, metric)
        found, means = metric_cells(mine, scale, names, clustered=clustered, level=options.level)
        for name in names:
            cells[name][metric.name] = found[name]
        scored = [name for name in names if name != REFERENCE or means[name].size]
        table = pd.DataFrame({name: means[name].reindex(units.index) for name in scored}, index=units.index)
        compared = scale.kind != "category"
        pairs[metric.name] = (
            metric_pairs(table, units, metric, options.level, options.power) if compared else []
        )
    return cells, pairs


def people_cells(frame: DataFrame, metrics: Sequence[Metric], level: float) -> Cells:
    """The cells of people's values, of the candidates and metrics on which people spoke."""
    people = frame[of_people(frame)]
    clustered = bool(frame["cluster"].notna().any())
    cells: Cells = {}
    for metric in metrics:
        mine = one_each(people[(people["metric"] == metric.name).to_numpy()])
        names = [str(name) for name in mine["candidate"].cat.remove_unused_categories().cat.categories]
        found, _means = metric_cells(mine, scale_of(mine, metric), names, clustered=clustered, level=level)
        for name in names:
            cells.setdefault(name, {})[metric.name] = found[name]
    return cells


def _verdict_figures(
    frame: DataFrame, metrics: Sequence[Metric], features: DataFrame | None, options: Options
) -> dict[str, Any]:
    """What is about verdicts and who gave them, in the order of metrics."""
    draws, level = Draws(options.seed), options.level
    names = ("side_by_side", "judges", "repeats", "order", "length", "scale_ends", "raters", "corrected")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for metric in metrics:
        mine = frame[(frame["metric"] == metric.name).to_numpy()]
        found["scale_ends"] += scale_ends(mine, metric)
        if features is None and says_one_thing_each(mine, metric):
            continue
        verdicts = verdicts_under(mine, metric)
        found["side_by_side"] += side_by_side(verdicts, level, features)
        found["judges"] += judge_agreements(verdicts, draws, level)
        found["repeats"] += judge_repeats(verdicts)
        found["order"] += order_effects(verdicts, level)
        found["length"] += length_effects(verdicts, features, draws, level)
        raters = rater_agreement(verdicts, draws, level)
        found["raters"] += [raters] if raters else []
        found["corrected"] += corrected_scores(verdicts, level)
    return found
