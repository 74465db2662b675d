"""The corrected score of several draws: its formula, its coverage, and the meter."""

import numpy as np
import pytest

from judging.core.people.asking import probabilities
from judging.core.statistics.correction import Labelled, mean_of_terms
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.several_draws import (
    Draw,
    Prospect,
    correct_by_draws,
    draw_estimate,
    further_ratings_to_halve,
    terms_by_draws,
    why_draws_refused,
)
from tests.judging.core.statistics.cast import document, person, said
from tools.bench.asking import results

RNG = np.random.default_rng(5)
PEOPLE = (RNG.random(80) < 0.8).astype(float)
JUDGE = np.where(RNG.random(80) < 0.9, PEOPLE, 1 - PEOPLE)
NOBODY = np.zeros(80, dtype=bool)


def answers(rated):
    rows = np.arange(80)
    values = np.where(np.isin(rows, list(rated)), PEOPLE, np.nan)
    return Labelled(JUDGE, values, np.full(80, np.nan), rows, rows, passes=True)


def draw(rated, chance, known=()):
    rows = np.arange(80)
    return Draw(np.where(np.isin(rows, list(rated)), chance, np.nan), np.isin(rows, list(known)))


def test_a_draw_of_everything_is_people_s_mean():
    everything = range(80)
    estimate = draw_estimate(answers(everything), draw(everything, 1.0), 1.0)
    assert estimate.value == pytest.approx(PEOPLE.mean())
    assert estimate.sampled == 0


def test_known_answers_count_as_people_rated_them():
    known, further = range(60), range(60, 80)
    estimate = draw_estimate(answers(range(80)), draw(further, 1.0, known), 1.0)
    assert estimate.value == pytest.approx(PEOPLE.mean())
    assert estimate.ratings == 20


def test_draws_are_averaged_by_their_ratings():
    parts = [draw(range(40), 0.5), draw(range(40, 60), 0.5, range(40))]
    both = answers(range(60))
    first, second = (draw_estimate(both, part, 1.0) for part in parts)
    expected = (40 * first.value + 20 * second.value) / 60
    assert correct_by_draws(both, parts, (0.0, 1.0)).value == pytest.approx(expected)


def test_the_sums_of_all_answers_make_the_estimate_of_several_draws():
    parts = [draw(range(40), 0.5), draw(range(40, 60), 0.5, range(40))]
    both = answers(range(60))
    total = terms_by_draws(both, parts).sum(axis=0)
    assert mean_of_terms(total) == pytest.approx(correct_by_draws(both, parts, (0.0, 1.0)).value)


def test_few_rows_are_refused():
    assert why_draws_refused(answers(range(10)), [draw(range(10), 0.5)]) == "too_few"


@pytest.mark.parametrize(
    ("course", "population"),
    [("three draws", "0.95"), ("even, then unfinished", "skewed"), ("rules sent some", "0.6")],
)
def test_the_interval_covers_the_truth_without_bias(course, population):
    told = results(course, population, 60, draws=200)
    assert told.covered >= 0.9  # 0.91 or more over 2,000: tools.bench.asking
    assert abs(told.bias) < 4


def prospects(labels=60):
    rated = range(labels)
    estimate = draw_estimate(answers(rated), draw(rated, labels / 80), 1.0)
    return [Prospect(estimate, 8000, np.concatenate([np.full(6000, 0.01), np.full(2000, 0.5)]))]


def test_fewer_ratings_halve_the_interval_where_they_go_to_doubtful_answers():
    mine = prospects(20)
    by_doubt = further_ratings_to_halve(mine, lambda size: probabilities(mine[0].errors, size))
    evenly = further_ratings_to_halve(mine, lambda size: probabilities(np.ones(8000), size))
    assert by_doubt is None or evenly is None or by_doubt < evenly


def verdicts(sent=(), **more):
    yield from (said(row % 5 + 1, row=row) for row in range(1, 81))
    yield from (person(row % 5 + 1, row=row, drawn_with=0.5, **more) for row in range(1, 41))
    yield from (person(1, row=row, draw=-1) for row in sent)


def test_what_a_rule_sent_counts_in_no_corrected_score():
    (plain,) = document(verdicts())["corrected"]
    (with_sent,) = document(verdicts(sent=range(50, 60)))["corrected"]
    assert (with_sent["value"], with_sent["labelled"]) == (plain["value"], 40)


def test_a_later_draw_says_that_there_were_several():
    rows = [*verdicts(known_to=1), *(person(3, row=row, drawn_with=0.4, draw=1) for row in range(45, 60))]
    (score,) = document(rows)["corrected"]
    assert (score["draw"], score["labelled"]) == ("several", 55)


def test_corrected_figures_of_checklists_are_cut_as_their_means():
    metric = ScaledMetric("m", 0, 1, checklist=True)
    judged = [said(-0.5 - row / 100, row=row) for row in range(1, 61)]
    rated = [person(-0.5 - row / 100, row=row, drawn_with=0.5) for row in range(1, 31)]
    (score,) = document([*judged, *rated], metric)["corrected"]
    assert score["refused"] is None
    figures = (score[name] for name in ("people_mean", "judge_mean", "value", "ci_low", "ci_high"))
    assert set(figures) == {0.0}
