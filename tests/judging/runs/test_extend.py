"""Extending a run to more rows keeps its judgements, repeats no calls, and updates its reports."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.core.judges.scripted import ScriptedJudge
from judging.engine import planning
from judging.engine.stopping import run_cancel
from judging.records.models import Judgement, Reading, Run, RunState
from judging.reports.frames import run_frame
from judging.reports.selectors import wall_seconds
from judging.runs.services import run_extend, run_resume, run_retry
from tests.conftest import ClientOf
from tests.judging.judged import failed, judge, said
from tests.judging.people.make import about, rate_all
from tests.judging.working import an_endpoint, run_on, work
from tests.make import a_metric, a_run, a_version

URL = "http://127.0.0.1:9/v1"

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[ScriptedJudge]:
    with ScriptedJudge("Score: [[7]]") as judge:
        yield judge


def judged(project: Project, size: int | None = 3, rows: int = 8, **options: object) -> Run:
    """A finished run over a sample, judged without a worker."""
    run = a_run(a_version(project, rows=rows), a_metric(URL), sample_size=size, seed=7, **options)
    return finished(run)


def finished(run: Run) -> Run:
    """Judge the run's pending judgements; return the run."""
    if Run.objects.get(pk=run.pk).state == RunState.PLANNING:
        planning.plan(run.pk)
    return judge(run, lambda _: said(7))


def judged_rows(run: Run) -> set[int]:
    return set(run.judgements.filter(current=True).values_list("row__line", flat=True))


def test_an_extension_that_stopped_while_it_was_planned_goes_on_when_resumed(project: Project) -> None:
    run = judged(project)
    run_extend(run, 5)
    run_cancel(run)
    assert run_resume(Run.objects.get(pk=run.pk))
    run = finished(run)
    assert (run.state, run.rows, run.not_run) == (RunState.FINISHED, 5, 0)


@pytest.mark.django_db(transaction=True)
def test_further_rows_are_judged_and_nothing_is_asked_twice(project: Project, server: ScriptedJudge) -> None:
    run = work(run_on(an_endpoint(project, server.url), 8, sample_size=3, seed=7))
    before = dict(run.judgements.values_list("pk", "finished_at"))
    assert (run.state, run.rows, run.calls) == (RunState.FINISHED, 3, 3)
    assert run_extend(run, 5)
    run = work(run)
    assert (run.state, run.rows, run.total, run.scored, run.calls) == (RunState.FINISHED, 5, 5, 5, 5)
    assert before.items() <= dict(run.judgements.values_list("pk", "finished_at")).items()


def test_the_rows_of_the_first_sample_are_in_the_larger_one(project: Project) -> None:
    run = judged(project)
    first = judged_rows(run)
    run_extend(run, 6)
    second = judged_rows(finished(run))
    assert first < second
    assert len(second) == 6


def test_every_row_is_judged_once_in_the_end(project: Project) -> None:
    run = judged(project)
    run_extend(run, 5)
    run_extend(finished(run), None)
    run = finished(run)
    assert judged_rows(run) == set(range(1, 9))
    assert (run.total, run.rows, run.sample_size) == (16, 8, None)
    assert not run.extendable


def test_planning_that_was_cut_short_goes_on_with_the_same_rows(project: Project) -> None:
    cut, whole = judged(project), judged(project)
    for run in (cut, whole):
        run_extend(run, 7)
    rows = planning.rows_to_plan(Run.objects.get(pk=cut.pk))
    assert planning.plan_slice(cut.pk, rows[:2], cut.total) == 4
    assert judged_rows(finished(cut)) == judged_rows(finished(whole))


def test_a_run_with_further_attempts_is_extended_behind_them(project: Project) -> None:
    run = judge_with_error(project)
    run_retry(run)
    run = finished(run)
    run_extend(run, 5)
    run = finished(run)
    assert (run.rows, run.errors, run.not_run) == (5, 0, 0)
    positions = list(Judgement.objects.filter(run=run).values_list("position", flat=True))
    assert len(set(positions)) == len(positions)


def test_answers_that_people_rated_before_count_as_drawn_from_all_rows(project: Project, rita: User) -> None:
    run = judged(project, size=4)
    rate_all(about(run, [rita]), rita, 8)
    run_extend(run, None)
    people = run_frame(finished(run)).query("source == 'rater'")
    assert set(people["drawn_with"]) == {4 / 8}


def judge_with_error(project: Project) -> Run:
    run = a_run(a_version(project, rows=8), a_metric(URL), sample_size=3, seed=7)
    planning.plan(run.pk)
    return judge(run, lambda place: failed() if place == 0 else said(7))


def test_two_who_extend_at_once_extend_once(project: Project) -> None:
    run, same = judged(project), Run.objects.get(name__isnull=False)
    assert run_extend(run, 5)
    assert not run_extend(same, 5)
    assert Run.objects.get(pk=run.pk).sample_size == 5


@pytest.mark.parametrize("rows", [0, 2, 3])
def test_not_more_rows_is_no_extension(project: Project, rows: int) -> None:
    run = judged(project)
    assert not run_extend(run, rows)
    assert Run.objects.get(pk=run.pk).state == RunState.FINISHED


def test_a_run_that_was_read_again_is_not_extended(project: Project) -> None:
    run = judged(project)
    Reading.objects.create(run_metric=run.metrics.get(), number=1, definition=run.metrics.get().definition)
    with pytest.raises(ValidationError, match="would not be comparable"):
        run_extend(run, 5)


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 302), ("adam", 302), ("bob", 403), ("rita", 403), ("charlie", 404)]
)
def test_who_may_run_may_extend(
    name: str, status: int, project: Project, cast: dict[str, User], client_of: ClientOf
) -> None:
    run = judged(project)
    answer = client_of(cast[name]).post(f"/p/physics/runs/{run.pk}/extend/", {"rows": 5})
    assert answer.status_code == status
    assert Run.objects.get(pk=run.pk).sample_size == (5 if status == 302 else 3)


def test_the_page_offers_it_and_the_log_keeps_it(project: Project, alice: User, client_of: ClientOf) -> None:
    run, client = judged(project), client_of(alice)
    address = f"/p/physics/runs/{run.pk}/"
    assert "All rows would add about 10 judgements" in client.get(address).text
    client.post(f"{address}extend/", {"all": "1"})
    assert AuditEntry.objects.filter(action="run.extended").count() == 1
    assert "All rows would add" not in client.get(address).text


def test_the_time_between_end_and_extension_is_no_part_of_the_duration(project: Project) -> None:
    run = judged(project)
    started = timezone.now() - timedelta(hours=2)
    Run.objects.filter(pk=run.pk).update(started_at=started, finished_at=started + timedelta(seconds=30))
    run_extend(run, None)
    run = finished(run)
    assert 30 <= (wall_seconds(run) or 0) < 600
