"""A run with early stopping ends once its result is known, and not before."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.engine import planning
from judging.engine.early_stopping import row_scores
from judging.records.models import Run, RunState
from judging.runs import services
from judging.runs.services import RunOptions
from judging.teamwork.marks import Change, change_one
from tests.judging.judged import a_judged_run
from tests.judging.working import work
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def steady(asked: Received) -> Answer:
    return Answer("Score: [[7]]", delay=0.1)


def early(judge: ScriptedJudge, width: float | None, rows: int = 1500) -> Run:
    version = a_version(a_project(), rows=rows, models=("alpha",))
    return a_run(version, a_metric(judge.url), options=RunOptions(stop_width=width))


def test_a_run_ends_when_its_mean_is_known() -> None:
    with ScriptedJudge(steady) as judge:
        run = work(early(judge, 0.5))
    assert (run.state, run.problem) == (RunState.CANCELLED, "settled")
    assert 0 < run.scored < 1500


def test_what_was_left_is_judged_when_someone_wants_it() -> None:
    with ScriptedJudge(steady) as judge:
        run = work(early(judge, 0.5, rows=1000))
        services.run_resume(run)
        run = work(run)
    assert (run.state, run.scored, run.problem) == (RunState.FINISHED, 1000, "")


def test_a_retry_in_a_run_that_ended_early_is_not_ended_early_again() -> None:
    run = a_judged_run(a_project(), rows=2, models=("alpha",))
    Run.objects.filter(pk=run.pk).update(state=RunState.CANCELLED, problem="settled", stop_width=0.5)
    run.judgements.filter(position=0).update(state="error", reason="connect", value=None, score=None)
    assert services.run_retry(run) == 1
    run.refresh_from_db()
    assert (run.state, run.problem, run.stop_width) == (RunState.RUNNING, "", None)


def test_a_mean_that_is_not_known_exactly_enough_is_judged_to_the_end() -> None:
    with ScriptedJudge("[[7]]") as judge:
        assert work(early(judge, 0.001, rows=120)).state == RunState.FINISHED


def test_what_is_excluded_does_not_count(bob: User, project: Project) -> None:
    run = a_judged_run(project, rows=2, models=("alpha",))
    excluded = run.judgements.get(score=1)
    change_one(judgement=excluded, change=Change("exclude", reason="broken"), by=bob)
    assert list(row_scores(run, run.total).values()) == [[2]]


def test_rows_are_judged_in_random_order_only_where_a_run_may_end_early(db: None) -> None:
    with ScriptedJudge("[[7]]") as judge:
        runs = [early(judge, width, rows=40) for width in (None, 0.5)]
    for run in runs:
        planning.plan(run.pk)
    plain, drawn = (
        list(run.judgements.order_by("position").values_list("row__line", flat=True)) for run in runs
    )
    assert plain == list(range(1, 41))
    assert sorted(drawn) == plain
    assert drawn != plain
