"""Probabilities of a draw by doubt."""

import numpy as np
import pytest

from judging.core.people.asking import Doubts, distances, learnt_errors, poisson_draw, probabilities

ERRORS = np.concatenate([np.full(90, 0.0), np.full(9, 1.0), [100.0]])


def test_about_as_many_are_expected_as_were_asked_for():
    assert probabilities(ERRORS, 20).sum() == pytest.approx(20)


def test_none_lies_below_a_quarter_of_the_mean():
    for size in (1, 20, 60, 95):
        chances = probabilities(ERRORS, size)
        assert chances.min() >= chances.mean() / 4 * (1 - 1e-9)
        assert chances.max() <= 1


def test_all_are_drawn_where_more_are_asked_for_than_there_are():
    assert probabilities(ERRORS, 200).tolist() == [1.0] * 100


def test_without_any_doubt_the_draw_is_even():
    assert np.ptp(probabilities(np.zeros(10), 3)) == 0


def test_each_answer_is_drawn_with_its_probability():
    chances = probabilities(ERRORS, 20)
    counts = np.zeros(100)
    for seed in range(2000):
        counts[poisson_draw(chances, seed)] += 1
    error = np.sqrt(chances * (1 - chances) / 2000)
    assert (np.abs(counts / 2000 - chances) <= 4 * error + 1e-12).all()


def test_the_drawn_come_in_random_order():
    first = [int(poisson_draw(np.ones(10), seed)[0]) for seed in range(300)]
    assert set(first) == set(range(10))


def test_a_score_unlike_the_others_of_its_row_is_far():
    scores = np.array([5.0, 5, 1, 4, 4, 4])
    far = distances(scores, np.array([1, 2, 3, 1, 2, 3]), np.array([1, 1, 1, 2, 2, 2]), np.arange(6))
    assert far.argmax() == 2


def test_answers_without_a_score_have_no_distance():
    far = distances(np.array([np.nan, 1.0]), np.array([1, 1]), np.array([1, 2]), np.array([3, 4]))
    assert far.tolist() == [0.0, 0.0]


def test_errors_are_learnt_where_ratings_show_them():
    spread = np.tile([0.0, 1.0], 50)
    doubts = Doubts(spread, np.zeros(100))
    squared = np.where(np.arange(100) < 60, spread * 0.5, np.nan)
    learnt = learnt_errors(doubts, 1.0, squared)
    assert learnt is not None
    assert learnt[-2:].tolist() == pytest.approx([0.0, 0.5])


def test_with_few_ratings_nothing_is_learnt():
    doubts = Doubts(np.ones(100), np.ones(100))
    assert learnt_errors(doubts, 1.0, np.where(np.arange(100) < 10, 1.0, np.nan)) is None
