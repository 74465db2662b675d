"""Builds the report of a run, shared by the page, the command line and the API: its cells (one metric for one
candidate), the sections of the other modules, and breakdowns by a field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED, UNSETTLED

from .agreement import rater_agreement
from .checklists import cut
from .corrected import corrected_scores
from .corrected_pairs import corrected_pairs
from .document import (
    Breakdown,
    CategoryShare,
    Cell,
    Deviation,
    OtherCategories,
    Pair,
    Raters,
    Report,
    ValueAgreement,
    VarianceShares,
)
from .frame import KINDS, REFERENCE, STATES, Kind, ScaledMetric, of_kind, ordered, rated_candidates
from .intervals import Ends
from .judges import (
    agreements_with_people,
    judge_agreements,
    judge_repeats,
    length_effects,
    order_effects,
    scale_ends,
)
from .means import (
    Estimate,
    all_pass_at_k,
    apart,
    benjamini_hochberg,
    best_at_k,
    estimate_mean,
    estimate_rate,
    item_means,
    item_units,
    mean_if_all_got,
    mean_of_items,
    metric_pairs,
    pass_at_k,
    ranked,
    sizes_shown,
    variance_components,
    worst_at_k,
)
from .numeric import LEVEL, POWER, BinCount, Bins, Draws, Floats, Ints, choose_bins, histogram, quiet, same
from .permutation import slice_p_values
from .preference import side_by_side
from .verdicts import Verdicts, combined_per_item, counted, has_single_scores, of_people, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Cells = dict[str, dict[str, Cell]]
MOST_CATEGORIES = 30
HALF = 0.5
FEW = 30  # below this many independent units, the report says so


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """The scale shared by all candidates of one metric.

    `kind`: what the mean is over: numbers if any value is one, otherwise bools, otherwise categories; None without
    values. `low`, `high`: the declared scale (0…1 for bools); `lowest`, `highest`: the scale extended to the observed
    scores.
    """

    metric: ScaledMetric
    kind: Kind | None
    low: float | None = None
    high: float | None = None
    lowest: float | None = None
    highest: float | None = None
    bins: Bins | None = None

    @property
    def counts_labels(self) -> bool:
        """Whether labels have values, so that a mean exists."""
        return self.kind == "category" and self.low is not None

    @property
    def has_mean(self) -> bool:
        return self.kind != "category" or self.counts_labels

    @property
    def ends(self) -> Ends | None:
        """The scale within which every mean lies; None if none is declared."""
        if self.lowest is None or self.highest is None or self.lowest >= self.highest:
            return None
        return self.lowest, self.highest

    @property
    def width(self) -> float | None:
        return None if self.ends is None else self.ends[1] - self.ends[0]

    @property
    def threshold(self) -> float | None:
        """The lowest score with which a response passes."""
        if self.kind == "bool":
            return 1.0
        return self.high if self.metric.pass_threshold is None else self.metric.pass_threshold


def scale_of(judgements: DataFrame, metric: ScaledMetric) -> Scale:
    """The scale of the metric that these judgements belong to."""
    kind = next((kind for kind in KINDS if (judgements["kind"] == kind).any()), None)
    if kind == "category":
        return _label_scale(judgements, metric)
    low, high = (0.0, 1.0) if kind == "bool" else (metric.low, metric.high)
    scores = of_kind(judgements, kind)["value"].to_numpy()
    if not scores.size:
        return Scale(metric, kind, low, high, low, high)
    lowest = None if low is None else min(low, float(scores.min()), metric.least or low)
    highest = None if high is None else max(high, float(scores.max()))
    return Scale(metric, kind, low, high, lowest, highest, choose_bins(scores, low, high))


def _label_scale(judgements: DataFrame, metric: ScaledMetric) -> Scale:
    """The scale of the labels' values, if every label that occurs has one."""
    values = metric.label_values or {}
    if not values or not set(of_kind(judgements, "category")["label"]) <= set(values):
        return Scale(metric, "category")
    low, high = min(values.values()), max(values.values())
    return Scale(metric, "category", low, high, low, high)


def with_label_values(mine: DataFrame, scale: Scale) -> DataFrame:
    """The rows with their labels' values as numbers, where the scale has them."""
    values = scale.metric.label_values
    if not scale.counts_labels or values is None:
        return mine
    numbers = mine["label"].astype(object).map(values).astype(np.float64)
    return mine.assign(value=mine["value"].where(mine["kind"] != "category", numbers))


def metric_cells(
    mine: DataFrame, scale: Scale, names: Sequence[str], *, clustered: bool
) -> tuple[dict[str, Cell], dict[str, Series[float]]]:
    """Each candidate's cell under one metric and its items' means, from one row per answer."""
    mine = with_label_values(mine, scale)
    by_candidate: Mapping[str, DataFrame] = dict(iter(mine.groupby("candidate", observed=True)))  # type: ignore[arg-type]
    cells, means = {}, {}
    for name in names:
        cell = by_candidate.get(name, mine.iloc[:0])
        means[name] = item_means(of_kind(cell, scale.kind))
        cells[name] = _cell(cell, np.asarray(means[name], dtype=np.float64), scale, clustered)
    return cells, means


def _cell(rows: DataFrame, means: Floats, scale: Scale, clustered: bool) -> Cell:
    """The figures of one metric for one candidate; `means`: of its items with a value of the scale's kind."""
    scored = of_kind(rows, scale.kind)
    cell = _counts_and_mean(rows, _main(means, item_units(scored), scale), scale)
    cell["off_scale"] = _off_scale(scored, scale)
    cell["top_share"] = _top_share(scored, scale)
    cell["distribution"] = _distribution(scored, scale)
    _add_rate(cell, rows, scale)
    _add_categories(cell, rows)
    if means.size < len(scored) and scale.kind != "category":
        _add_repeats(cell, scored, scale)
    cell["notes"] = _notes(cell, means, clustered)
    if scale.metric.checklist:
        _cut(cell)
    return cell


def _cut(cell: Cell) -> None:
    """Cut a checklist's figures to 0…1, after they were computed of uncut values."""
    for name in ("mean", "ci_low", "ci_high", "low_bound", "high_bound"):
        cell[name] = cut(cell[name])


def _main(means: Floats, units: Ints, scale: Scale) -> Estimate:
    if not scale.has_mean:
        return Estimate(None, None, None, None, means.size, np.unique(units).size)
    return estimate_mean(means, units, scale.ends)


def _counts_and_mean(rows: DataFrame, main: Estimate, scale: Scale) -> Cell:
    """Counts, mean and bounds; the other fields are left empty."""
    counts, kinds = _counts(rows["state"]), _counts(rows["kind"])
    states = {state: int(counts.get(state, 0)) for state in STATES}
    asked_for = len(rows) - states[NO_SCORE]
    low = high = main.mean
    if asked_for > states[SCORED] and scale.has_mean:
        low, high = _bounds(rows, scale)
    return Cell(
        kind=scale.kind,
        kinds={kind: int(kinds.get(kind, 0)) for kind in KINDS},
        mean=main.mean,
        ci_low=main.low,
        ci_high=main.high,
        se=main.se,
        items=main.items,
        clusters=main.clusters,
        responses=len(rows),
        asked=asked_for,
        scored=states[SCORED],
        no_score=states[NO_SCORE],
        unparsed=states[UNPARSED],
        unsettled=states[UNSETTLED],
        errors=states[ERROR],
        not_run=states[NOT_RUN],
        coverage=(states[SCORED] + states[UNSETTLED]) / asked_for if asked_for else None,
        low_bound=low,
        high_bound=high,
        top_share=None,
        off_scale=0,
        distribution=[],
        notes=[],
    )


def _counts(column: Series[Any]) -> dict[str, int]:
    """How often each category occurs."""
    counts = np.bincount(column.cat.codes.to_numpy() + 1, minlength=len(column.cat.categories) + 1)[1:]
    return dict(zip(column.cat.categories, counts.tolist(), strict=True))


def _bounds(rows: DataFrame, scale: Scale) -> tuple[float | None, float | None]:
    """The mean if all unscored responses had got the lowest, or the highest, score; None if that is unknown."""
    unscored = ~rows["state"].isin([SCORED, NO_SCORE])
    counted = rows[unscored | (rows["kind"] == scale.kind)]
    low, high = (
        None if end is None else mean_if_all_got(counted, end) for end in (scale.lowest, scale.highest)
    )
    return low, high


def _distribution(scored: DataFrame, scale: Scale) -> list[BinCount] | dict[str, int]:
    """Bins of numbers; of bools and labels how many responses have each, a combined bool from one half on as true."""
    if scale.kind == "category":
        counts = [(-count, label) for label, count in _counts(scored["label"]).items() if count]
        return {label: -count for count, label in sorted(counts)}
    if scale.kind == "bool":
        passed = int((scored["value"] >= HALF).sum())
        return {"true": passed, "false": len(scored) - passed}
    return histogram(scored["value"].to_numpy(), scale.bins) if scale.bins else []


def _off_scale(scored: DataFrame, scale: Scale) -> int:
    if scale.metric.checklist:
        return 0
    scores = scored["value"].to_numpy()
    below = 0 if scale.low is None else np.sum(scores < scale.low)
    above = 0 if scale.high is None else np.sum(scores > scale.high)
    return int(below + above)


def _top_share(scored: DataFrame, scale: Scale) -> float | None:
    if scale.high is None or scored.empty:
        return None
    at_top = item_means(scored.assign(value=scored["value"] >= scale.high))
    return mean_of_items(np.asarray(at_top, dtype=np.float64))


def _add_rate(cell: Cell, rows: DataFrame, scale: Scale) -> None:
    """Add the rate of true values if there are bools; if they are the main kind, its interval replaces the cell's."""
    if scale.kind != "bool" and not cell["kinds"]["bool"]:
        return
    rate = estimate_rate(of_kind(rows, "bool"))
    cell["rate"], cell["rate_ci_low"], cell["rate_ci_high"] = rate.rate, rate.low, rate.high
    if scale.kind == "bool":
        cell["ci_low"], cell["ci_high"] = rate.low, rate.high


def _add_categories(cell: Cell, rows: DataFrame) -> None:
    """Add the most frequent labels, by frequency and then name, and the number of the rest."""
    if not cell["kinds"]["category"]:
        return
    mine = of_kind(rows, "category")[["row", "unit", "label"]]
    counts = mine["label"].value_counts()
    present = sorted(((-count, str(label)) for label, count in counts[counts > 0].items()))
    cell["categories"] = {}
    for _, label in present[:MOST_CATEGORIES]:
        rate = estimate_rate(mine.assign(value=mine["label"] == label))
        share = CategoryShare(count=rate.count, share=rate.rate, ci_low=rate.low, ci_high=rate.high)
        cell["categories"][label] = share
    if rest := present[MOST_CATEGORIES:]:
        cell["other_categories"] = OtherCategories(labels=len(rest), count=-sum(count for count, _ in rest))


def _add_repeats(cell: Cell, scored: DataFrame, scale: Scale) -> None:
    """Add the figures that need several responses per item."""
    responses = ranked(scored)
    sizes = sizes_shown(int(responses.sizes.max()))
    best = {str(k): best_at_k(responses, k) for k in sizes}
    cell["best_at_k"] = {k: value for k, (value, _) in best.items()}
    cell["worst_at_k"] = {str(k): worst_at_k(responses, k)[0] for k in sizes}
    cell["at_k_items"] = {k: count for k, (_, count) in best.items()}
    threshold = scale.threshold
    if threshold is not None:
        cell["pass_at_k"] = {str(k): pass_at_k(responses, k, threshold)[0] for k in sizes}
        cell["all_pass_at_k"] = {str(k): all_pass_at_k(responses, k, threshold)[0] for k in sizes}
        cell["pass_threshold"] = threshold
    variance = variance_components(scored)
    items = int(responses.items[-1]) + 1
    each = responses.items.size / items
    cell["variance"] = VarianceShares(
        between=variance.between,
        within=variance.within,
        share_between=variance.share_between,
        se_twice_items=variance.error_of_mean(2 * items, each),
        se_twice_responses=variance.error_of_mean(items, 2 * each),
    )


def _notes(cell: Cell, means: Floats, clustered: bool) -> list[str]:
    """What a reader must know before trusting the mean, as codes from `document.NOTES`."""
    units = cell["clusters"]
    two = units == 2 and cell["kind"] == "number"  # rates have an interval
    few = 1 < units < FEW and not two
    reasons = {
        "nothing_scored": cell["scored"] == 0,
        "one_unit": units == 1,
        "two_units": two,
        "few_items": few and not clustered,
        "few_clusters": few and clustered,
        "no_variation": units > 1 and cell["mean"] is not None and same(means),
        "mixed_kinds": sum(count > 0 for count in cell["kinds"].values()) > 1,
        "off_scale": cell["off_scale"] > 0,
    }
    return [code for code, holds in reasons.items() if holds]


def report(
    judgements: DataFrame,
    metrics: Sequence[ScaledMetric],
    *,
    rows: int | None = None,
    features: DataFrame | None = None,
) -> Report:
    """Compute the report from a table of judgements (see `frame`); `document.Report` describes the result.

    `metrics`: the metrics to report, with their scales, in this order. `rows`: how many rows the run covers; defaults
    to those with a judgement. `features`: of the answers, from `judges.answer_features`. Every candidate has a cell
    under every metric, with zeros and None if it has no judgement. If nothing is scored, every figure is None. One or
    two items (or clusters) have a mean without interval (a rate has one). If all values are equal, the standard error
    is 0 and `notes` says so. The result does not depend on the order of the judgements. Raises ValueError as
    `frame.ordered` does.
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
        checklists=[],
        **verdicts,  # type: ignore[typeddict-item]
    )
    return document


def _cells_and_pairs(
    frame: DataFrame, metrics: Sequence[ScaledMetric], units: Series[int]
) -> tuple[Cells, dict[str, list[Pair]]]:
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    names = rated_candidates(frame)
    clustered = bool(frame["cluster"].notna().any())
    cells: Cells = {name: {} for name in names}
    pairs: dict[str, list[Pair]] = {}
    for metric in metrics:
        mine = counted(frame, metric)
        scale = scale_of(mine, metric)
        by_candidate, means = metric_cells(mine, scale, names, clustered=clustered)
        for name in names:
            cells[name][metric.name] = by_candidate[name]
        scored = [name for name in names if name != REFERENCE or means[name].size]
        table = pd.DataFrame({name: means[name].reindex(units.index) for name in scored}, index=units.index)
        compared = scale.kind != "category"
        pairs[metric.name] = metric_pairs(table, units, metric, scale.width) if compared else []
    return cells, pairs


def people_cells(frame: DataFrame, metrics: Sequence[ScaledMetric]) -> Cells:
    """Cells of people's values, for the candidates and metrics that people rated."""
    people = frame[of_people(frame)]
    clustered = bool(frame["cluster"].notna().any())
    cells: Cells = {}
    for metric in metrics:
        mine = combined_per_item(people[(people["metric"] == metric.name).to_numpy()])
        names = [str(name) for name in mine["candidate"].cat.remove_unused_categories().cat.categories]
        by_candidate, _means = metric_cells(mine, scale_of(mine, metric), names, clustered=clustered)
        for name in names:
            cells.setdefault(name, {})[metric.name] = by_candidate[name]
    return cells


def _verdict_figures(
    frame: DataFrame, metrics: Sequence[ScaledMetric], features: DataFrame | None
) -> dict[str, Any]:
    """The sections about individual verdicts and their authors, in the order of `metrics`."""
    draws = Draws()
    names = ("side_by_side", "judges", "repeats", "order", "length", "scale_ends", "raters", "corrected")
    sections: dict[str, list[Any]] = {name: [] for name in (*names, "corrected_pairs")}
    for metric in metrics:
        mine = frame[(frame["metric"] == metric.name).to_numpy()]
        sections["scale_ends"] += scale_ends(mine, metric)
        if features is None and has_single_scores(mine, metric):
            continue
        verdicts = verdicts_under(mine, metric)
        sections["side_by_side"] += side_by_side(verdicts, features)
        sections["judges"] += judge_agreements(verdicts, draws)
        sections["repeats"] += judge_repeats(verdicts)
        sections["order"] += order_effects(verdicts)
        sections["length"] += length_effects(verdicts, features, draws)
        sections["raters"] += _raters(verdicts, draws)
        corrected = corrected_scores(verdicts)
        sections["corrected"] += corrected
        sections["corrected_pairs"] += corrected_pairs(verdicts, corrected)
    return sections


def _raters(verdicts: Verdicts, draws: Draws) -> list[Raters]:
    raters = rater_agreement(verdicts, draws)
    return [raters] if raters else []


def raters_of(frame: DataFrame, metrics: Sequence[ScaledMetric]) -> list[Raters]:
    """The section `raters` of a report on an ordered table, in the order of `metrics`."""
    draws, figures = Draws(), list[Raters]()
    with quiet():
        for metric in metrics:
            verdicts = verdicts_under(frame[(frame["metric"] == metric.name).to_numpy()], metric)
            figures += _raters(verdicts, draws)
    return figures


MOST_VALUES = 50


def breakdown(
    frame: DataFrame,
    metrics: Sequence[ScaledMetric],
    field: str,
    values: Mapping[int, str],
) -> Breakdown:
    """Cells of an ordered table by the values of a field; `values` maps row → value, rows without one count as ''.

    The most frequent values are included, sorted by name. `p_bh` is corrected over all comparisons.
    """
    rows = frame["row"].to_numpy()
    numbers, place = np.unique(rows, return_inverse=True)
    value_of_row = np.array([values.get(int(row), "") for row in numbers], dtype=object)
    frequent = Counter(value_of_row.tolist()).most_common()
    shown = sorted(value for value, _ in frequent[:MOST_VALUES])
    frame = frame.assign(part=value_of_row[place] if len(rows) else value_of_row)
    cells: dict[str, dict[str, dict[str, Cell]]] = {value: {} for value in shown}
    deviations: list[Deviation] = []
    judges: list[ValueAgreement] = []
    for metric in metrics:
        mine = counted(frame, metric)
        judges += _agreements(frame, metric, shown, Draws())
        _add_cells(cells, mine, metric)
        deviations += _deviations(mine, metric, shown)
    corrected = benjamini_hochberg([deviation["p"] for deviation in deviations])
    for deviation, p in zip(deviations, corrected, strict=True):
        deviation["p_bh"] = p
    left_out = max(0, len(frequent) - MOST_VALUES)
    return Breakdown(field=field, values=cells, comparisons=deviations, judges=judges, left_out=left_out)


def _agreements(
    frame: DataFrame, metric: ScaledMetric, shown: Sequence[str], draws: Draws
) -> list[ValueAgreement]:
    """Each judge's agreement with people under one metric, per value."""
    mine = frame[(frame["metric"] == metric.name).to_numpy()]
    if of_people(mine).all() or not of_people(mine).any():
        return []
    with quiet():
        verdicts = verdicts_under(mine, metric)
        return [
            ValueAgreement(value=value, **agreement)
            for value in shown
            for agreement in agreements_with_people(verdicts.of_part(value), draws)
        ]


def _add_cells(cells: dict[str, dict[str, dict[str, Cell]]], mine: DataFrame, metric: ScaledMetric) -> None:
    scale = scale_of(mine, metric)
    names = rated_candidates(mine)
    clustered = bool(mine["cluster"].notna().any())
    parts = dict(iter(mine.groupby("part")))
    for value, by_candidate in cells.items():
        part = parts.get(value, mine.iloc[:0])
        by_name, _means = metric_cells(part, scale, names, clustered=clustered)
        for name, cell in by_name.items():
            by_candidate.setdefault(name, {})[metric.name] = cell


def _deviations(mine: DataFrame, metric: ScaledMetric, shown: Sequence[str]) -> list[Deviation]:
    """The deviations of every value and candidate; none if the metric has no mean."""
    scale = scale_of(mine, metric)
    if scale.kind in (None, "category"):
        return []
    deviations = []
    for name, cell in of_kind(mine, scale.kind).groupby("candidate", observed=True):
        means = np.asarray(item_means(cell), dtype=np.float64)
        units = item_units(cell)
        part = cell.drop_duplicates("row")["part"].to_numpy()
        slices = np.array([part == value for value in shown], dtype=np.bool_)
        p_values = slice_p_values(means, units, slices, Draws().seed)
        for value, here, p in zip(shown, slices, p_values, strict=True):
            inside, rest = (estimate_mean(means[side], units[side], scale.ends) for side in (here, ~here))
            gap = apart(inside, rest)
            deviations.append(
                Deviation(
                    value=value,
                    candidate=str(name),
                    metric=metric.name,
                    items=inside.items,
                    difference=gap.mean,
                    ci_low=gap.low,
                    ci_high=gap.high,
                    p=p,
                    p_bh=None,
                )
            )
    return deviations
