"""What a worker that died had under way is counted; what had come to an end before is not."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project
from judging.runs import planning
from judging.runs.models import Run
from judging.runs.worker.journal import Journal, settle_dead
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    planning.plan(run.pk)
    return run


def counted(run: Run) -> int:
    settle_dead()
    run.refresh_from_db()
    return run.calls_again


def test_calls_without_an_end_are_counted(run: Run) -> None:
    first, second, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    for judgement in (first, first, second):
        journal.asking(judgement)
    assert counted(run) == 3


def test_calls_that_failed_before_are_not(run: Run) -> None:
    first, second, third, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    for judgement in (first, first, second, third):
        journal.asking(judgement)
    journal.failed(first)
    journal.failed(second)
    assert counted(run) == 2


def test_nor_where_others_were_stored_meanwhile(run: Run) -> None:
    first, second, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    for judgement in (first, second, second):
        journal.asking(judgement)
    journal.failed(second)
    run.judgements.filter(pk=first).update(state="error", reason="timeout", finished_at=1.0)
    journal.stored([first])
    assert counted(run) == 1
