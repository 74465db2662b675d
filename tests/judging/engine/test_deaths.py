"""A run during which workers die is worked on alone and then set aside; it stops no other run."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from evalsite.tasks import workers
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.engine import chunks, deaths, planning, run_worker
from judging.engine.journal import Journal, Work, WorkKey
from judging.engine.reconcile import free_dead_leases
from judging.records.models import Chunk, Judgement, Run, RunState
from judging.runs import services
from tests.conftest import ClientOf
from tests.deadlines import TIMEOUT
from tests.make import a_metric, a_project, a_run, a_version


def dead(number: int) -> str:
    """The name of a process that was on this host."""
    return f"{socket.gethostname()}:1:{-number}"


_numbers = iter(range(1, 10_000))


def a_waiting_run(project: Project | None = None, url: str = "http://127.0.0.1:9/v1") -> Run:
    return a_run(a_version(project or a_project(f"Project {next(_numbers)}"), rows=30), a_metric(url))


def a_running_run(project: Project | None = None, url: str = "http://127.0.0.1:9/v1") -> Run:
    run = a_waiting_run(project, url)
    planning.plan(run.pk)
    run.refresh_from_db()
    return run


def die(*runs: Run, asked: int = 1) -> None:
    """A worker leases a chunk of each run, sends requests for the first judgements, and is killed."""
    owner = dead(next(_numbers))
    journal = Journal(owner)
    for run in runs:
        assert chunks.lease(run.pk, owner)
        for pk in (
            run.judgements.filter(state="not_run").order_by("position").values_list("pk", flat=True)[:asked]
        ):
            journal.sent(WorkKey(Work.JUDGEMENT, pk))
    free_dead_leases()
    for run in runs:
        run.refresh_from_db()


def die_planning(run: Run, *beside: Run) -> None:
    """A worker is killed while it plans a run and judges others."""
    owner = dead(next(_numbers))
    Run.objects.filter(pk=run.pk).update(planner=owner)
    assert all(chunks.lease(other.pk, owner) for other in beside)
    free_dead_leases()
    run.refresh_from_db()


def store(run: Run, *, first: bool) -> None:
    """Store one judgement: the first open one, or the last."""
    pk = run.judgements.filter(state="not_run").order_by("position" if first else "-position")[0].pk
    Judgement.objects.filter(pk=pk).update(
        state="scored", value="1", score=1, reason="", finished_at=time.time() + 1
    )
    Run.objects.filter(pk=run.pk).update(scored=run.scored + 1)


def set_aside(run: Run) -> bool:
    return (run.state, run.problem) == (RunState.PAUSED, "worker_died")


@pytest.mark.django_db
def test_after_two_deaths_without_progress_a_run_is_set_aside() -> None:
    run = a_running_run()
    die(run)
    assert (run.state, run.worker_deaths) == (RunState.RUNNING, 1)
    die(run)
    assert set_aside(run)
    assert not Chunk.objects.exclude(owner="").exists()


@pytest.mark.django_db
def test_a_run_that_went_on_in_between_is_not() -> None:
    run = a_running_run()
    for _ in range(5):
        die(run)
        assert (run.state, run.worker_deaths) == (RunState.RUNNING, 1)
        store(run, first=True)


@pytest.mark.django_db
def test_the_same_request_lost_again_and_again_sets_a_run_aside_that_goes_on_otherwise() -> None:
    run = a_running_run()
    for _ in range(deaths.MAX_DEATHS):
        assert run.state == RunState.RUNNING
        die(run)
        store(run, first=False)
    run.refresh_from_db()
    assert set_aside(run)


@pytest.mark.django_db
def test_of_two_runs_neither_is_set_aside_before_it_was_tried_alone() -> None:
    harmless, harmful = a_running_run(), a_running_run()
    die(harmless, harmful)
    die(harmless, harmful)
    assert (harmless.state, harmful.state) == (RunState.RUNNING, RunState.RUNNING)
    die(harmful)
    assert set_aside(harmful)


@pytest.mark.django_db
def test_after_two_deaths_while_it_is_planned_a_run_is_set_aside() -> None:
    run = a_waiting_run()
    die_planning(run)
    assert (run.state, run.worker_deaths, run.planner) == (RunState.PLANNING, 1, "")
    die_planning(run)
    assert set_aside(run)


@pytest.mark.django_db
def test_a_run_of_which_a_slice_was_planned_in_between_is_not() -> None:
    run = a_waiting_run()
    rows = planning.rows_to_plan(run)
    for slice_of_rows in (rows[:10], rows[10:20]):
        die_planning(run)
        assert planning.plan_slice(run.pk, slice_of_rows, run.total)
        run.refresh_from_db()
    assert (run.state, run.worker_deaths) == (RunState.PLANNING, 0)


@pytest.mark.django_db
def test_a_run_that_was_judged_beside_the_planned_one_is_only_suspected() -> None:
    harmful, harmless = a_waiting_run(), a_running_run()
    die_planning(harmful, harmless)
    die_planning(harmful, harmless)
    harmless.refresh_from_db()
    assert (harmless.state, harmless.worker_deaths) == (RunState.RUNNING, 2)
    die_planning(harmful)
    assert set_aside(harmful)


@pytest.mark.django_db
def test_the_end_of_planning_releases_a_run() -> None:
    run = a_waiting_run()
    run_worker.plan_claimed(run.pk, workers.owner())
    run.refresh_from_db()
    assert (run.state, run.planner) == (RunState.RUNNING, "")


@pytest.mark.django_db
def test_a_run_that_a_living_worker_plans_is_left_to_it() -> None:
    run = a_waiting_run()
    Run.objects.filter(pk=run.pk).update(planner=workers.owner())
    free_dead_leases()
    run_worker.plan_claimed(run.pk, dead(next(_numbers)))
    run.refresh_from_db()
    assert (run.state, run.planner, chunks.has_waiting_work()) == (RunState.PLANNING, workers.owner(), False)


@pytest.mark.django_db
def test_a_run_whose_planner_on_another_host_is_silent_is_planned_again() -> None:
    run = a_waiting_run()
    Run.objects.filter(pk=run.pk).update(planner="elsewhere:1:1")
    free_dead_leases()
    run.refresh_from_db()
    assert (run.planner, run.worker_deaths) == ("", 0)


@pytest.mark.django_db
def test_a_worker_that_stops_in_order_is_no_death() -> None:
    run, owner = a_running_run(), workers.owner()
    lease = chunks.lease(run.pk, owner)
    assert lease
    free_dead_leases()
    chunks.release([lease.chunk], owner)
    assert Run.objects.get(pk=run.pk).worker_deaths == 0


@pytest.mark.django_db
def test_a_death_is_counted_once() -> None:
    run = a_running_run()
    die(run)
    free_dead_leases()
    assert Run.objects.get(pk=run.pk).worker_deaths == 1


@pytest.mark.django_db
def test_a_suspected_run_that_goes_on_is_cleared() -> None:
    run = a_running_run()
    die(run)
    assert deaths.suspects([run.pk]) == deaths.Suspects(frozenset({run.pk}), (run.pk,))
    store(run, first=True)
    assert deaths.suspects([run.pk]) == deaths.Suspects()
    assert Run.objects.get(pk=run.pk).worker_deaths == 0


@pytest.mark.django_db
def test_a_suspected_run_that_another_worker_tries_is_not_taken() -> None:
    run = a_running_run()
    Run.objects.filter(pk=run.pk).update(worker_deaths=1)
    chunks.lease(run.pk, workers.owner())
    assert deaths.suspects([run.pk]) == deaths.Suspects(frozenset({run.pk}), ())


@pytest.mark.django_db
def test_a_person_can_continue_it_and_the_page_says_why_it_stopped(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_running_run(project)
    die(run)
    die(run)
    page = client_of(alice).get(reverse("runs:detail", args=(project.slug, run.pk))).content.decode()
    assert "This run was set aside so that other runs can continue." in page
    assert "Worker processes died repeatedly" in page
    assert "Resume" in page
    assert services.run_resume(run)
    run.refresh_from_db()
    assert (run.state, run.worker_deaths) == (RunState.RUNNING, 0)


@pytest.mark.django_db(transaction=True)
def test_suspected_runs_are_tried_one_by_one_and_before_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # A run that has gone on is not suspected any longer, and then the others start: let each end before it is stored.
    monkeypatch.setattr(run_worker, "FLUSH_SECONDS", TIMEOUT)
    calls: list[str] = []

    def answering(asked: Received) -> str:
        calls.append(asked.path)
        return "[[5]]"

    with ScriptedJudge(answering) as judge:
        base = judge.url.removesuffix("/v1")
        other, *suspected = [a_running_run(url=f"{base}/{name}/v1") for name in "cab"]
        die(*suspected)
        while chunks.has_waiting_work():
            run_worker.work("test:1:1", stop=threading.Event())
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.FINISHED}
    assert calls == sorted(calls)
    assert len(calls) == 3 * other.total


@pytest.mark.django_db(transaction=True)
def test_an_error_of_ours_in_one_run_does_not_stop_the_others() -> None:
    with ScriptedJudge("[[5]]") as judge:
        broken, healthy = a_running_run(url=judge.url), a_running_run(url=judge.url)
        broken.metrics.update(definition="{")
        run_worker.work("test:1:1", stop=threading.Event())
    broken.refresh_from_db()
    healthy.refresh_from_db()
    assert (broken.state, broken.problem) == (RunState.PAUSED, "work_failed")
    assert healthy.state == RunState.FINISHED
