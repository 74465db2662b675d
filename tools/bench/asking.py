"""How often the corrected means of several draws cover the truth, where later ones go to the answers in doubt:
`python -m tools.bench.asking`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from judging.core.people.asking import Doubts, assumed_errors, learnt_errors, poisson_draw, probabilities
from judging.core.statistics.correction import Labelled
from judging.core.statistics.several_draws import Draw, correct_by_draws, why_draws_refused
from tools.bench import Figure, command_line
from tools.bench.coverage import CORRECTED_DRAWS, OWN_ANSWERS, POPULATIONS, RATINGS

COURSES = {
    "one draw": (1.0,),
    "even, then by doubt": (-0.5, 0.5),
    "three draws": (0.34, 0.33, 0.33),
    "even, then unfinished": (-0.5, 1.0),
    "unequal": (-0.8, 0.2),
    "rules sent some": (0.5, 0.5),
}
"""Name → the share of the ratings that each draw gets; below zero: drawn evenly."""
RATED_OF_UNFINISHED = 0.5
SENT = 20
LEAST, MOST = 91.0, 99.8


@dataclass(slots=True)
class Study:
    """Answers with people's values, the judge's and its doubts, and what was drawn of them so far."""

    people: np.ndarray
    judge: np.ndarray
    doubts: Doubts
    known: np.ndarray
    sent: np.ndarray
    draws: list[Draw]

    def labelled(self, passes: bool) -> Labelled:
        rows = np.arange(self.people.size)
        rated = self.known.copy()
        for draw in self.draws:
            rated |= ~np.isnan(draw.drawn_with)
        values = np.where(rated, self.people, np.nan)
        return Labelled(self.judge, values, np.full(rows.size, np.nan), rows, rows, passes=passes)


def new_study(shares: dict[int, float], rng: np.random.Generator) -> Study:
    """The judge gives a tenth of the answers a value at random; its repeats differ mostly, but not only, on these."""
    values = list(shares)
    people = rng.choice(values, OWN_ANSWERS, p=list(shares.values())).astype(float)
    wrong = rng.random(OWN_ANSWERS) < 0.1
    judge = np.where(wrong, rng.choice(values, OWN_ANSWERS), people).astype(float)
    width = max(values) - min(values)
    spread = np.where(rng.random(OWN_ANSWERS) < np.where(wrong, 0.7, 0.1), width / 2, 0.0)
    doubts = Doubts(spread, np.abs(judge - float(judge.mean())))
    nothing = np.zeros(OWN_ANSWERS, dtype=np.bool_)
    return Study(people, judge, doubts, nothing, nothing.copy(), [])


def draw_next(study: Study, size: float, *, even: bool, rated: float, width: float, seed: int) -> None:
    """Draw among the answers not known yet; of those drawn the share `rated` is rated, in their random order."""
    squared = np.where(study.known, (study.people - study.judge) ** 2, np.nan)
    learnt = learnt_errors(study.doubts, width, squared)
    errors = assumed_errors(study.doubts, width) if learnt is None else learnt
    frame = np.flatnonzero(~study.known)
    chances = probabilities(np.ones(frame.size) if even else errors[frame], size)
    drawn = poisson_draw(chances, seed)
    before = study.sent[frame[drawn]]
    waiting = drawn[~before]
    count = round(rated * waiting.size)
    dealt = waiting[:count]
    drawn_with = np.full(study.people.size, np.nan)
    if count:
        drawn_with[frame[dealt]] = chances[dealt] * count / waiting.size
    drawn_with[frame[drawn[before]]] = chances[drawn[before]]
    study.draws.append(Draw(drawn_with, study.known.copy()))
    study.known = study.known | ~np.isnan(drawn_with)


def simulate(course: str, population: str, size: int, rng: np.random.Generator) -> Study:
    """One study of so many ratings."""
    shares = POPULATIONS[population]
    study, width = new_study(shares, rng), max(shares) - min(shares)
    if course == "rules sent some":
        lowest = np.argsort(study.judge + 0.01 * rng.random(OWN_ANSWERS))[:SENT]
        study.sent[lowest] = True
    for number, share in enumerate(COURSES[course]):
        unfinished = course.endswith("unfinished") and number == 1
        rated = RATED_OF_UNFINISHED if unfinished else 1.0
        seed = int(rng.integers(2**31))
        draw_next(study, abs(share) * size, even=share < 0, rated=rated, width=width, seed=seed)
    return study


@dataclass(frozen=True, slots=True)
class Results:
    """Of many studies: the share of intervals that hold the truth, the mean error of the estimate in its own standard
    errors of a mean of all studies, and the mean width of the intervals."""

    covered: float
    bias: float
    width: float


def results(course: str, population: str, size: int, draws: int = CORRECTED_DRAWS, seed: int = 6) -> Results:
    shares, rng = POPULATIONS[population], np.random.default_rng(seed)
    truth = sum(value * share for value, share in shares.items())
    ends, passes = (float(min(shares)), float(max(shares))), max(shares) == 1
    covered, errors, widths = 0, [], []
    for _draw in range(draws):
        study = simulate(course, population, size, rng)
        answers = study.labelled(passes)
        if why_draws_refused(answers, study.draws) is not None:
            continue
        result = correct_by_draws(answers, study.draws, ends)
        low, high = result.low or 0.0, result.high or 0.0
        covered += low <= truth <= high
        errors.append(result.value - truth)
        widths.append(high - low)
    wrong = np.array(errors)
    bias = float(wrong.mean() / (wrong.std(ddof=1) / np.sqrt(wrong.size)))
    return Results(covered / wrong.size, bias, float(np.mean(widths)))


def asking_figures() -> Iterator[Figure]:
    for course in COURSES:
        cells = {cell: results(course, *cell) for cell in product(POPULATIONS, RATINGS)}
        worst = min(cells, key=lambda cell: cells[cell].covered)
        best = max(cells, key=lambda cell: cells[cell].covered)
        name = f"corrected means of draws by doubt that lie in their interval, %, {course}"
        yield Figure.at_least(
            name, 100 * cells[worst].covered, LEAST, f"worst of {len(cells)} cells: {worst}"
        )
        yield Figure.at_most(f"the same, widest cell, {course}", 100 * cells[best].covered, MOST, str(best))


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in asking_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
