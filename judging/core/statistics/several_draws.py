"""A candidate's corrected mean from several draws, of which each was made among the answers that were not rated yet.

Notation as in `correction`: y people's value, f the judge's, π the probability of the draw, λ the weight of the judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .correction import FEWEST_ROWS, NOT_RANDOM, TOO_FEW, Correction, Labelled
from .intervals import Ends, mean_interval
from .numeric import Bools, Floats, quiet

FEWEST_OF_DRAW = 2
"""Ratings below which a draw has no variance, and counts only in what later ones take as known."""
AGREED = 10


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One draw among a candidate's answers: `drawn_with` (answers,), its probability where the answer was drawn and
    rated, else NaN; `rated_before` (answers,), whether it was rated before the draw, by an earlier one."""

    drawn_with: Floats
    rated_before: Bools


@dataclass(frozen=True, slots=True)
class DrawEstimate:
    """A draw's estimate of the mean over all answers: `sampled`, its squared standard error as a sample of them,
    `population`, what they add as a sample of all questions, `ratings` behind it, and the sum of its squared weights
    `concentration`."""

    value: float
    sampled: float
    population: float
    weight: float
    ratings: int
    concentration: float


def why_draws_refused(answers: Labelled, draws: Sequence[Draw]) -> str | None:
    """A code of `document.REFUSED` if the labels of these draws cannot correct the judge, otherwise None."""
    for draw in draws:
        chances = draw.drawn_with[~np.isnan(draw.drawn_with)]
        if (chances <= 0).any() or (chances > 1).any():
            return NOT_RANDOM
    rated = np.zeros(answers.judge.size, dtype=np.bool_)
    for draw in draws:
        rated |= ~np.isnan(draw.drawn_with)
    if np.unique(answers.rows[rated & answers.has_label]).size < FEWEST_ROWS:
        return TOO_FEW
    return None if any(_sampled(answers, draw).sum() >= FEWEST_OF_DRAW for draw in draws) else TOO_FEW


def draw_estimate(answers: Labelled, draw: Draw, width: float) -> DrawEstimate | None:
    """The estimate of one draw; None with fewer than two ratings. `width`: of the scale.

    `(sum_K y + M (mean_U(g) + sum_S (y − g) / (M π))) / N` with g = λ f + c: K the answers known before, U the M
    others, S those of U that were drawn and rated. λ and c of an answer come from what was known before and from the
    ratings of the other half of the answers (by their places), so that they don't depend on whether it was drawn: the
    estimate is unbiased however the probabilities came about, if each answer was drawn by itself. `sampled = sum_S
    (1 − π) / π² (y − g)² / N²`, but at least what a quarter of an error of the scale's whole `width` among the n adds,
    since few ratings may miss the judge's errors; `population` = the variance of y over all N, estimated in the same
    way, / N. Source: Zrnic and Candès, "Active Statistical Inference", 2024, and "Cross-Prediction-Powered Inference",
    2024, for the halves. Coverage and bias: `tools.bench.asking`.
    """
    mine = _sampled(answers, draw)
    n, total = int(mine.sum()), answers.judge.size
    if n < FEWEST_OF_DRAW:
        return None
    rated_before = draw.rated_before & answers.has_label
    guess, weight = _guesses(answers, draw, mine, rated_before)
    y, chances = answers.people[mine], draw.drawn_with[mine]
    wrong = y - guess[mine]
    value = (
        float(answers.people[rated_before].sum() + guess[~rated_before].sum() + np.sum(wrong / chances))
        / total
    )
    rest, shares = float((~rated_before).sum()), 1 / chances / np.sum(1 / chances)
    sampled = float(np.sum((1 - chances) / chances**2 * wrong**2)) / total**2
    unseen = (rest / total * width / n) ** 2 / 4 * max(0.0, 1 - n / rest)
    apart = float(
        np.sum((answers.people[rated_before] - value) ** 2) + np.sum((guess[~rated_before] - value) ** 2)
    )
    apart += float(np.sum(((y - value) ** 2 - (guess[mine] - value) ** 2) / chances))
    concentration = (rest / total) ** 2 * float(np.sum(shares**2))
    population = max(0.0, apart) / total**2
    return DrawEstimate(value, max(sampled, unseen), population, weight, n, concentration)


def _guesses(answers: Labelled, draw: Draw, mine: Bools, rated_before: Bools) -> tuple[Floats, float]:
    """λ f + c of every answer, and the mean λ: shape (answers,)."""
    half = np.arange(answers.judge.size) % 2
    guess, weights = np.empty(answers.judge.size), []
    for number in (0, 1):
        other = mine & (half != number)
        weight, shift = _line(answers, draw, other, rated_before)
        here = half == number
        guess[here] = weight * answers.judge[here] + shift
        weights.append(weight)
    return guess, float(np.mean(weights))


def _line(answers: Labelled, draw: Draw, other: Bools, rated_before: Bools) -> tuple[float, float]:
    """λ and c from the `other` half's ratings and the known ones, with `AGREED` further ones on which the judge is
    right: with few ratings the judge is believed, rather than taken to say nothing."""
    labelled = other | rated_before
    y, f, spread = answers.people[labelled], answers.judge[labelled], float(answers.judge.var())
    if not spread > 0:
        weight = 0.0
    else:
        together = float(np.sum((y - y.mean()) * (f - f.mean()))) if y.size else 0.0
        own = float(np.sum((f - f.mean()) ** 2)) if y.size else 0.0
        weight = float(np.clip((together + AGREED * spread) / (own + AGREED * spread), 0.0, 1.0))
    centre = float(answers.judge.mean())
    if not other.any():
        return weight, (1 - weight) * centre
    shares = 1 / draw.drawn_with[other]
    wrong = answers.people[other] - weight * answers.judge[other] - (1 - weight) * centre
    size = int(other.sum())
    return weight, (1 - weight) * centre + size / (size + AGREED) * float(shares @ wrong) / float(
        shares.sum()
    )


def _sampled(answers: Labelled, draw: Draw) -> Bools:
    return np.asarray(~np.isnan(draw.drawn_with) & answers.has_label & ~draw.rated_before, dtype=np.bool_)


def combined_estimate(answers: Labelled, draws: Sequence[Draw], width: float) -> DrawEstimate | None:
    """The mean of the draws' estimates by their numbers of ratings n_d; None if no draw has two.

    `sampled = sum a_d² sampled_d` and `population = sum a_d population_d` with a_d = n_d / sum n: an estimate's error
    given what was rated before has the mean 0, so that those of two draws are uncorrelated; the answers as a sample of
    questions are common to all of them. λ: the mean of theirs.
    """
    with quiet():
        parts = [part for draw in draws if (part := draw_estimate(answers, draw, width)) is not None]
    ratings = sum(part.ratings for part in parts)
    pairs = [(part.ratings / ratings, part) for part in parts]
    if not pairs:
        return None
    return DrawEstimate(
        value=sum(share * part.value for share, part in pairs),
        sampled=sum(share**2 * part.sampled for share, part in pairs),
        population=sum(share * part.population for share, part in pairs),
        weight=sum(share * part.weight for share, part in pairs),
        ratings=ratings,
        concentration=sum(share**2 * part.concentration for share, part in pairs),
    )


def terms_by_draws(answers: Labelled, draws: Sequence[Draw]) -> Floats:
    """What each answer adds to `combined_estimate`, as `correction.terms_of`: (answers, TERMS). λ, c and the shares of
    the draws are held as all answers give them."""
    parts = [(draw, _sampled(answers, draw)) for draw in draws]
    parts = [(draw, mine) for draw, mine in parts if mine.sum() >= FEWEST_OF_DRAW]
    ratings = sum(int(mine.sum()) for _draw, mine in parts)
    added = np.zeros(answers.judge.size)
    for draw, mine in parts:
        rated_before = draw.rated_before & answers.has_label
        guess, _weight = _guesses(answers, draw, mine, rated_before)
        wrong = np.where(mine, (answers.people - guess) / draw.drawn_with, 0.0)
        added += mine.sum() / ratings * (np.where(rated_before, answers.people, guess) + wrong)
    counts = np.ones(added.size)
    return np.column_stack([np.zeros(added.size), np.zeros(added.size), added, counts, counts])


def correct_by_draws(answers: Labelled, draws: Sequence[Draw], ends: Ends | None) -> Correction:
    """The corrected mean by `combined_estimate`, cut to the scale; call only if it is not refused."""
    width = ends[1] - ends[0] if ends else float(np.nanmax(answers.judge) - np.nanmin(answers.judge))
    estimate = combined_estimate(answers, draws, width)
    assert estimate is not None
    value = estimate.value if ends is None else min(max(estimate.value, ends[0]), ends[1])
    units = min(float(answers.has_label.sum()), 1 / estimate.concentration)
    se = math.sqrt(estimate.sampled + estimate.population)
    low, high = mean_interval(value, se, units, ends)
    halve = _ratings_to_halve(estimate, answers.judge.size)
    return Correction(value, se, low, high, estimate.weight, halve)


def _ratings_to_halve(now: DrawEstimate, pool: int) -> int | None:
    """How many more labels make the squared error a quarter, if each adds as much as those there are."""
    target = (now.sampled + now.population) / 4 - now.population
    if not target > 0 or not now.sampled > 0:
        return None
    needed = math.ceil(now.sampled * now.ratings / target) - now.ratings
    return needed if needed + now.ratings <= pool else None


@dataclass(frozen=True, slots=True, eq=False)
class Prospect:
    """A candidate's estimate so far, over `answers` in all, and the expected squared errors of the answers that a
    further draw can draw."""

    now: DrawEstimate
    answers: int
    errors: Floats


def further_ratings_to_halve(
    candidates: Sequence[Prospect], chances_of: Callable[[int], Floats]
) -> int | None:
    """How many further ratings halve the candidates' intervals; None if rating everything would not.

    Over all candidates: the sum of the squared errors becomes a quarter. `chances_of`: for a size, the probabilities of
    all answers that can be drawn, candidate after candidate. The variance of the further draw is `sum e (1/π − 1) /
    N²` for squared errors e, and it is combined with the earlier ones as in `combined_estimate`.
    """
    target = sum(each.now.sampled + each.now.population for each in candidates) / 4
    most = sum(each.errors.size for each in candidates)
    if not most or _after(candidates, chances_of(most)) > target:
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if _after(candidates, chances_of(middle)) <= target:
            high = middle
        else:
            low = middle + 1
    return low


def _after(candidates: Sequence[Prospect], chances: Floats) -> float:
    """The sum of the candidates' squared errors after a further draw with these probabilities."""
    total, start = 0.0, 0
    for each in candidates:
        mine = chances[start : start + each.errors.size]
        start += each.errors.size
        more = float(mine.sum())
        further = float(np.sum(each.errors * (1 / mine - 1))) / each.answers**2 if more else 0.0
        n = each.now.ratings
        total += (n**2 * each.now.sampled + more**2 * further) / (n + more) ** 2 + each.now.population
    return total
