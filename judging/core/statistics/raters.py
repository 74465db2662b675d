"""How far people agree with each other under a metric, each two of them and each with the rest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from . import agreement
from .agreement import Level
from .document import RaterFigures, RaterPair, Raters
from .numeric import Draws, Floats, Ints, finite
from .verdicts import Verdicts, steps_of

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_PAIRED = 30  # raters whose pairs are shown: those with the most items


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Verdicts as numbers, or codes of labels. `by_slot` (items, most ratings of an item): who said it does not matter;
    `said`: the same with different labels always apart. `values`, `items`, `authors` (verdicts,): the same as a list;
    `names` of the authors; `clusters` (items,)."""

    level: Level
    by_slot: Floats
    said: Floats
    values: Floats
    codes: Floats
    items: Ints
    authors: Ints
    names: list[str]
    clusters: Ints


def raters_of(verdicts: Verdicts) -> DataFrame:
    """People's own verdicts, without an adjudicator's."""
    return verdicts.people[(verdicts.people["source"] == "rater").to_numpy()]


def ratings_of(rows: DataFrame, verdicts: Verdicts) -> Ratings:
    """The scored ones among rows of these verdicts, as numbers."""
    level = verdicts.level
    scored = rows[rows["kind"].notna().to_numpy()]
    items = np.unique(scored["item"].to_numpy(), return_inverse=True)[1].astype(np.int64)
    labelled = scored["label"].astype(object)
    codes = labelled.where(labelled.notna(), scored["value"]).factorize()[0].astype(np.float64)
    if level == "nominal":
        values = codes
    elif verdicts.compares:
        values = steps_of(scored)
    else:
        values = scored["value"].to_numpy(dtype=np.float64)
    names = [str(one) for one in scored["by"].cat.remove_unused_categories().cat.categories]
    authors = scored["by"].cat.remove_unused_categories().cat.codes.to_numpy().astype(np.int64)
    first = np.unique(items, return_index=True)[1]
    return Ratings(
        level=level,
        by_slot=_slots(values, items),
        said=_slots(codes, items),
        values=values,
        codes=codes,
        items=items,
        authors=authors,
        names=names,
        clusters=scored["unit"].to_numpy()[first],
    )


def _slots(values: Floats, items: Ints) -> Floats:
    """A row for each item, its values from the left, NaN behind them."""
    if not items.size:
        return np.zeros((0, 0))
    order = np.argsort(items, kind="stable")
    sizes = np.bincount(items)
    starts = np.cumsum(sizes) - sizes
    table = np.full((sizes.size, int(sizes.max())), np.nan)
    table[items[order], np.arange(items.size) - starts[items[order]]] = values[order]
    return table


def rater_agreement(verdicts: Verdicts, draws: Draws) -> Raters | None:
    """The figures of raters' own verdicts (no adjudicator's) under one metric; None where nobody rated."""
    rows = raters_of(verdicts)
    table = ratings_of(rows, verdicts)
    if not table.names:
        return None
    several = int(((~np.isnan(table.by_slot)).sum(axis=1) >= 2).sum())
    low, high = agreement.alpha_interval(table.by_slot, table.clusters, table.level, draws)
    return Raters(
        metric=verdicts.metric.name,
        level=table.level,
        items=several,
        raters=len(table.names),
        alpha=agreement.krippendorff_alpha(table.by_slot, table.level),
        ci_low=low,
        ci_high=high,
        percent=agreement.percent_agreement(table.said),
        ac1=agreement.gwet_ac1(table.said),
        fleiss=agreement.fleiss_kappa(table.said),
        pairs=_pairs(table),
        each=_each(table, rows),
    )


def _pairs(table: Ratings) -> list[RaterPair]:
    """Each two of the raters with the most items, where they have items in common, by name."""
    most = np.argsort(-np.bincount(table.authors), kind="stable")[:MOST_PAIRED]
    mine = {}
    for author in sorted(most):
        here = table.authors == author
        items, first = np.unique(table.items[here], return_index=True)
        mine[author] = items, table.values[here][first], table.codes[here][first]
    found = []
    for a, b in combinations(mine, 2):
        shared, of_a, of_b = np.intersect1d(mine[a][0], mine[b][0], assume_unique=True, return_indices=True)
        if not shared.size:
            continue
        said = mine[a][2][of_a], mine[b][2][of_b]
        ordinal = table.level != "nominal"
        found.append(
            RaterPair(
                a=table.names[a],
                b=table.names[b],
                items=int(shared.size),
                exact=finite(np.mean(said[0] == said[1])),
                kappa=agreement.cohen_kappa(*said),
                kappa_weighted=agreement.quadratic_kappa(mine[a][1][of_a], mine[b][1][of_b])
                if ordinal
                else None,
            )
        )
    return found


def _each(table: Ratings, rows: DataFrame) -> dict[str, RaterFigures]:
    """Each rater's items, the share of the other raters' verdicts on them that say the same, and pace."""
    pairs = np.column_stack([table.items, table.codes])
    _, same, alike = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    agreeing = np.bincount(table.authors, weights=alike[same.ravel()] - 1.0)
    others = np.bincount(table.authors, weights=np.bincount(table.items)[table.items] - 1.0)
    given = np.bincount(table.authors)
    seconds = rows.groupby("by", observed=True)["seconds"].mean()
    return {
        name: RaterFigures(
            items=int(given[place]),
            agreement_with_others=float(agreeing[place] / others[place]) if others[place] else None,
            seconds=finite(seconds.get(name, np.nan)),
        )
        for place, name in enumerate(table.names)
    }
