"""The corrected score against ppi_py, and when it is not given."""

import numpy as np
import pytest

from judging.core.statistics.numeric import (
    Labelled,
    inverse_probability,
    prediction_powered,
    ratings_to_halve,
)
from tests.judging.core.statistics.cast import document, person, said

PEOPLE = np.array([7, 4, 9, 6, 8, 3, 5, 7, 2, 8, 6, 9.0])
JUDGE = np.array([8, 5, 9, 6, 7, 4, 6, 8, 4, 9, 6, 9.0])
REST = np.array([5, 6, 8, 9, 4, 7, 6, 8, 9, 3, 6, 7, 5, 8, 7, 6, 9, 4, 8, 7, 6, 5, 7, 8.0])
GIVEN = Labelled(PEOPLE, JUDGE, np.full(12, 1 / 3), REST)


def scored(chances, judged=range(1, 9), labelled=(1, 2, 3)):
    """Scores by a judge, and by a person on the `labelled` rows, drawn with the probabilities `chances`."""
    yield from (said(row % 5 + 1, row=row) for row in judged)
    for row, chance in zip(labelled, chances, strict=True):
        yield person(row % 5 + 2, row=row, drawn_with=chance)


def corrected(*chances, **options):
    (found,) = document(scored(chances, **options))["corrected"]
    return found


def test_value_and_interval_are_those_of_ppi_py():
    # ppi_py 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(PEOPLE, JUDGE, REST, alpha=0.05)
    found = prediction_powered(GIVEN)
    assert found.value == pytest.approx(6.02570368)
    assert found.value - 1.959963985 * found.se == pytest.approx(5.27420954)
    assert found.value + 1.959963985 * found.se == pytest.approx(6.77719782)


def test_a_judge_that_says_nothing_about_people_is_left_out():
    useless = Labelled(PEOPLE, -JUDGE, GIVEN.drawn_with, -REST)
    found = prediction_powered(useless)
    assert (found.weight, found.value) == (0, pytest.approx(PEOPLE.mean()))


def test_a_judge_that_never_varies_leaves_people_s_mean():
    found = prediction_powered(Labelled(PEOPLE, np.full(12, 5.0), GIVEN.drawn_with, np.full(24, 5.0)))
    assert (found.weight, found.value) == (0, pytest.approx(PEOPLE.mean()))


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(400):
        truth = rng.normal(6, 2, 300)
        judge = truth + rng.normal(1, 1, 300)
        drawn = rng.permutation(300) < 60
        found = prediction_powered(
            Labelled(truth[drawn], judge[drawn], np.full(drawn.sum(), 0.2), judge[~drawn])
        )
        hits += abs(found.value - 6) < 1.96 * found.se
    assert 0.9 < hits / 400 < 0.98


def test_unequal_probabilities_are_weighed_and_unbiased():
    rng, found = np.random.default_rng(2), []
    truth = rng.normal(6, 2, 400)
    judge = truth + rng.normal(1, 1, 400)
    chance = np.where(truth > 6, 0.6, 0.1)
    for _ in range(300):
        drawn = rng.random(400) < chance
        given = Labelled(truth[drawn], judge[drawn], chance[drawn], judge[~drawn])
        found.append(inverse_probability(given).value)
    assert np.mean(found) == pytest.approx(truth.mean(), abs=0.03)


def test_more_ratings_halve_the_interval():
    more = ratings_to_halve(GIVEN)
    assert more > 3 * 12  # without the judge, three times as many more would be needed
    assert ratings_to_halve(Labelled(PEOPLE, JUDGE, GIVEN.drawn_with, np.zeros(0))) == 36


def test_labels_of_items_that_were_not_drawn_at_random_are_refused():
    found = corrected(np.nan, 0.5, 0.5)
    assert (found["refused"], found["value"], found["ci_low"], found["lambda"]) == (
        "not_random",
        None,
        None,
        None,
    )
    assert (found["people_mean"], found["judge_mean"]) == (4.0, 3.0)


def test_one_label_is_too_few():
    assert corrected(0.5, labelled=(1,))["refused"] == "too_few"


def test_labelled_and_judged_are_counted_apart():
    found = corrected(0.5, 0.5, 0.5)
    assert (found["labelled"], found["judged"], found["refused"]) == (3, 5, None)
    assert found["ci_low"] <= found["value"] <= found["ci_high"]


def test_differing_probabilities_change_the_figure():
    assert corrected(0.5, 0.5, 0.5)["value"] != corrected(0.9, 0.5, 0.1)["value"]


def test_without_people_there_is_nothing_to_correct_by():
    assert document(scored((), labelled=()))["corrected"] == []
