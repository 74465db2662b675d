"""How often intervals of corrected and carried over values cover the truth, by simulation:
`python -m tools.bench.coverage`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from judging.core.statistics.carried_over import (
    FEWEST_VERDICTS,
    LEAST_INFORMED,
    OpenedTest,
    carry_over,
    informedness,
    prevalence,
)
from judging.core.statistics.correction import Correction, Labelled, correct
from judging.core.statistics.licence import licence_figures, use_allowed
from judging.core.statistics.looking import QUIET_FAILURES, unseen_share
from judging.core.statistics.means import Rate
from judging.core.statistics.uses import Thresholds
from tools.bench import Figure, command_line

DRAWS = 4000
CORRECTED_DRAWS = 2000
TESTS = (60, 120, 240)
RIGHT = (0.7, 0.8, 0.9, 0.95)
PASSING = (0.5, 0.8, 0.92)
ANSWERS = 400
LEAST, MOST = 0.93, 0.995


@dataclass(frozen=True, slots=True)
class Coverage:
    """One cell of a simulation: the share of the draws that were not refused whose interval holds the truth."""

    cell: tuple[float, ...]
    covered: float
    refused: float


def passes_coverage(
    size: int, right: tuple[float, float], passing: tuple[float, float], draws: int = DRAWS, seed: int = 7
) -> Coverage:
    """Of `carried_over.prevalence`: a test of `size` items, a judge with (TPR, TNR) `right`, pass rates by people in
    (test, run) `passing`."""
    rng = np.random.default_rng(seed)
    of_test, of_run = passing
    passes = rng.binomial(size, of_test, draws)
    counts = {
        "passes": passes,
        "right_passes": rng.binomial(passes, right[0]),
        "right_failures": rng.binomial(size - passes, right[1]),
        "judged": rng.binomial(ANSWERS, of_run * right[0] + (1 - of_run) * (1 - right[1]), draws),
    }
    covered = refused = 0
    for a, k1, k2, x in zip(*counts.values(), strict=True):
        b = size - a
        if min(a, b) < FEWEST_VERDICTS:
            refused += 1
            continue
        positive, negative, judged = _rate(k1, a), _rate(k2, b), _rate(x, ANSWERS)
        if informedness(positive, negative)[0] < LEAST_INFORMED:
            refused += 1
            continue
        _value, low, high = prevalence(judged, positive, negative)
        covered += low <= of_run <= high
    told = draws - refused
    return Coverage((size, *right, *passing), covered / told if told else 0.0, refused / draws)


def _rate(count: int, trials: int) -> Rate:
    return Rate(float(count / trials), None, None, int(count), float(trials))


SCORES = np.array([1.0, 2, 3, 4, 5])
SKEWED = np.array([0.05, 0.05, 0.05, 0.05, 0.8])
EVEN = np.array([0.1, 0.2, 0.3, 0.25, 0.15])


def scores_coverage(size: int, shares: np.ndarray, draws: int = DRAWS, seed: int = 7) -> Coverage:
    """Of carried over scores 1…5: a judge that is one lower in a third of the answers, at least 1."""
    rng = np.random.default_rng(seed)
    truth = float(SCORES @ shares)
    covered = 0
    for _draw in range(draws):
        people, run = rng.choice(SCORES, size, p=shares), rng.choice(SCORES, ANSWERS, p=shares)
        judge = np.maximum(1, people - (rng.random(size) < 1 / 3))
        judged = np.maximum(1, run - (rng.random(ANSWERS) < 1 / 3))
        test = OpenedTest(judge, people, np.arange(size), passes=False)
        carried = carry_over(judged, np.arange(ANSWERS), test, (1.0, 5.0))
        covered += carried.low is not None and carried.low <= truth <= (carried.high or 0)
    return Coverage((size, truth), covered / draws, 0.0)


RATINGS = (30, 60, 120)
"""How many of `OWN_ANSWERS` answers a run's own raters rate."""
OWN_ANSWERS = 600
DESIGNS = ("even", "strata", "own")
"""How they are drawn: evenly, as many of each score of the judge, or with probabilities of the program's own."""
POPULATIONS = {
    **{str(rate): {0: 1 - rate, 1: rate} for rate in (0.6, 0.9, 0.95)},
    "skewed": {1: 0.05, 2: 0.05, 3: 0.05, 4: 0.05, 5: 0.8},
    "apart": {1: 0.4, 2: 0.05, 3: 0.1, 4: 0.05, 5: 0.4},
}
"""Name → the share of the answers with each value by people."""


def drawn(design: str, shares: dict[int, float], size: int, rng: np.random.Generator) -> Labelled:
    """One draw of `size` of `OWN_ANSWERS` answers; the judge gives a tenth of them a value at random."""
    answers = OWN_ANSWERS
    people = rng.choice(list(shares), answers, p=list(shares.values())).astype(float)
    judge = np.where(rng.random(answers) < 0.1, rng.choice(list(shares), answers), people)
    strata = np.unique(judge, return_inverse=True)[1]
    chance = np.full(answers, size / answers)
    if design == "own":
        need = 1 + 2 * (judge < max(shares))
        chance = np.clip(size / answers * need / need.mean(), 0, 1)
        rated = rng.random(answers) < chance
    elif design == "even":
        rated = rng.permutation(answers) < size
    else:
        places = [rng.permutation(np.flatnonzero(strata == stratum)) for stratum in range(len(shares))]
        rated = np.isin(np.arange(answers), np.concatenate([some[: size // len(shares)] for some in places]))
    values, rows = np.where(rated, people, np.nan), np.arange(answers)
    return Labelled(
        judge, values, chance, rows, rows, strata if design == "strata" else None, passes=max(shares) == 1
    )


def corrections(
    design: str, population: str, size: int, draws: int = CORRECTED_DRAWS, seed: int = 6
) -> tuple[list[Correction], float]:
    """The corrected means of so many draws (`POPULATIONS`, `DESIGNS`), and the true mean."""
    shares, rng = POPULATIONS[population], np.random.default_rng(seed)
    truth = sum(value * share for value, share in shares.items())
    ends = (float(min(shares)), float(max(shares)))
    return [correct(drawn(design, shares, size, rng), ends) for _draw in range(draws)], truth


def corrected_coverage(design: str, population: str, size: int) -> float:
    """The share of `corrections` whose interval holds the true mean."""
    results, truth = corrections(design, population, size)
    return float(np.mean([(result.low or 0) <= truth <= (result.high or 0) for result in results]))


def wrong_gates(right: float, size: int, openings: int, draws: int = DRAWS, seed: int = 7) -> float:
    """How often a judge whose rates lie at the threshold of gates gets them within so many openings of one test, each
    of another version that is no better."""
    rng = np.random.default_rng(seed)
    thresholds, wrong = Thresholds(), 0
    people = (np.arange(size) < size / 2).astype(np.float64)
    for _draw in range(draws):
        for opening in range(1, openings + 1):
            judge = np.where(rng.random(size) < right, people, 1 - people)
            figures = licence_figures(judge, people, np.arange(size), "passes", opening)
            if use_allowed(figures, thresholds) == "gates":
                wrong += 1
                break
    return wrong / draws


def unseen_above(kinds: np.ndarray, quiet: int = QUIET_FAILURES, draws: int = DRAWS, seed: int = 7) -> float:
    """How often more of the failures than `unseen_share` have kinds not seen yet when a look ends after so many quiet
    ones. `kinds`: the shares of the kinds among failures."""
    rng = np.random.default_rng(seed)
    above = 0
    for _draw in range(draws):
        seen: set[int] = set()
        run = 0
        while run < quiet:
            kind = int(rng.choice(kinds.size, p=kinds))
            run = run + 1 if kind in seen else 0
            seen.add(kind)
        above += 1 - kinds[list(seen)].sum() > unseen_share(quiet)
    return above / draws


def coverage_figures() -> Iterator[Figure]:
    cells = [
        passes_coverage(size, (positive, negative), (of_test, of_run))
        for size, positive, negative, of_test, of_run in product(TESTS, RIGHT, RIGHT, PASSING, PASSING)
    ]
    shown = [cell for cell in cells if cell.refused <= 0.5]
    worst, *_between, best = sorted(shown, key=lambda cell: cell.covered)
    name = "carried over pass rates that lie in their interval, %, worst cell"
    yield Figure.at_least(name, 100 * worst.covered, 100 * LEAST, f"{worst.cell}, {len(shown)} cells")
    yield Figure.at_most("the same, widest cell", 100 * best.covered, 100 * MOST, str(best.cell))
    scores = [scores_coverage(size, shares) for size in TESTS for shares in (SKEWED, EVEN)]
    worst = min(scores, key=lambda cell: cell.covered)
    name = "carried over scores that lie in their interval, %, worst cell"
    yield Figure.at_least(name, 100 * worst.covered, 100 * LEAST, str(worst.cell))
    for design in DESIGNS:
        covered = [corrected_coverage(design, *cell) for cell in product(POPULATIONS, RATINGS)]
        least = 93 if design == "even" else 91
        name = f"corrected means that lie in their interval, %, {design}"
        yield Figure.at_least(name, 100 * min(covered), least, f"worst of {len(covered)} cells")
        yield Figure.at_most(
            f"the same, widest cell, {design}", 100 * max(covered), 99.8, "of the same cells"
        )
    for openings in (1, 5):
        share = wrong_gates(0.8, 400, openings)
        name = f"judges at the threshold of gates that get them in {openings} openings, %"
        yield Figure.at_most(name, 100 * share, 5, "both rates 0.8, 400 items")
    for kinds in (np.full(10, 0.1), 0.6 ** np.arange(12)):
        share = unseen_above(kinds / kinds.sum())
        name = f"looks that end with more unseen than they say, %, of {kinds.size} kinds"
        yield Figure.at_most(name, 100 * share, 50, "ten quiet failures")


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in coverage_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
