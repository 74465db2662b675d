"""Pairwise comparisons by author: win rates, Bradley–Terry ratings, ranks, and position and style effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datasets.core.kinds import BOTH_BAD
from judging.core.values import UNSETTLED

from .agreement import raters_of
from .document import Coefficient, Outcomes, SideBySide, SideCell, SideDifference, SidePair
from .frame import REFERENCE, ScaledMetric
from .judges import FEATURES, answer_keys, first_side
from .means import estimate_mean, holm, p_value, rate_of
from .numeric import LEVEL, UPPER, Floats, Ints, finite, normal_quantile, z_two_sided
from .verdicts import STEPS, Verdicts, steps_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST_STEPS, SMALL_STEP = 50, 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class PairedComparisons:
    """Comparisons of `size` candidates, as arrays of shape (comparisons,).

    `a`, `b`: candidate numbers; `won`: 1 if a won, ½ for a tie, 0 if b won; `clusters`: the row, or its cluster.
    """

    size: int
    a: Ints
    b: Ints
    won: Floats
    clusters: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Bradley–Terry ratings (candidates,) in natural log-odds with mean zero, and their covariance.

    `covariance` has shape (candidates, candidates). A model with features also has their coefficients and standard
    errors.
    """

    ratings: Floats
    covariance: Floats
    coefficients: Floats
    coefficient_errors: Floats


def wins_between(comparisons: PairedComparisons) -> Floats:
    """How often each candidate beat each other one, with a tie as half a win for both: (candidates, candidates)."""
    wins = np.zeros((comparisons.size, comparisons.size))
    np.add.at(wins, (comparisons.a, comparisons.b), comparisons.won)
    np.add.at(wins, (comparisons.b, comparisons.a), 1 - comparisons.won)
    return wins


def is_connected(comparisons: PairedComparisons) -> bool:
    """Whether every candidate is linked to every other one by comparisons, regardless of who won."""
    return _all_reached((wins_between(comparisons) + wins_between(comparisons).T) > 0)


def has_ratings(comparisons: PairedComparisons) -> bool:
    """Whether Bradley–Terry ratings exist: a path of wins or ties leads from every candidate to every other one.

    Then no candidate or group of candidates won or lost everything against the rest. Source: Ford, American
    Mathematical Monthly 64(8), 1957.
    """
    wins = wins_between(comparisons) > 0
    return _all_reached(wins) and _all_reached(wins.T)


def _all_reached(leads: np.ndarray) -> bool:
    reached = np.zeros(len(leads), dtype=bool)
    reached[:1] = True
    for _ in range(len(leads)):
        reached = reached | leads[reached].any(axis=0)
    return bool(reached.all())


def bradley_terry(comparisons: PairedComparisons, features: Floats | None = None) -> Strengths | None:
    """`log(p / (1 - p)) = rating_a - rating_b (+ features @ coefficients)`, by maximum likelihood (Newton's method).

    `features`: (comparisons, features), a's minus b's. The covariance is the sandwich `H⁺ (sum_g s_g s_gᵀ) H⁺ G/(G−1)`
    with the scores s_g summed over the comparisons of a cluster. Assumes independent clusters. None if the ratings do
    not exist. Source: Bradley and Terry, Biometrika 39, 1952; half a win for a tie as in Chatbot Arena; Huber 1967,
    White 1982 for the sandwich.
    """
    if comparisons.size < 2 or not has_ratings(comparisons):
        return None
    design = candidate_design(comparisons)
    if features is not None:
        design = np.hstack([design, features])
    fit = _fitted(design, comparisons.won, comparisons.size)
    if fit is None:
        return None
    parameters, inverse = fit
    scores = design * (comparisons.won - _chance(design @ parameters))[:, None]
    covariance = _sandwich(inverse, scores, comparisons.clusters)
    size = comparisons.size
    return Strengths(
        parameters[:size],
        covariance[:size, :size],
        parameters[size:],
        np.sqrt(np.diag(covariance)[size:]),
    )


def candidate_design(comparisons: PairedComparisons) -> Floats:
    """The design matrix, 1 for a and −1 for b: (comparisons, candidates)."""
    many = np.arange(comparisons.a.size)
    design = np.zeros((many.size, comparisons.size))
    np.add.at(design, (many, comparisons.a), 1.0)
    np.add.at(design, (many, comparisons.b), -1.0)
    return design


def _chance(odds: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return chances


def _fitted(design: Floats, won: Floats, size: int) -> tuple[Floats, Floats] | None:
    """The parameters and the inverse of their information matrix, with a term that fixes the ratings' sum at zero.

    The scores of comparisons sum to zero over the candidates, so for differences between candidates this inverse equals
    H⁺, without having to decide under rounding which eigenvalue is 0.
    """
    held = np.zeros((design.shape[1], design.shape[1]))
    held[:size, :size] = 1.0
    parameters = np.zeros(design.shape[1])
    for _ in range(MOST_STEPS):
        chances = _chance(design @ parameters)
        information = (design * (chances * (1 - chances))[:, None]).T @ design
        try:
            step = np.linalg.solve(information + held, design.T @ (won - chances))
        except np.linalg.LinAlgError:
            return None
        largest = float(np.abs(step).max())
        if not np.isfinite(largest):
            return None
        parameters = parameters + step * min(1.0, 5.0 / max(largest, 1e-300))
        if largest < SMALL_STEP:
            return parameters, np.asarray(np.linalg.inv(information + held), dtype=np.float64)
    return None


def _sandwich(inverse: Floats, scores: Floats, clusters: Ints) -> Floats:
    _, member = np.unique(clusters, return_inverse=True)
    count = int(member.max()) + 1
    sums = np.zeros((count, scores.shape[1]))
    np.add.at(sums, member, scores)
    covariance: Floats = inverse @ (sums.T @ sums) @ inverse * (count / (count - 1) if count > 1 else np.nan)
    return covariance


def rating_tests(strengths: Strengths) -> list[float | None]:
    """Two-sided p of each pair's "both ratings are equal", in the order of `combinations`: a z test of the ratings'
    difference, with its variance from their covariance. 1 if they are equal and nothing varies, None without errors.
    """
    ratings, covariance = strengths.ratings, strengths.covariance

    def test(a: int, b: int) -> float | None:
        apart, variance = ratings[a] - ratings[b], covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
        if variance > SMALL_STEP**2:
            return z_two_sided(apart / math.sqrt(variance))
        return 1.0 if np.isfinite(variance) and abs(apart) < SMALL_STEP else None

    return [test(a, b) for a, b in combinations(range(ratings.size), 2)]


def win_tests(paired: PairedComparisons) -> list[float | None]:
    """Two-sided p of each pair's "both win equally often", in the order of `combinations`: the t test of `p_value`
    over the wins beyond one half, by clusters. None for pairs that were not compared, or in one cluster only."""
    tests: list[float | None] = []
    for a, b in combinations(range(paired.size), 2):
        here = ((paired.a == a) & (paired.b == b)) | ((paired.a == b) & (paired.b == a))
        beyond = np.where(paired.a == a, paired.won, 1 - paired.won)[here] - 0.5
        tests.append(p_value(estimate_mean(beyond, paired.clusters[here])))
    return tests


def side_differences(
    names: Sequence[str], paired: PairedComparisons, ratings: Strengths | None
) -> list[SideDifference]:
    """Who is better in each pair, and whether significantly, with Holm's correction over all pairs: by their ratings,
    or by the comparisons of the two alone where there are no ratings."""
    wins, tests = wins_between(paired), win_tests(paired) if ratings is None else rating_tests(ratings)
    pairs = combinations(range(len(names)), 2)
    differences = []
    for (a, b), p, p_holm in zip(pairs, tests, holm(tests), strict=True):
        apart = finite(ratings.ratings[a] - ratings.ratings[b]) if ratings else None
        ahead = wins[a, b] - wins[b, a] if apart is None else apart
        differences.append(
            SideDifference(
                a=names[a],
                b=names[b],
                difference=apart,
                higher=None if ahead == 0 else names[a] if ahead > 0 else names[b],
                p=p,
                p_holm=p_holm,
                distinguishable=None if p_holm is None else p_holm < 1 - LEVEL,
            )
        )
    return differences


def rank_ranges(names: Sequence[str], differences: Sequence[SideDifference]) -> dict[str, tuple[int, int]]:
    """The ranks (1 is best) that each candidate can have: from 1 + the number of candidates that are significantly
    better to the number of candidates minus those significantly worse."""
    better, worse = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for difference in differences:
        if difference["distinguishable"] and difference["higher"] is not None:
            lower = difference["b"] if difference["higher"] == difference["a"] else difference["a"]
            worse[difference["higher"]] += 1
            better[lower] += 1
    return {name: (1 + better[name], len(names) - worse[name]) for name in names}


def side_by_side(verdicts: Verdicts, features: DataFrame | None = None) -> list[SideBySide]:
    """One entry per author of a metric's comparisons, with all people as `people`; empty if nothing is compared.

    `features`: of the answers, from `judges.answer_features`.
    """
    entries = [
        _of_author(verdicts.metric, name, each, all_of, features)
        for name, each, all_of in comparisons_by(verdicts)
    ]
    return [entry for entry in entries if entry["candidates"]]


def comparisons_by(verdicts: Verdicts) -> list[tuple[str, DataFrame, DataFrame]]:
    """For each author: the name, the comparisons (one per pair of answers; scored or unsettled) and all verdicts behind
    them.

    People come last.
    """
    if not verdicts.compares:
        return []
    rows = verdicts.rows
    authors = [
        (
            name,
            own,
            rows[((rows["by"] == name) & (rows["source"] == own["source"].iloc[0])).to_numpy()],
        )
        for name, own in verdicts.authors.items()
    ]
    if len(verdicts.people):
        authors.append(("people", verdicts.value, raters_of(verdicts)))
    return [
        (name, own[(own["kind"].notna() | is_unsettled(own)).to_numpy()], all_of)
        for name, own, all_of in authors
    ]


def is_unsettled(rows: DataFrame) -> Series[bool]:
    return rows["state"] == UNSETTLED


def _of_author(
    metric: ScaledMetric, name: str, each: DataFrame, verdicts: DataFrame, features: DataFrame | None
) -> SideBySide:
    names = sorted({*each["candidate"].astype(object), *each["other"].astype(object)})
    paired = _comparisons(each, names)
    ratings = bradley_terry(paired)
    cells = {name: _cell(place, paired, each) for place, name in enumerate(names)}
    differences = side_differences(names, paired, ratings)
    if ratings is not None:
        _add_ratings(cells, ratings, rank_ranges(names, differences))
    style = None if features is None or features.empty else style_effects(each, paired, features)
    for place, cell in enumerate(cells.values()):
        cell["style_rating"] = finite(style.ratings[place]) if style else None
    return SideBySide(
        metric=metric.name,
        by=name,
        candidates=cells,
        pairs=_pairs(names, paired, each),
        differences=differences,
        steps={step: int((each["label"] == step).sum()) for step in STEPS},
        connected=is_connected(paired),
        perfect=[
            candidate
            for candidate, cell in cells.items()
            if cell["comparisons"] in (cell["wins"], cell["losses"])
        ],
        one_order=_in_one_order(verdicts),
        first_side=first_side(verdicts),
        style=style.coefficients if style else None,
    )


def _in_one_order(rows: DataFrame) -> bool:
    """Whether a judge saw most pairs of candidates in one known order only."""
    seen = (rows["other"] != REFERENCE) & (rows["source"] == "judge") & (rows["order"] != "both")
    orders = rows[(seen & (rows["shown_first"] > 0)).to_numpy()].groupby("item")["shown_first"].nunique()
    return bool(len(orders) and (orders == 1).mean() > 0.5)


def _comparisons(each: DataFrame, names: list[str]) -> PairedComparisons:
    places = {name: place for place, name in enumerate(names)}
    return PairedComparisons(
        size=len(names),
        a=each["candidate"].astype(object).map(places).to_numpy().astype(np.int64),
        b=each["other"].astype(object).map(places).to_numpy().astype(np.int64),
        won=np.where(is_unsettled(each), 0.5, (np.sign(steps_of(each)) + 1) / 2),
        clusters=each["unit"].to_numpy(),
    )


def _outcomes(paired: PairedComparisons, each: DataFrame, first: int, second: int | None = None) -> Outcomes:
    """The outcomes of a candidate's comparisons with a second one, or with all others."""
    here = (paired.a == first) | (paired.b == first)
    if second is not None:
        here &= (paired.a == second) | (paired.b == second)
    won = np.where(paired.a == first, paired.won, 1 - paired.won)[here]
    rate = rate_of(won, paired.clusters[here])
    unsettled = int(is_unsettled(each).to_numpy()[here].sum())
    return Outcomes(
        wins=rate.count,
        ties=int((won == 0.5).sum()) - unsettled,
        losses=int((won == 0).sum()),
        both_bad=int((each["label"] == BOTH_BAD).to_numpy()[here].sum()),
        unsettled=unsettled,
        win_rate=rate.rate,
        ci_low=rate.low,
        ci_high=rate.high,
    )


def _cell(place: int, paired: PairedComparisons, each: DataFrame) -> SideCell:
    here = (paired.a == place) | (paired.b == place)
    won = np.where(paired.a == place, paired.won, 1 - paired.won)[here]
    unsettled, clusters = is_unsettled(each).to_numpy()[here], paired.clusters[here]
    settled = won[~unsettled]
    return SideCell(
        comparisons=int(here.sum()),
        **_outcomes(paired, each, place),
        settled_rate=rate_of(settled, clusters[~unsettled]).rate if settled.size else None,
        low_bound=rate_of(np.where(unsettled, 0.0, won), clusters).rate,
        high_bound=rate_of(np.where(unsettled, 1.0, won), clusters).rate,
        rating=None,
        se=None,
        rating_low=None,
        rating_high=None,
        rank_low=None,
        rank_high=None,
        style_rating=None,
    )


def _add_ratings(
    cells: dict[str, SideCell], strengths: Strengths, ranks: Mapping[str, tuple[int, int]]
) -> None:
    reach = normal_quantile(UPPER)
    errors = np.sqrt(np.maximum(np.diag(strengths.covariance), 0.0))
    for place, (name, cell) in enumerate(cells.items()):
        rating, error = finite(strengths.ratings[place]), finite(errors[place])
        cell["rating"], cell["se"] = rating, error
        if rating is not None and error is not None:
            cell["rating_low"], cell["rating_high"] = rating - reach * error, rating + reach * error
            cell["rank_low"], cell["rank_high"] = ranks[name]


def _pairs(names: list[str], paired: PairedComparisons, each: DataFrame) -> list[SidePair]:
    """The pairs of candidates that were compared."""
    compared = wins_between(paired) + wins_between(paired).T > 0
    return [
        SidePair(a=names[a], b=names[b], **_outcomes(paired, each, a, b))
        for a, b in combinations(range(len(names)), 2)
        if compared[a, b]
    ]


class StyleEffects(NamedTuple):
    """`coefficients`: by feature; `ratings` (candidates,): in natural log-odds, adjusted for style."""

    coefficients: dict[str, Coefficient]
    ratings: Floats


def style_effects(each: DataFrame, paired: PairedComparisons, features: DataFrame) -> StyleEffects | None:
    """The style coefficients and the style-adjusted ratings from a Bradley–Terry model with candidates and features.

    A feature's value is `(a - b) / (a + b)` of the two answers, 0 if both have none, divided by its standard deviation.
    Comparisons without the answers' texts are left out; a feature that never differs, or is collinear with others, has
    no coefficient. None if the model cannot be fitted. Source: Li, Angelopoulos and Chiang, "Does style matter?", LMSYS
    2024.
    """
    sides = [
        features.reindex(answer_keys(each, name, number)).to_numpy(dtype=np.float64)
        for name, number in (("candidate", "response"), ("other", "other_response"))
    ]
    with_texts = ~np.isnan(sides[0]).any(axis=1) & ~np.isnan(sides[1]).any(axis=1)
    if not with_texts.any():
        return None
    a, b = sides[0][with_texts], sides[1][with_texts]
    apart = np.divide(a - b, a + b, out=np.zeros_like(a), where=a + b > 0)
    spread = apart.std(axis=0)
    part = PairedComparisons(
        paired.size,
        paired.a[with_texts],
        paired.b[with_texts],
        paired.won[with_texts],
        paired.clusters[with_texts],
    )
    informative = _informative(part, apart, spread)
    strengths = bradley_terry(part, apart[:, informative] / spread[informative]) if informative else None
    if strengths is None or not np.isfinite(strengths.coefficient_errors).all():
        return None
    pairs = zip(informative, strengths.coefficients, strengths.coefficient_errors, strict=True)
    coefficients = {
        FEATURES[feature]: Coefficient(coefficient=float(b), se=float(error)) for feature, b, error in pairs
    }
    return StyleEffects(coefficients, strengths.ratings)


def _informative(paired: PairedComparisons, apart: Floats, spread: Floats) -> list[int]:
    """The features that vary and are not collinear with the candidates and the features before them."""
    design = candidate_design(paired)
    informative: list[int] = []
    for place in np.flatnonzero(spread > 0).tolist():
        wider = np.column_stack([design, apart[:, place]])
        if np.linalg.matrix_rank(wider) > np.linalg.matrix_rank(design):
            design = wider
            informative.append(place)
    return informative
