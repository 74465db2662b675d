"""How sure an order of candidates is: in how many resamplings of the rows each is first and each pair stands in this
order, the ranks that tests leave open, and the orders under single judges and repeats.

A share of resamplings is no probability: of two equal candidates one reaches 90 of 100 in every fifth study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .corrected import corrected_terms
from .correction import mean_of_terms
from .document import Rank, RankedPair, Ranking, SingleOrder
from .frame import ScaledMetric, of_kind, units_of
from .numeric import FEWEST_RESAMPLED, Floats, Ints
from .preference import comparisons_by, is_unsettled, rank_ranges
from .ranking import Document, comparisons_under, corrected_under, rank_pairs, ranked, ranked_by_wins
from .report import scale_of, with_label_values
from .verdicts import counted, steps_of, verdicts_under, with_own_values

if TYPE_CHECKING:
    from pandas import DataFrame

DRAWS = 2000
MANY_ROWS, DRAWS_OF_MANY = 100_000, 400
SEED = 0
EQUAL = 1e-9  # relative; means of the same scores differ by rounding
FIT_STEPS, EQUAL_STRENGTHS = 200, 1e-6  # of Bradley–Terry strengths, which are fitted step by step
_AT_ONCE = 4_000_000  # rows drawn together, which bounds the memory


@dataclass(slots=True)
class _Order:
    """A metric's candidates, best first, and how their order is resampled.

    `parts` (units, …): sums over the rows of each independent unit. `values`: from such sums over resampled units
    (draws, …) to what candidates are ordered by (draws, candidates), where values closer than `equal` are the same.
    `first` and `above` count draws.
    """

    entry: Ranking
    names: list[str]
    parts: Floats
    values: Callable[[Floats], Floats]
    equal: float
    first: Floats
    above: Floats

    @property
    def few_rows(self) -> bool:
        return int(self.parts.any(axis=1).sum()) < FEWEST_RESAMPLED


def rankings(judgements: DataFrame, metrics: Sequence[ScaledMetric], document: Document) -> list[Ranking]:
    """The rankings of all metrics with two candidates that can be ordered. `judgements`: a table as in `frame`;
    `document`: the report of the same judgements. The rows of all metrics are resampled together."""
    frame = judgements.assign(unit=units_of(judgements))
    units = int(frame["unit"].max()) + 1 if len(frame) else 0
    prepared = [_order(frame, metric, document, units) for metric in metrics]
    orders = [order for order in prepared if order is not None]
    resampled_orders = [order for order in orders if not order.few_rows]
    if resampled_orders and (draws := draws_for(units)):
        ends = np.cumsum([order.parts.shape[1] for order in resampled_orders])[:-1]
        for totals in resampled(np.hstack([order.parts for order in resampled_orders]), draws):
            for order, part in zip(resampled_orders, np.split(totals, ends, axis=1), strict=True):
                _count(order, order.values(part))
        for order in resampled_orders:
            _conclude(order, draws)
    return [order.entry for order in orders]


def _order(frame: DataFrame, metric: ScaledMetric, document: Document, units: int) -> _Order | None:
    mine = frame[(frame["metric"] == metric.name).to_numpy()]
    compared = comparisons_under(document, metric.name)
    if compared is not None:
        return _of_comparisons(mine, metric, compared, units)
    names = [name for name, cell in ranked(document, metric.name).items() if cell["mean"] is not None]
    if len(names) < 2:
        return None
    answers = counted(mine, metric)
    authors = answers["by"].dropna().unique()
    corrected = corrected_under(document, metric.name)
    judges = {score["judge"] for score in corrected.values()} or set(map(str, authors))
    differences = [_with_higher(pair) for pair in rank_pairs(document, metric.name)]
    entry = _entry(metric, judges.pop() if len(judges) == 1 else "combined", names, differences)
    entry["orders"] = list(_single_orders(mine, metric, names))
    entry["value"] = "corrected" if corrected else "raw"
    if any(score["source"] == "own" for score in corrected.values()):
        parts, values = _corrected_sums(mine, metric, entry["by"], names, units)
    else:  # a licence's test corrects all candidates alike: the order stays the judge's
        answers = counted(with_own_values(mine), metric) if corrected else answers
        parts, values = _sums(answers, metric, names, units), _means
    return _Order(entry, names, parts, values, EQUAL, *_no_draws(names))


def _entry(metric: ScaledMetric, by: str, names: Sequence[str], differences: Sequence[Any]) -> Ranking:
    ranges = rank_ranges(names, differences)
    ranks = {name: Rank(low=low, high=high) for name, (low, high) in ranges.items()}
    return Ranking(
        metric=metric.name,
        by=by,
        value="raw",
        draws=0,
        seed=SEED,
        first={},
        pairs=[],
        ranks=ranks,
        orders=[],
    )


def _no_draws(names: Sequence[str]) -> tuple[Floats, Floats]:
    return np.zeros(len(names)), np.zeros((len(names), len(names)))


def draws_for(units: int) -> int:
    """How often this many independent rows are resampled; 0 if they are too few."""
    if units < FEWEST_RESAMPLED:
        return 0
    return DRAWS if units <= MANY_ROWS else DRAWS_OF_MANY


def _with_higher(pair: Mapping[str, Any]) -> Any:
    difference = pair["difference"] or 0.0
    higher = pair["a"] if difference > 0 else pair["b"] if difference < 0 else None
    return {**pair, "higher": higher}


# --- resampling --------------------------------------------------------------------------------------------------


def resampled(parts: Floats, draws: int, seed: int = SEED) -> Iterator[Floats]:
    """Sums of `parts` (units, parts) over resampled units, in blocks of shape (some draws, parts).

    Each draw takes as many units as there are, with replacement. Source: Efron and Tibshirani, "An Introduction to the
    Bootstrap", 1993.
    """
    rng = np.random.default_rng(seed)
    units = len(parts)
    block = max(1, _AT_ONCE // units)
    for start in range(0, draws, block):
        drawn = rng.integers(units, size=(min(block, draws - start), units), dtype=np.int32)
        counts = np.array([np.bincount(draw, minlength=units) for draw in drawn], dtype=np.float64)
        yield counts @ parts


def _count(order: _Order, values: Floats) -> None:
    """Count in which of the draws each candidate is first (shared where several are) and each pair stands in this order
    (a tie counts half). A candidate without a value in a draw is last in it."""
    present = np.where(np.isnan(values), -np.inf, values)
    best = present.max(axis=1, keepdims=True)
    margin = order.equal * np.maximum(1.0, np.abs(best))
    at_top = (present >= best - margin) & np.isfinite(best)
    order.first += (at_top / np.maximum(at_top.sum(axis=1, keepdims=True), 1)).sum(axis=0)
    for a, b in combinations(range(len(order.names)), 2):
        with np.errstate(invalid="ignore"):
            apart = np.nan_to_num(present[:, a] - present[:, b])
        order.above[a, b] += np.where(np.abs(apart) <= margin[:, 0], 0.5, apart > 0).sum()


def _conclude(order: _Order, draws: int) -> None:
    names = order.names
    order.entry["draws"] = draws
    order.entry["first"] = {
        name: float(count / draws) for name, count in zip(names, order.first, strict=True)
    }
    order.entry["pairs"] = [
        RankedPair(a=names[a], b=names[b], share=float(order.above[a, b] / draws))
        for a, b in combinations(range(len(names)), 2)
    ]


# --- means -------------------------------------------------------------------------------------------------------


def _means(totals: Floats) -> Floats:
    """The candidates' means in each draw, NaN for one without a row: (draws, candidates)."""
    sums, counts = np.split(totals, 2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / counts, dtype=np.float64)


def _sums(answers: DataFrame, metric: ScaledMetric, names: Sequence[str], units: int) -> Floats:
    """For each independent unit the sums of the candidates' items' means, and their numbers: (units, 2 candidates)."""
    items = _item_means(answers, metric)
    items = items[items["candidate"].isin(names)]
    column = items["candidate"].astype(object).map({name: at for at, name in enumerate(names)})
    places = items["unit"].to_numpy(), column.to_numpy().astype(np.int64)
    sums, counts = np.zeros((units, len(names))), np.zeros((units, len(names)))
    np.add.at(sums, places, items["value"].to_numpy())
    np.add.at(counts, places, 1.0)
    return np.hstack([sums, counts])


def _corrected_sums(
    mine: DataFrame, metric: ScaledMetric, judge: str, names: Sequence[str], units: int
) -> tuple[Floats, Callable[[Floats], Floats]]:
    """For each independent unit the sums that the candidates' corrected scores consist of, (units, terms of all
    candidates), and what makes scores of them: each is corrected anew in each draw, with the judge's weight held."""
    terms = corrected_terms(verdicts_under(mine, metric), judge)
    parts = [np.zeros((units, terms[name][1].shape[1])) for name in names]
    for sums, name in zip(parts, names, strict=True):
        np.add.at(sums, terms[name][0], terms[name][1])
    ends = np.cumsum([sums.shape[1] for sums in parts])[:-1]

    def values(totals: Floats) -> Floats:
        return np.column_stack([mean_of_terms(part) for part in np.split(totals, ends, axis=1)])

    return np.hstack(parts), values


def _item_means(answers: DataFrame, metric: ScaledMetric) -> DataFrame:
    """The mean of each candidate's answers to a row: columns candidate, row, unit, value."""
    scale = scale_of(answers, metric)
    scored = of_kind(with_label_values(answers, scale), scale.kind)
    means = scored.groupby(["candidate", "row"], observed=True).agg({"value": "mean", "unit": "first"})
    return means.reset_index()


# --- comparisons -------------------------------------------------------------------------------------------------


def _of_comparisons(
    mine: DataFrame, metric: ScaledMetric, compared: Mapping[str, Any], units: int
) -> _Order | None:
    cells = ranked_by_wins(compared)
    names = list(cells)
    if len(names) < 2:
        return None
    authors = {name: each for name, each, _all in comparisons_by(verdicts_under(mine, metric))}
    rated = all(cell.get("rating") is not None for cell in cells.values())
    others = {name: each for name, each in authors.items() if name not in (compared["by"], "people")}
    entry = _entry(metric, compared["by"], names, compared["differences"])
    entry["orders"] = [
        SingleOrder(by=name, names=_by_wins(each, names, units)) for name, each in others.items()
    ]
    wins = _wins(authors[compared["by"]], names, units)
    values = partial(strengths_of, size=len(names), rated=rated)
    return _Order(entry, names, wins, values, EQUAL_STRENGTHS, *_no_draws(names))


def _wins(each: DataFrame, names: Sequence[str], units: int) -> Floats:
    """For each independent unit how often each candidate beat each other one, a tie or an unsettled pair as half:
    (units, candidates²)."""
    places = {name: place for place, name in enumerate(names)}
    a, b = (_places(each, side, places) for side in ("candidate", "other"))
    named = (a >= 0) & (b >= 0)
    won = np.where(is_unsettled(each), 0.5, (np.sign(steps_of(each)) + 1) / 2)[named]
    unit = each["unit"].to_numpy()[named]
    wins = np.zeros((units, len(names) ** 2))
    np.add.at(wins, (unit, a[named] * len(names) + b[named]), won)
    np.add.at(wins, (unit, b[named] * len(names) + a[named]), 1 - won)
    return wins


def _places(each: DataFrame, side: str, places: Mapping[str, int]) -> Ints:
    return each[side].astype(object).map(places).fillna(-1).to_numpy().astype(np.int64)


def strengths_of(wins: Floats, size: int, rated: bool) -> Floats:
    """What candidates are ordered by in each draw: the logarithm of their Bradley–Terry strength if they are `rated`,
    else their win rate; `wins` (draws, size²). Source of the fit: Hunter, "MM algorithms for generalized Bradley–Terry
    models", Annals of Statistics 32, 2004.
    """
    beaten = wins.reshape(-1, size, size)
    met = beaten + beaten.transpose(0, 2, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        if not rated:
            return np.asarray(beaten.sum(axis=2) / met.sum(axis=2), dtype=np.float64)
        strengths = np.ones((len(beaten), size))
        for _ in range(FIT_STEPS):
            together = strengths[:, :, None] + strengths[:, None, :]
            strengths = beaten.sum(axis=2) / np.where(met > 0, met / together, 0.0).sum(axis=2)
            strengths = np.clip(strengths / strengths.max(axis=1, keepdims=True), 1e-12, None)
        return np.log(strengths)


# --- the order under one judge or repeat -------------------------------------------------------------------------


def _single_orders(mine: DataFrame, metric: ScaledMetric, names: Sequence[str]) -> Iterator[SingleOrder]:
    """The orders of the means under each judge, if there are several, and in each of a judge's repeats."""
    judged = mine[((mine["source"] == "judge") & (mine["order"] != "swapped")).to_numpy()]
    judges = judged["by"].dropna().unique()
    for judge in sorted(map(str, judges)):
        own = judged[(judged["by"] == judge).to_numpy()]
        if len(judges) > 1:
            yield SingleOrder(by=judge, names=_by_means(own, metric, names))
        repeats = sorted(own["repeat"].unique().tolist())
        for repeat in repeats if len(repeats) > 1 else ():
            once = own[(own["repeat"] == repeat).to_numpy()]
            yield SingleOrder(by=f"{judge} #{repeat}", names=_by_means(once, metric, names))


def _by_means(rows: DataFrame, metric: ScaledMetric, names: Sequence[str]) -> list[str]:
    means = _item_means(rows, metric).groupby("candidate", observed=True)["value"].mean().to_dict()
    return sorted((name for name in names if name in means), key=lambda name: (-means[name], name))


def _by_wins(each: DataFrame, names: Sequence[str], units: int) -> list[str]:
    total = _wins(each, names, units).sum(axis=0, keepdims=True)
    (rates,) = strengths_of(total, len(names), rated=False)
    places = [place for place in range(len(names)) if np.isfinite(rates[place])]
    return [names[place] for place in sorted(places, key=lambda place: (-rates[place], names[place]))]
