"""Comparison of large runs: computed once by a worker and stored; another worker takes over if that one dies."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from datasets.models import Response
from evalsite.accounts.models import Project, User
from evalsite.models import Derived, Job
from evalsite.tasks import jobs
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.comparison import results
from judging.reports.comparison.results import Comparison
from judging.reports.comparison.services import comparison_document
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, first_of, judge, said
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
GONE = "elsewhere:1:1"


@pytest.fixture(autouse=True)
def every_run_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FEW", 0)


@pytest.fixture
def runs(project: Project) -> tuple[Run, Run]:
    """Two runs over versions with equal rows; the second run's parser reads another number."""
    metrics = a_metric(JUDGE_URL), a_metric(JUDGE_URL, parse={"regex": r"strict (\d+)"})
    first, second = (
        judge(
            a_run(a_version(project, rows=3), metric),
            lambda place, less=less: said(
                place + 2 - less, content=f"Score: [[{place + 2}]], strict {place + 1}"
            ),
        )
        for less, metric in enumerate(metrics)
    )
    return first, second


@pytest.fixture
def client(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def page(client: Client, runs: tuple[Run, Run], *, htmx: bool = False, **query: Any) -> HttpResponse:
    headers = {"HX-Request": "true"} if htmx else {}
    address = f"/p/physics/runs/{runs[1].pk}/compare/"
    answer: HttpResponse = client.get(address, {"with": runs[0].pk, **query}, headers=headers)
    return answer


def compared(runs: tuple[Run, Run]) -> Comparison:
    return results.comparison_of(*(Run.objects.get(pk=one.pk) for one in runs))


def comparison_now(runs: tuple[Run, Run]) -> Comparison:
    comparison = results.stored_comparison(*(Run.objects.get(pk=run.pk) for run in runs))
    assert comparison
    return comparison


def woken() -> list[int]:
    tasks = DBTaskResult.objects.filter(args_kwargs__kwargs__kind="compare_runs")
    return [task.args_kwargs["kwargs"]["object_id"] for task in tasks]


def test_a_page_reads_nothing_itself_and_two_readers_wake_one_worker(
    client: Client, runs: tuple[Run, Run]
) -> None:
    DBTaskResult.objects.all().delete()
    for _ in range(2):
        response = page(client, runs)
        assert "The result appears here automatically" in response.text
        assert "changes" not in response.context
    assert woken() == [Derived.objects.get().pk]


def test_what_a_worker_kept_is_what_the_command_prints(client: Client, runs: tuple[Run, Run]) -> None:
    jobs.run("compare_runs", compared(runs).pk)
    response = page(client, runs)
    document = comparison_document(*runs)
    for one, shares in response.context["changes"]:
        cell = document[one.metric][one.candidate]
        assert (one.before, one.after, one.difference) == (cell["a"], cell["b"], cell["difference"])
        assert {share.cause: share.difference for share in shares} == {
            share["cause"]: share["difference"] for share in cell["shares"]
        }
    assert {share.cause for share in response.context["changes"][0][0].shares} == {"parser"}


def test_the_progress_ends_with_the_whole_page(client: Client, runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    hold = jobs.claim("compare_runs", comparison.pk)
    assert hold
    hold.renew(done=42, total=100)
    progress = page(client, runs, htmx=True, progress=1).text
    assert "42 %" in progress
    assert ">in progress<" in progress
    hold.release()
    jobs.run("compare_runs", comparison.pk)
    assert page(client, runs, htmx=True, progress=1).headers["HX-Refresh"] == "true"


def test_a_second_worker_leaves_it_alone(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    assert jobs.claim("compare_runs", comparison.pk, owner=GONE)
    assert not jobs.run("compare_runs", comparison.pk)


def test_a_killed_worker_is_followed_by_another(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    assert jobs.claim("compare_runs", comparison.pk, owner=GONE)
    DBTaskResult.objects.all().delete()
    jobs.reconcile()
    assert woken() == [comparison.pk]
    jobs.run("compare_runs", comparison.pk)
    assert results.changes_of(comparison_now(runs))


def test_what_kills_its_workers_is_given_up(client: Client, runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    for _ in range(results.MOST_TRIES):
        assert jobs.claim("compare_runs", comparison.pk, owner=GONE)
        jobs.reconcile()
    assert "could not be compared" in page(client, runs).text


def test_a_worker_that_ends_gives_it_back(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    stop = threading.Event()
    stop.set()
    jobs.run("compare_runs", comparison.pk, stop)
    job = Job.objects.get(kind="compare_runs")
    assert (job.state, job.owner, job.deaths) == ("waiting", "", 0)


def test_a_worker_that_lost_it_writes_nothing(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    late = jobs.claim("compare_runs", comparison.pk, owner=GONE)
    assert late
    jobs.reconcile()
    with pytest.raises(jobs.WorkStopped):
        results.store(late, comparison.row, [], revision=1, took=1)
    assert comparison_now(runs).computed_at is None


def test_an_error_is_shown_and_tried_again_on_demand(client: Client, runs: tuple[Run, Run]) -> None:
    answers = Response.objects.filter(row__version=runs[0].version)
    raw = answers[0].raw
    answers.filter(pk=answers[0].pk).update(raw="{")
    jobs.run("compare_runs", compared(runs).pk)
    assert "The runs could not be compared" in page(client, runs).text
    assert comparison_now(runs).failed
    answers.filter(raw="{").update(raw=raw)
    client.post(f"/p/physics/runs/{runs[1].pk}/compare/?with={runs[0].pk}")
    jobs.run("compare_runs", comparison_now(runs).pk)
    assert page(client, runs).context["changes"]


def test_the_last_result_stays_until_a_newer_one_is_there(
    client: Client, runs: tuple[Run, Run], bob: User
) -> None:
    jobs.run("compare_runs", compared(runs).pk)
    override_add(judgement=first_of(runs[1]), value=9, reason="so", by=bob)
    response = page(client, runs)
    assert "A run has changed since" in response.text
    assert [share.cause for _one, shares in response.context["changes"] for share in shares] == ["parser"] * 2
    jobs.run("compare_runs", comparison_now(runs).pk)
    causes = {share.cause for _one, shares in page(client, runs).context["changes"] for share in shares}
    assert causes == {"parser", "overrides"}


def test_a_change_of_the_earlier_run_makes_it_stale(runs: tuple[Run, Run], bob: User) -> None:
    jobs.run("compare_runs", compared(runs).pk)
    assert not compared(runs).under_way
    override_add(judgement=first_of(runs[0]), value=9, reason="so", by=bob)
    compared(runs)
    assert comparison_now(runs).under_way


def test_a_comparison_with_a_deleted_run_ends(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    Run.objects.filter(pk=runs[0].pk).update(deleted_at=timezone.now())
    jobs.run("compare_runs", comparison.pk)
    assert not Job.objects.filter(kind="compare_runs").exists()
    assert not Derived.objects.get(pk=comparison.pk).layout


def test_old_comparisons_are_forgotten(runs: tuple[Run, Run]) -> None:
    jobs.run("compare_runs", compared(runs).pk)
    Derived.objects.update(computed_at=timezone.now() - results.MAX_AGE - timedelta(days=1))
    results.delete_old()
    assert not Derived.objects.exists()


def test_a_page_computes_a_small_comparison_that_waits(
    runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(runs)
    monkeypatch.setattr(results, "FEW", 1_000)
    assert results.changes_of(compared(runs))
