"""Runs with imported judgements are shown and filtered like any other; no models are called."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Project, User
from judging.engine import reconcile, run_worker
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.records.models import IMPORTED, Run, RunState, SourceKind, VerdictSource
from judging.runs import selectors
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    """A run whose judgements have a source, as after an import."""
    run = a_judged_run(project)
    source = VerdictSource.objects.create(run=run, kind=SourceKind.JUDGE, name="their judge")
    run.judgements.update(source=source)
    Run.objects.filter(pk=run.pk).update(kind=IMPORTED)
    return Run.objects.get(pk=run.pk)


def test_it_is_in_the_list_of_runs(run: Run) -> None:
    assert selectors.runs_page(run.project)[0] == [run]


def test_its_judgements_are_found_by_their_row(run: Run) -> None:
    assert set(matching(run, Filters(line=2)).values_list("row__line", flat=True)) == {2}


def test_workers_leave_it_alone(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert run_worker.runs_to_work_on("", None) == set()
    reconcile.reconcile()
    assert Run.objects.get(pk=run.pk).state == RunState.RUNNING


def test_nothing_of_it_can_be_judged_again(run: Run, alice: User) -> None:
    assert run_rejudge(run=run, selection=Selection(Filters()), user=alice) == 0


@pytest.mark.parametrize("action", ["pause", "resume", "cancel", "retry", "keep-answers"])
def test_it_cannot_be_controlled(run: Run, alice: User, client_of: ClientOf, action: str) -> None:
    answer = client_of(alice).post(f"/p/{run.project.slug}/runs/{run.pk}/{action}/")
    assert answer.status_code == 404


def test_the_page_to_re_judge_says_why_not(run: Run, alice: User, client_of: ClientOf) -> None:
    answer = client_of(alice).get(f"/p/{run.project.slug}/runs/{run.pk}/judge-again/")
    assert answer.status_code == 409
    assert "were made elsewhere" in answer.content.decode()


def test_its_page_offers_no_re_parsing(run: Run, alice: User, client_of: ClientOf) -> None:
    page = client_of(alice).get(f"/p/{run.project.slug}/runs/{run.pk}/").content.decode()
    assert "Re-parse" not in page


def test_the_page_of_a_run_reads_its_metrics_once(project: Project, alice: User, client_of: ClientOf) -> None:
    run = a_judged_run(project)
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    with CaptureQueriesContext(connection) as queries:
        client_of(alice).get(f"/p/{project.slug}/runs/{run.pk}/")
    assert sum('FROM "judging_runmetric"' in query["sql"] for query in queries) == 1
