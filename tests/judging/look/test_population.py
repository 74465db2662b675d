"""Which answers are drawn: at random by seed, with known probabilities, never from rows set aside for tests."""

from __future__ import annotations

from collections import Counter

import pytest

from evalsite.accounts.models import Project, User
from judging.engine import planning
from judging.filters.judgement_filter import Filters
from judging.look.models import SetAside
from judging.look.population import draw, draw_by_score, of_run, of_version, rows_of
from judging.look.services import NothingToLookAt, choose_set_aside, look_create, rows_set_aside
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.look.make import a_run_of
from tests.make import a_comparison, a_metric, a_run, a_version


def test_half_of_the_rows_are_set_aside_and_at_most_400() -> None:
    assert len(choose_set_aside(list(range(101)), set(), set(), 1)) == 50
    assert len(choose_set_aside(list(range(5_000)), set(), set(), 1)) == 400


def test_rows_are_set_aside_evenly() -> None:
    counts = Counter(
        row for seed in range(2_000) for row in choose_set_aside(list(range(10)), set(), set(), seed)
    )
    assert all(900 < counts[row] < 1_100 for row in range(10))


def test_rows_of_other_runs_come_first_and_rows_looked_at_never() -> None:
    chosen = choose_set_aside(list(range(20)), {1, 2, 3}, {10, 11}, 7)
    assert {1, 2, 3} <= set(chosen)
    assert not {10, 11} & set(chosen)
    assert len(chosen) == 10


def test_the_same_seed_draws_the_same_answers(project: Project) -> None:
    run = a_run_of(project, rows=30)
    first, again = (draw(of_run(run), 20, 5)[0] for _ in range(2))
    assert first == again
    assert draw(of_run(run), 20, 6)[0] != first


def test_a_draw_stores_the_probability_of_each_answer(project: Project) -> None:
    drawn, count = draw(of_run(a_run_of(project, rows=30)), 20, 5)
    assert (len(drawn), count) == (20, 30)
    assert {answer.drawn_with for answer in drawn} == {20 / 30}


def test_large_runs_are_probed_without_reading_all_ids(project: Project) -> None:
    drawn, count = draw(of_run(a_run_of(project, rows=60)), 20, 5, all_at_once=10)
    assert count == 60
    assert len({answer.response for answer in drawn}) == 20


def test_no_row_that_is_set_aside_is_drawn(project: Project, alice: User) -> None:
    run = a_run_of(project, rows=50)
    look = look_create(project=project, version=run.version, run=run, user=alice, size=100)
    aside = set(SetAside.objects.get(run=run).rows)
    assert len(aside) == 25
    assert look.size == 25
    assert not aside & set(look.answers.values_list("row", flat=True))


def test_a_second_run_of_the_version_sets_the_same_rows_aside(project: Project) -> None:
    run = a_run_of(project, rows=20)
    first = rows_set_aside(version=run.version, run=run)
    other = a_run_of(project, version=run.version)
    assert rows_set_aside(version=run.version, run=other).rows == first.rows


def test_answers_of_a_data_set_are_drawn_without_a_run(project: Project, alice: User) -> None:
    run = a_run_of(project, rows=40)
    look = look_create(project=project, version=run.version, user=alice, size=100)
    assert (look.run, look.size, look.population) == (None, 20, 20)
    assert of_version(run.version).answers.count() == 40
    assert len(rows_of(None, run.version)) == 40


def test_a_filter_narrows_the_draw(project: Project, alice: User) -> None:
    run = a_run_of(project, rows=40, scores=lambda place: 1 if place % 4 == 0 else 9)
    look = look_create(
        project=project, version=run.version, run=run, user=alice, filters=Filters(most=2), size=100
    )
    responses = list(look.answers.values_list("response", flat=True))
    assert run.judgements.filter(response__in=responses, score__gt=2).count() == 0
    assert look.query == "?most=2"


def test_a_filter_without_a_match_says_so(project: Project, alice: User) -> None:
    run = a_run_of(project, rows=4)
    with pytest.raises(NothingToLookAt, match="no_match"):
        look_create(project=project, version=run.version, run=run, user=alice, filters=Filters(most=0))
    assert not SetAside.objects.exists()


def test_a_draw_by_score_takes_half_from_the_low_scores(project: Project) -> None:
    run = a_run_of(project, rows=100, scores=lambda place: 1 if place < 20 else 9)
    result = draw_by_score(of_run(run, metric=run.metrics.get()), 30, 3)
    assert result is not None
    low = set(run.judgements.filter(score=1).values_list("response", flat=True))
    chances = {answer.response in low: answer.drawn_with for answer in result[0]}
    assert chances == {True: pytest.approx(15 / 20), False: pytest.approx(15 / 80)}


def test_equal_scores_tell_no_answers_apart(project: Project) -> None:
    run = a_run_of(project, rows=10, scores=lambda place: 5)
    assert draw_by_score(of_run(run, metric=run.metrics.get()), 5, 3) is None


def test_answers_without_a_judgement_yet_are_not_drawn(project: Project) -> None:
    run = a_run(a_version(project, rows=3), a_metric(JUDGE_URL))
    planning.plan(run.pk)
    assert run.judgements.exists()
    assert of_run(run).answers.count() == 0


def test_answers_that_are_only_compared_are_drawn_once_each(project: Project) -> None:
    run = judge(a_run(a_version(project, rows=4), a_comparison(JUDGE_URL)), lambda place: said("A>B"))
    drawn, count = draw(of_run(run), 8, 1)
    assert count == 8
    assert len({answer.response for answer in drawn}) == 8
