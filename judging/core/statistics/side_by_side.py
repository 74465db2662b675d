"""The comparisons of a metric, by each author: win rates, ratings, ranks, and what order and looks do."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .document import Coefficient, SideBySide, SideCell, SidePair
from .frame import Metric
from .judges import first_side
from .means import estimate_mean
from .numeric import Floats, Ints, finite, normal_quantile
from .preference import Comparisons, Ratings, bradley_terry, is_connected, rank_intervals
from .rates import effective_size, wilson
from .style import style_effects
from .verdicts import BOTH_BAD, STEPS, Verdicts, steps_of

if TYPE_CHECKING:
    from pandas import DataFrame


def side_by_side(verdicts: Verdicts, level: float, features: DataFrame | None = None) -> list[SideBySide]:
    """One entry for each author of a metric's comparisons, people together as `people`; none where nothing is compared.

    `features`: of the answers, as `style.answer_features` gives them."""
    if not verdicts.compares:
        return []
    rows = verdicts.rows
    authors = [
        (name, one, rows[((rows["by"] == name) & (rows["source"] == one["source"].iloc[0])).to_numpy()])
        for name, one in verdicts.authors.items()
    ]
    if len(verdicts.people):
        raters = (verdicts.people["source"] == "rater").to_numpy()
        authors.append(("people", verdicts.value, verdicts.people[raters]))
    found = [_of_author(verdicts.metric, name, one, all_of, level, features) for name, one, all_of in authors]
    return [one for one in found if one["candidates"]]


def _of_author(
    metric: Metric, name: str, each: DataFrame, verdicts: DataFrame, level: float, features: DataFrame | None
) -> SideBySide:
    each = each[each["kind"].notna()]
    names = sorted({*each["candidate"].astype(object), *each["other"].astype(object)})
    met = _comparisons(each, names)
    ratings = bradley_terry(met)
    cells = {one: _cell(place, met, each, level) for place, one in enumerate(names)}
    if ratings is not None:
        _add_ratings(cells, ratings, level)
    return SideBySide(
        metric=metric.name,
        by=name,
        candidates=cells,
        pairs=_pairs(names, met, each, level),
        steps={step: int((each["label"] == step).sum()) for step in STEPS},
        connected=is_connected(met),
        perfect=[one for one, cell in cells.items() if cell["comparisons"] in (cell["wins"], cell["losses"])],
        first_side=first_side(verdicts, level),
        style=_style(each, met, features),
    )


def _comparisons(each: DataFrame, names: list[str]) -> Comparisons:
    places = {name: place for place, name in enumerate(names)}
    return Comparisons(
        size=len(names),
        a=each["candidate"].astype(object).map(places).to_numpy().astype(np.int64),
        b=each["other"].astype(object).map(places).to_numpy().astype(np.int64),
        won=(np.sign(steps_of(each)) + 1) / 2,
        clusters=each["unit"].to_numpy(),
    )


def _rate(won: Floats, clusters: Ints, level: float) -> tuple[float | None, float | None, float | None]:
    """The mean of outcomes (comparisons,) of 1, ½ and 0, with Wilson's interval on the effective size."""
    mean = estimate_mean(won, clusters, level)
    if mean.mean is None:
        return None, None, None
    return mean.mean, *wilson(mean.mean, effective_size(mean, won.size), level)


def _cell(place: int, met: Comparisons, each: DataFrame, level: float) -> SideCell:
    mine = (met.a == place) | (met.b == place)
    won = np.where(met.a == place, met.won, 1 - met.won)[mine]
    rate, low, high = _rate(won, met.clusters[mine], level)
    return SideCell(
        comparisons=int(mine.sum()),
        wins=int((won == 1).sum()),
        ties=int((won == 0.5).sum()),
        losses=int((won == 0).sum()),
        both_bad=int((each["label"] == BOTH_BAD).to_numpy()[mine].sum()),
        win_rate=rate,
        ci_low=low,
        ci_high=high,
        rating=None,
        se=None,
        rating_low=None,
        rating_high=None,
        rank_low=None,
        rank_high=None,
    )


def _add_ratings(cells: dict[str, SideCell], found: Ratings, level: float) -> None:
    reach = normal_quantile(0.5 + level / 2)
    errors = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
    ranks = rank_intervals(found, level)
    for place, cell in enumerate(cells.values()):
        rating, error = finite(found.ratings[place]), finite(errors[place])
        cell["rating"], cell["se"] = rating, error
        if rating is not None and error is not None:
            cell["rating_low"], cell["rating_high"] = rating - reach * error, rating + reach * error
            cell["rank_low"], cell["rank_high"] = ranks[place]


def _pairs(names: list[str], met: Comparisons, each: DataFrame, level: float) -> list[SidePair]:
    found = []
    bad = (each["label"] == BOTH_BAD).to_numpy()
    for a, b in combinations(range(len(names)), 2):
        here = ((met.a == a) & (met.b == b)) | ((met.a == b) & (met.b == a))
        if not here.any():
            continue
        won = np.where(met.a == a, met.won, 1 - met.won)[here]
        rate, low, high = _rate(won, met.clusters[here], level)
        found.append(
            SidePair(
                a=names[a],
                b=names[b],
                wins=int((won == 1).sum()),
                ties=int((won == 0.5).sum()),
                losses=int((won == 0).sum()),
                both_bad=int(bad[here].sum()),
                win_rate=rate,
                ci_low=low,
                ci_high=high,
            )
        )
    return found


def _style(each: DataFrame, met: Comparisons, features: DataFrame | None) -> dict[str, Coefficient] | None:
    if features is None or features.empty:
        return None
    return style_effects(each, met, features)
