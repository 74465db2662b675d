"""Builds the report of a run, shared by the page, the command line and the API, and breakdowns by a field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .agreement import rater_agreement
from .bias import corrected_scores, length_effects, scale_ends
from .cells import metric_cells, metric_pairs, scale_of
from .document import Breakdown, Cell, Deviation, Pair, Report, ValueAgreement
from .frame import REFERENCE, Metric, of_kind, ordered, rated_candidates
from .judges import agreements_with_people, judge_agreements, judge_repeats, order_effects
from .means import Estimate, estimate_mean, item_means, item_units, welch
from .numeric import LEVEL, POWER, Draws, quiet
from .preference import side_by_side
from .verdicts import counted, of_people, one_each, says_one_thing_each, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Cells = dict[str, dict[str, Cell]]


def report(
    judgements: DataFrame,
    metrics: Sequence[Metric],
    *,
    rows: int | None = None,
    features: DataFrame | None = None,
) -> Report:
    """Compute the report from a table of judgements (see `frame`); `document.Report` describes the result.

    `metrics`: the metrics to report, with their scales, in this order. `rows`: how many rows the run covers; defaults
    to those with a judgement. `features`: of the answers, from `bias.answer_features`. Every candidate has a cell under
    every metric, with zeros and None if it has no judgement. If nothing is scored, every figure is None. A single item
    (or cluster) has a mean without standard error or interval (a rate has Wilson's). If all values are equal, the
    standard error is 0, the interval has no width and `notes` says so. The result does not depend on the order of the
    judgements. Raises ValueError as `frame.ordered` does.
    """
    frame = ordered(judgements)
    units = frame.drop_duplicates("row").set_index("row")["unit"].sort_index()
    cells, pairs = _cells_and_pairs(frame, metrics, units)
    with quiet():
        verdicts = _verdict_figures(frame, metrics, features)
    document: Report = Report(
        rows=len(units) if rows is None else rows,
        level=LEVEL,
        power=POWER,
        seed=Draws().seed,
        candidates=cells,
        people_candidates=people_cells(frame, metrics),
        pairs=[pair for name in sorted(pairs) for pair in pairs[name]],
        **verdicts,  # type: ignore[typeddict-item]
    )
    return document


def _cells_and_pairs(
    frame: DataFrame, metrics: Sequence[Metric], units: Series[int]
) -> tuple[Cells, dict[str, list[Pair]]]:
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    names = rated_candidates(frame)
    clustered = bool(frame["cluster"].notna().any())
    cells: Cells = {name: {} for name in names}
    pairs: dict[str, list[Pair]] = {}
    for metric in metrics:
        mine = counted(frame, metric)
        scale = scale_of(mine, metric)
        found, means = metric_cells(mine, scale, names, clustered=clustered)
        for name in names:
            cells[name][metric.name] = found[name]
        scored = [name for name in names if name != REFERENCE or means[name].size]
        table = pd.DataFrame({name: means[name].reindex(units.index) for name in scored}, index=units.index)
        compared = scale.kind != "category"
        pairs[metric.name] = metric_pairs(table, units, metric) if compared else []
    return cells, pairs


def people_cells(frame: DataFrame, metrics: Sequence[Metric]) -> Cells:
    """Cells of people's values, for the candidates and metrics that people rated."""
    people = frame[of_people(frame)]
    clustered = bool(frame["cluster"].notna().any())
    cells: Cells = {}
    for metric in metrics:
        mine = one_each(people[(people["metric"] == metric.name).to_numpy()])
        names = [str(name) for name in mine["candidate"].cat.remove_unused_categories().cat.categories]
        found, _means = metric_cells(mine, scale_of(mine, metric), names, clustered=clustered)
        for name in names:
            cells.setdefault(name, {})[metric.name] = found[name]
    return cells


def _verdict_figures(
    frame: DataFrame, metrics: Sequence[Metric], features: DataFrame | None
) -> dict[str, Any]:
    """The sections about individual verdicts and their authors, in the order of `metrics`."""
    draws = Draws()
    names = ("side_by_side", "judges", "repeats", "order", "length", "scale_ends", "raters", "corrected")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for metric in metrics:
        mine = frame[(frame["metric"] == metric.name).to_numpy()]
        found["scale_ends"] += scale_ends(mine, metric)
        if features is None and says_one_thing_each(mine, metric):
            continue
        verdicts = verdicts_under(mine, metric)
        found["side_by_side"] += side_by_side(verdicts, features)
        found["judges"] += judge_agreements(verdicts, draws)
        found["repeats"] += judge_repeats(verdicts)
        found["order"] += order_effects(verdicts)
        found["length"] += length_effects(verdicts, features, draws)
        raters = rater_agreement(verdicts, draws)
        found["raters"] += [raters] if raters else []
        found["corrected"] += corrected_scores(verdicts)
    return found


MOST_VALUES = 50


def breakdown(
    frame: DataFrame,
    metrics: Sequence[Metric],
    field: str,
    values: Mapping[int, str],
) -> Breakdown:
    """Cells of an ordered table by the values of a field; `values` maps row → value, rows without one count as ''.

    The most frequent values are included, sorted by name. `p_bh` is corrected over all comparisons.
    """
    rows = frame["row"].to_numpy()
    known, place = np.unique(rows, return_inverse=True)
    value_of_row = np.array([values.get(int(row), "") for row in known], dtype=object)
    frequent = Counter(value_of_row.tolist()).most_common()
    kept = sorted(value for value, _ in frequent[:MOST_VALUES])
    frame = frame.assign(part=value_of_row[place] if len(rows) else value_of_row)
    cells: dict[str, dict[str, dict[str, Cell]]] = {value: {} for value in kept}
    deviations: list[Deviation] = []
    judges: list[ValueAgreement] = []
    for metric in metrics:
        mine = counted(frame, metric)
        judges += _agreements(frame, metric, kept, Draws())
        _add_cells(cells, mine, metric)
        deviations += _deviations(mine, metric, kept)
    corrected = benjamini_hochberg([one["p"] for one in deviations])
    for one, p in zip(deviations, corrected, strict=True):
        one["p_bh"] = p
    left_out = max(0, len(frequent) - MOST_VALUES)
    return Breakdown(field=field, values=cells, comparisons=deviations, judges=judges, left_out=left_out)


def _agreements(frame: DataFrame, metric: Metric, kept: Sequence[str], draws: Draws) -> list[ValueAgreement]:
    """Each judge's agreement with people under one metric, per value."""
    mine = frame[(frame["metric"] == metric.name).to_numpy()]
    if of_people(mine).all() or not of_people(mine).any():
        return []
    with quiet():
        verdicts = verdicts_under(mine, metric)
        return [
            ValueAgreement(value=value, **one)
            for value in kept
            for one in agreements_with_people(verdicts.of_part(value), draws)
        ]


def _add_cells(cells: dict[str, dict[str, dict[str, Cell]]], mine: DataFrame, metric: Metric) -> None:
    scale = scale_of(mine, metric)
    names = rated_candidates(mine)
    clustered = bool(mine["cluster"].notna().any())
    parts = dict(iter(mine.groupby("part")))
    for value, by_candidate in cells.items():
        part = parts.get(value, mine.iloc[:0])
        found, _means = metric_cells(part, scale, names, clustered=clustered)
        for name, cell in found.items():
            by_candidate.setdefault(name, {})[metric.name] = cell


def _deviations(mine: DataFrame, metric: Metric, kept: Sequence[str]) -> list[Deviation]:
    """The deviations of every value and candidate; none if the metric has no mean."""
    scale = scale_of(mine, metric)
    if scale.kind in (None, "category"):
        return []
    found = []
    for name, cell in of_kind(mine, scale.kind).groupby("candidate", observed=True):
        means = np.asarray(item_means(cell), dtype=np.float64)
        units = item_units(cell)
        part = cell.drop_duplicates("row")["part"].to_numpy()
        for value in kept:
            here = part == value
            a, b = (estimate_mean(means[one], units[one]) for one in (here, ~here))
            found.append(_deviation(value, str(name), metric.name, a, b))
    return found


def _deviation(value: str, candidate: str, metric: str, a: Estimate, b: Estimate) -> Deviation:
    apart = welch(a, b)
    return Deviation(
        value=value,
        candidate=candidate,
        metric=metric,
        items=a.items,
        difference=apart.difference,
        ci_low=apart.low,
        ci_high=apart.high,
        p=apart.p,
        p_bh=None,
    )


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """The Benjamini–Hochberg step-up correction, in the order given: `min_{j >= i} min(1, m p_(j) / j)`.

    None stays None. Controls the false discovery rate for independent or positively dependent tests. Source: Benjamini
    and Hochberg, Journal of the Royal Statistical Society B 57(1), 1995.
    """
    tested = sorted(((p, place) for place, p in enumerate(p_values) if p is not None), reverse=True)
    corrected: list[float | None] = [None] * len(p_values)
    least = 1.0
    for done, (p, place) in enumerate(tested):
        least = min(least, p * len(tested) / (len(tested) - done))
        corrected[place] = least
    return corrected
