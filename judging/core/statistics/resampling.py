"""How sure an order of candidates is: in how many resamplings of the rows each is first and each pair stands in this
order, the ranks that tests leave open, and the orders under single judges and repeats.

A share of resamplings is no probability: of two equal candidates one reaches 90 of 100 in every fifth study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .document import Rank, RankedPair, Ranking, SingleOrder
from .frame import ScaledMetric, of_kind, units_of
from .numeric import FEWEST_RESAMPLED, Floats, Ints
from .preference import comparisons_by, is_unsettled, rank_ranges
from .ranking import Document, comparisons_under, rank_pairs, ranked, ranked_by_wins
from .report import scale_of, with_label_values
from .verdicts import counted, steps_of, verdicts_under

if TYPE_CHECKING:
    from pandas import DataFrame

DRAWS = 2000
MANY_ROWS, DRAWS_OF_MANY = 100_000, 400
SEED = 0
EQUAL = 1e-9  # relative; means of the same scores differ by rounding
FIT_STEPS, EQUAL_STRENGTHS = 200, 1e-6  # of Bradley–Terry strengths, which are fitted step by step
_AT_ONCE = 4_000_000  # rows drawn together, which bounds the memory


def rankings(judgements: DataFrame, metrics: Sequence[ScaledMetric], document: Document) -> list[Ranking]:
    """The rankings of all metrics with two candidates that can be ordered. `judgements`: a table as in `frame`;
    `document`: the report of the same judgements."""
    frame = judgements.assign(unit=units_of(judgements))
    entries = [_ranking(frame, metric, document) for metric in metrics]
    return [entry for entry in entries if entry is not None]


def _ranking(frame: DataFrame, metric: ScaledMetric, document: Document) -> Ranking | None:
    mine = frame[(frame["metric"] == metric.name).to_numpy()]
    compared = comparisons_under(document, metric.name)
    if compared is not None:
        return _of_comparisons(mine, metric, compared)
    names = [name for name, cell in ranked(document, metric.name).items() if cell["mean"] is not None]
    if len(names) < 2:
        return None
    answers = counted(mine, metric)
    units, sums, counts = _sums(answers, metric, names)
    draws = draws_for(units)
    first, pairs = _shares(names, _means(sums, counts, draws), EQUAL) if draws else ({}, [])
    ranges = rank_ranges(names, [_with_higher(pair) for pair in rank_pairs(document, metric.name)])
    author = answers["by"].dropna().unique()
    return Ranking(
        metric=metric.name,
        by=str(author[0]) if len(author) == 1 else "combined",
        draws=draws,
        seed=SEED,
        first=first,
        pairs=pairs,
        ranks={name: Rank(low=low, high=high) for name, (low, high) in ranges.items()},
        orders=list(_single_orders(mine, metric, names)),
    )


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
        size = min(block, draws - start)
        drawn = rng.integers(units, size=(size, units)) + units * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
        yield counts.astype(np.float64) @ parts


def _means(sums: Floats, counts: Floats, draws: int) -> Iterator[Floats]:
    """The candidates' means in each draw, NaN for one without a row: blocks of shape (some draws, candidates)."""
    many = sums.shape[1]
    for totals in resampled(np.hstack([sums, counts]), draws):
        with np.errstate(invalid="ignore", divide="ignore"):
            yield totals[:, :many] / totals[:, many:]


def _shares(
    names: Sequence[str], blocks: Iterator[Floats], equal: float
) -> tuple[dict[str, float], list[RankedPair]]:
    """In which share of the draws each candidate is first (shared where several are) and each pair stands in this
    order (a tie counts half)."""
    first, above = np.zeros(len(names)), np.zeros((len(names), len(names)))
    draws = 0
    for values in blocks:
        draws += len(values)
        present = np.where(np.isnan(values), -np.inf, values)
        best = present.max(axis=1, keepdims=True)
        margin = equal * np.maximum(1.0, np.abs(best))
        at_top = (present >= best - margin) & np.isfinite(best)
        first += (at_top / np.maximum(at_top.sum(axis=1, keepdims=True), 1)).sum(axis=0)
        for a, b in combinations(range(len(names)), 2):
            with np.errstate(invalid="ignore"):
                apart = np.nan_to_num(present[:, a] - present[:, b])
            ties = np.abs(apart) <= margin[:, 0]
            above[a, b] += np.where(ties, 0.5, apart > 0).sum()
    return (
        {name: float(share) for name, share in zip(names, first / draws, strict=True)},
        [
            RankedPair(a=names[a], b=names[b], share=float(above[a, b] / draws))
            for a, b in combinations(range(len(names)), 2)
        ],
    )


def _sums(answers: DataFrame, metric: ScaledMetric, names: Sequence[str]) -> tuple[int, Floats, Floats]:
    """The number of independent units, and for each of them and each candidate the sum of its items' means and their
    number: (units, candidates)."""
    items = _item_means(answers, metric)
    items = items[items["candidate"].isin(names)]
    units, place = np.unique(items["unit"].to_numpy(), return_inverse=True)
    column = items["candidate"].astype(object).map({name: at for at, name in enumerate(names)}).to_numpy()
    sums, counts = (np.zeros((units.size, len(names))) for _ in range(2))
    np.add.at(sums, (place, column.astype(np.int64)), items["value"].to_numpy())
    np.add.at(counts, (place, column.astype(np.int64)), 1.0)
    return units.size, sums, counts


def _item_means(answers: DataFrame, metric: ScaledMetric) -> DataFrame:
    """The mean of each candidate's answers to a row: columns candidate, row, unit, value."""
    scale = scale_of(answers, metric)
    scored = of_kind(with_label_values(answers, scale), scale.kind)
    means = scored.groupby(["candidate", "row"], observed=True).agg({"value": "mean", "unit": "first"})
    return means.reset_index()


# --- comparisons -------------------------------------------------------------------------------------------------


def _of_comparisons(mine: DataFrame, metric: ScaledMetric, compared: Mapping[str, Any]) -> Ranking | None:
    cells = ranked_by_wins(compared)
    names = list(cells)
    if len(names) < 2:
        return None
    authors = {name: each for name, each, _all in comparisons_by(verdicts_under(mine, metric))}
    units, wins = _wins(authors[compared["by"]], names)
    draws = draws_for(units)
    rated = all(cell.get("rating") is not None for cell in cells.values())
    values = (_strengths(block, len(names), rated) for block in resampled(wins, draws)) if draws else iter(())
    first, pairs = _shares(names, values, EQUAL_STRENGTHS) if draws else ({}, [])
    ranges = rank_ranges(names, compared["differences"])
    others = {name: each for name, each in authors.items() if name not in (compared["by"], "people")}
    return Ranking(
        metric=metric.name,
        by=compared["by"],
        draws=draws,
        seed=SEED,
        first=first,
        pairs=pairs,
        ranks={name: Rank(low=low, high=high) for name, (low, high) in ranges.items()},
        orders=[SingleOrder(by=name, names=_by_wins(each, names)) for name, each in others.items()],
    )


def _wins(each: DataFrame, names: Sequence[str]) -> tuple[int, Floats]:
    """The number of independent units, and for each of them how often each candidate beat each other one, a tie or an
    unsettled pair as half: (units, candidates²)."""
    places = {name: place for place, name in enumerate(names)}
    a, b = (_places(each, side, places) for side in ("candidate", "other"))
    known = (a >= 0) & (b >= 0)
    won = np.where(is_unsettled(each), 0.5, (np.sign(steps_of(each)) + 1) / 2)[known]
    units, unit = np.unique(each["unit"].to_numpy()[known], return_inverse=True)
    wins = np.zeros((units.size, len(names) ** 2))
    np.add.at(wins, (unit, a[known] * len(names) + b[known]), won)
    np.add.at(wins, (unit, b[known] * len(names) + a[known]), 1 - won)
    return units.size, wins


def _places(each: DataFrame, side: str, places: Mapping[str, int]) -> Ints:
    return each[side].astype(object).map(places).fillna(-1).to_numpy().astype(np.int64)


def _strengths(wins: Floats, size: int, rated: bool) -> Floats:
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


def _by_wins(each: DataFrame, names: Sequence[str]) -> list[str]:
    _units, wins = _wins(each, names)
    (rates,) = _strengths(wins.sum(axis=0, keepdims=True), len(names), rated=False)
    places = [place for place in range(len(names)) if np.isfinite(rates[place])]
    return [names[place] for place in sorted(places, key=lambda place: (-rates[place], names[place]))]
