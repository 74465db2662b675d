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
from evalsite.tasks import workers
from judging.comparison import kept
from judging.comparison.models import Comparison
from judging.comparison.services import comparison_document
from judging.runs.models import Run
from judging.runs.overrides import override_add
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, first_of, judge, said
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
GONE = "elsewhere:1:1"


@pytest.fixture(autouse=True)
def every_run_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FEW", 0)


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
    return kept.comparison_of(*(Run.objects.get(pk=one.pk) for one in runs))


def woken() -> list[dict[str, int]]:
    tasks = DBTaskResult.objects.filter(task_path="judging.comparison.kept.compare_runs")
    return [task.args_kwargs["kwargs"] for task in tasks]


def test_a_page_reads_nothing_itself_and_two_readers_wake_one_worker(
    client: Client, runs: tuple[Run, Run]
) -> None:
    DBTaskResult.objects.all().delete()
    for _ in range(2):
        response = page(client, runs)
        assert "The result appears here automatically" in response.text
        assert "changes" not in response.context
    assert woken() == [{"comparison_id": Comparison.objects.get().pk}]


def test_what_a_worker_kept_is_what_the_command_prints(client: Client, runs: tuple[Run, Run]) -> None:
    kept.compare_runs.call(comparison_id=compared(runs).pk)
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
    Comparison.objects.update(share=0.42)
    assert "42 %" in page(client, runs, htmx=True, progress=1).text
    kept.work_out(comparison.pk)
    assert page(client, runs, htmx=True, progress=1).headers["HX-Refresh"] == "true"


def test_a_second_worker_leaves_it_alone(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    Comparison.objects.update(state="working", owner=GONE)
    kept.work_out(comparison.pk)
    assert Comparison.objects.get().state == "working"


def test_a_killed_worker_is_followed_by_another(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    Comparison.objects.update(state="working", owner=GONE, tries=1)
    DBTaskResult.objects.all().delete()
    kept.reconcile()
    assert woken() == [{"comparison_id": comparison.pk}]
    kept.work_out(comparison.pk)
    assert Comparison.objects.get().state == "ready"


def test_what_kills_its_workers_is_given_up(client: Client, runs: tuple[Run, Run]) -> None:
    compared(runs)
    Comparison.objects.update(state="working", owner=GONE, tries=kept.MOST_TRIES)
    kept.reconcile()
    assert "could not be compared" in page(client, runs).text
    assert Comparison.objects.get().state == "failed"


def test_a_worker_that_ends_gives_it_back(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    stop = threading.Event()
    stop.set()
    kept.work_out(comparison.pk, stop)
    comparison.refresh_from_db()
    assert (comparison.state, comparison.owner, comparison.tries) == ("waiting", "", 0)


def test_a_worker_that_lost_it_writes_nothing(runs: tuple[Run, Run]) -> None:
    comparison = compared(runs)
    Comparison.objects.update(state="working", owner=GONE)
    comparison.refresh_from_db()
    comparison.owner = "another:1:1"
    with pytest.raises(workers.WorkStopped):
        kept.keep(comparison, [], took=1)
    assert Comparison.objects.get().owner == GONE


def test_an_error_is_shown_and_tried_again_on_demand(client: Client, runs: tuple[Run, Run]) -> None:
    answers = Response.objects.filter(row__version=runs[0].version)
    raw = answers[0].raw
    answers.filter(pk=answers[0].pk).update(raw="{")
    kept.work_out(compared(runs).pk)
    assert "The runs could not be compared" in page(client, runs).text
    assert Comparison.objects.get().state == "failed"
    answers.filter(raw="{").update(raw=raw)
    client.post(f"/p/physics/runs/{runs[1].pk}/compare/?with={runs[0].pk}")
    kept.work_out(Comparison.objects.get().pk)
    assert page(client, runs).context["changes"]


def test_the_last_result_stays_until_a_newer_one_is_there(
    client: Client, runs: tuple[Run, Run], bob: User
) -> None:
    kept.work_out(compared(runs).pk)
    override_add(judgement=first_of(runs[1]), value=9, reason="so", by=bob)
    response = page(client, runs)
    assert "A run has changed since" in response.text
    assert [share.cause for _one, shares in response.context["changes"] for share in shares] == ["parser"] * 2
    kept.work_out(Comparison.objects.get().pk)
    causes = {share.cause for _one, shares in page(client, runs).context["changes"] for share in shares}
    assert causes == {"parser", "overrides"}


def test_old_comparisons_are_forgotten(runs: tuple[Run, Run]) -> None:
    kept.work_out(compared(runs).pk)
    Comparison.objects.update(made_at=timezone.now() - kept.KEPT - timedelta(days=1))
    kept.reconcile()
    assert not Comparison.objects.exists()
