"""Planning: from a run's selection to its judgements and chunks."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError

from datasets.models import Candidate, Row, Version
from evalsite.accounts.models import Project
from judging.engine import planning
from judging.engine.stopping import run_cancel
from judging.records.models import Judgement, Run, RunState
from judging.runs.services import RunOptions, frozen, run_create, run_resume
from tests.make import a_metric, a_run, a_version

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project, rows=5, answers=2)


def planned(version: Version, **options: object) -> Run:
    run = a_run(version, a_metric(URL), **options)
    planning.plan(run.pk)
    return Run.objects.get(pk=run.pk)


def test_every_answer_of_every_row_is_to_be_judged_by_every_metric(version: Version) -> None:
    run = a_run(version, a_metric(URL), a_metric(URL, name="style"))
    planning.plan(run.pk)
    assert run.judgements.count() == 5 * 2 * 2 * 2
    assert set(run.judgements.values_list("state", "reason")) == {("not_run", "waiting")}


def test_positions_follow_rows_then_candidates_then_answers(version: Version) -> None:
    run = planned(version)
    order = list(
        run.judgements.order_by("position").values_list("row__line", "candidate__name", "response__number")
    )
    assert order == sorted(order)
    assert list(run.judgements.order_by("position").values_list("position", flat=True)) == list(range(20))


def test_bad_rows_are_not_judged(version: Version) -> None:
    Row.objects.filter(version=version, line=1).update(valid=False)
    assert planned(version).rows == 4


def test_a_sample_is_drawn_by_its_seed(version: Version) -> None:
    drawn = [
        set(planned(version, sample_size=3, seed=seed).judgements.values_list("row__line", flat=True))
        for seed in (7, 7, 8)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 3


def test_a_sample_larger_than_the_set_is_the_set(version: Version) -> None:
    assert planned(version, sample_size=50).rows == 5


def test_chunks_cover_every_position_once(version: Version) -> None:
    run = planned(version)
    planning.make_chunks(run.pk, 20, 250)
    covered = [n for chunk in run.chunks.order_by("first") for n in range(chunk.first, chunk.last + 1)]
    assert covered == list(range(270))


def test_planning_twice_plans_once(version: Version) -> None:
    run = planned(version)
    planning.plan(run.pk)
    assert run.judgements.count() == 20


@pytest.fixture
def two_rows_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SLICE", 2)


@pytest.mark.usefixtures("two_rows_a_slice")
@pytest.mark.parametrize(
    "options", [{}, {"sample_size": 3, "seed": 7}, {"options": RunOptions(stop_width=0.1), "seed": 7}]
)
def test_in_slices_the_plan_is_the_same(
    version: Version, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    sliced = planned(version, **options)
    monkeypatch.setattr(planning, "SLICE", 100)
    whole = planned(version, **options)
    assert laid_out(sliced) == laid_out(whole) != []
    assert (sliced.total, sliced.rows) == (whole.total, whole.rows)


@pytest.mark.usefixtures("two_rows_a_slice")
def test_a_plan_that_was_interrupted_is_resumed_behind_its_last_slice(version: Version) -> None:
    run = a_run(version, a_metric(URL))
    rows = planning.rows_to_plan(run)
    planning.plan_slice(run.pk, rows[:2], 0)
    assert Run.objects.get(pk=run.pk).state == RunState.PLANNING
    planning.plan(run.pk)
    assert laid_out(run) == laid_out(planned(version))


def test_a_slice_that_someone_else_has_planned_is_left_alone(version: Version) -> None:
    run = a_run(version, a_metric(URL))
    rows = planning.rows_to_plan(run)
    assert planning.plan_slice(run.pk, rows[:2], 0) == 8
    assert planning.plan_slice(run.pk, rows[:2], 0) is None


def test_a_run_cancelled_while_it_is_planned_stays_so_and_can_be_taken_up(version: Version) -> None:
    run = a_run(version, a_metric(URL))
    rows = planning.rows_to_plan(run)
    planning.plan_slice(run.pk, rows[:2], 0)
    run_cancel(run)
    assert planning.plan_slice(run.pk, rows[2:4], 8) is None
    run_resume(run)
    planning.plan(run.pk)
    assert laid_out(run) == laid_out(planned(version))


def laid_out(run: Run) -> list[tuple[Any, ...]]:
    fields = ("position", "row__line", "candidate__name", "response__number", "run_metric__number")
    return list(run.judgements.order_by("position").values_list(*fields))


def test_a_run_holds_its_own_copy_of_what_it_judges_by(version: Version) -> None:
    run = planned(version)
    frozen_text = run.metrics.get().definition
    assert URL in frozen_text
    assert frozen(a_metric(URL)).to_json() == frozen_text


def test_a_run_without_answers_is_refused_in_a_sentence(project: Project, version: Version) -> None:
    Candidate.objects.all().delete()
    with pytest.raises(ValidationError, match="no answers to judge"):
        a_run(version, a_metric(URL))


def test_a_version_with_bad_rows_is_refused_until_they_are_left_out(version: Version) -> None:
    Version.objects.filter(pk=version.pk).update(valid_rows=4)
    version.refresh_from_db()
    with pytest.raises(ValidationError, match="invalid rows"):
        a_run(version, a_metric(URL))


def test_a_metric_is_chosen_once(version: Version) -> None:
    with pytest.raises(ValidationError, match="only once"):
        a_run(version, a_metric(URL), a_metric(URL))


def test_a_candidate_of_another_version_is_refused(project: Project, version: Version) -> None:
    other = a_version(project)
    with pytest.raises(ValidationError, match="another version"):
        run_create(
            project=project,
            name="mixed",
            version=version,
            candidates=list(other.candidates.all()),
            metrics=[],
            user=None,
        )


def test_a_value_without_the_state_scored_is_refused_by_the_database(version: Version) -> None:
    planned(version)
    with pytest.raises(IntegrityError):
        Judgement.objects.filter(position=0).update(value="5", score=5.0)


def test_a_state_scored_without_a_value_is_refused_by_the_database(version: Version) -> None:
    planned(version)
    with pytest.raises(IntegrityError):
        Judgement.objects.filter(position=0).update(state="scored", reason="")


def test_an_empty_plan_is_a_finished_run(version: Version) -> None:
    Row.objects.filter(version=version).update(valid=False)
    assert planned(version).state == RunState.FINISHED


@pytest.mark.parametrize(("count", "sizes"), [(4_999, {100, 99}), (30_000, {200})])
def test_chunks_grow_where_a_run_has_many_of_them(version: Version, count: int, sizes: set[int]) -> None:
    run = a_run(version, a_metric(URL))
    planning.make_chunks(run.pk, 0, count)
    assert {chunk.last - chunk.first + 1 for chunk in run.chunks.all()} == sizes
