"""What more ratings would add: how many halve the interval, drawn by doubt and drawn evenly, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judging.core.people.asking import Bools, Floats, probabilities
from judging.core.statistics.corrected import as_far_as_rated
from judging.core.statistics.correction import FEWEST_ROWS, Labelled
from judging.core.statistics.licence import UNMEASURED_SECONDS
from judging.core.statistics.several_draws import (
    Draw,
    Prospect,
    combined_estimate,
    further_ratings_to_halve,
)
from judging.people.asking.drawn import shares_rated
from judging.people.asking.pool import Pool, random_items
from judging.people.progress import pace_of
from judging.people.selectors import evaluations_of
from judging.records.models import Run


@dataclass(frozen=True, slots=True)
class Meter:
    """`by_doubt`, `evenly`: how many further ratings halve the interval, None if rating everything would not.
    `seconds`: of one rating, `measured` or assumed. `enough`: whether there are enough ratings to tell; `rated`: how
    many rows have one."""

    enough: bool
    rated: int
    by_doubt: int | None
    evenly: int | None
    seconds: float
    measured: bool

    def hours(self, ratings: int | None) -> float | None:
        return None if ratings is None else ratings * self.seconds / 3600


def meter_of(run: Run, pool: Pool, overlap: int = 1) -> Meter:
    """The meter of a run's metric. `overlap`: ratings for each answer."""
    pace = pace_of(run.project)
    seconds = (pace or UNMEASURED_SECONDS) * overlap
    rated = int(np.unique(pool.rows[pool.rated_drawn]).size)
    candidates = _prospects(run, pool)
    if rated < FEWEST_ROWS or not candidates:
        return Meter(False, rated, None, None, seconds, pace is not None)
    errors = np.concatenate([each.errors for each in candidates])
    by_doubt = further_ratings_to_halve(candidates, lambda size: probabilities(errors, size))
    evenly = further_ratings_to_halve(candidates, lambda size: probabilities(np.ones(errors.size), size))
    return Meter(True, rated, by_doubt, evenly, seconds, pace is not None)


def _prospects(run: Run, pool: Pool) -> list[Prospect]:
    """Of the candidates of which a draw has ratings, with what a further draw would find."""
    draws = _draws(run, pool)
    free = np.zeros(pool.responses.size, dtype=np.bool_)
    free[pool.frame] = True
    prospects = []
    for candidate in np.unique(pool.candidates):
        mine = pool.candidates == candidate
        rows = pool.rows[mine]
        nothing = np.full(rows.size, np.nan)
        answers = Labelled(pool.scores[mine], pool.people[mine], nothing, rows, rows)
        parts = [
            Draw(chances[mine] if number else as_far_as_rated(chances[mine]), rated_before[mine])
            for number, (chances, rated_before) in sorted(draws.items())
        ]
        estimate = combined_estimate(answers, parts, pool.width)
        if estimate is not None:
            prospects.append(Prospect(estimate, rows.size, pool.errors[mine & free]))
    return prospects


def _draws(run: Run, pool: Pool) -> dict[int, tuple[Floats, Bools]]:
    """{number of a draw: (probabilities where rated, whether known before)}, each over the pool's answers."""
    drawn: dict[int, Floats] = {}
    known_to = np.zeros(pool.responses.size, dtype=np.int64)
    for evaluation in evaluations_of(run):
        shares = shares_rated(evaluation.run)
        items = random_items(evaluation).filter(rated__gt=0)
        for response, number, chance, rated_before in items.values_list(
            "response", "draw", "drawn_with", "known_to"
        ):
            place = int(np.searchsorted(pool.responses, response))
            if (
                place == pool.responses.size
                or pool.responses[place] != response
                or not pool.rated_drawn[place]
            ):
                continue
            chances = drawn.setdefault(number, np.full(pool.responses.size, np.nan))
            chances[place] = chance * (shares[number].of(response) if number in shares else 1.0)
            known_to[place] = rated_before or known_to[place]
    return {
        number: (chances, (known_to > 0) & (known_to <= number)) for number, chances in sorted(drawn.items())
    }
