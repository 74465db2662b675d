"""Calls in flight when a worker died are counted; completed ones are not counted again."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest
from django.conf import settings

from evalsite.accounts.models import Project
from judging.runs import planning
from judging.runs.models import Run
from judging.runs.worker.journal import FOLDER, InFlight, Journal, Work, WorkInFlight, WorkKey, settle_dead
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    planning.plan(run.pk)
    return run


def of(judgement: int) -> WorkKey:
    return WorkKey(Work.JUDGEMENT, judgement)


def counted(run: Run) -> int:
    settle_dead()
    run.refresh_from_db()
    return run.calls_again


def test_calls_without_an_end_are_counted(run: Run) -> None:
    first, second, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    for judgement in (first, first, second):
        journal.sent(of(judgement))
    assert counted(run) == 3


def test_calls_that_failed_before_are_not(run: Run) -> None:
    first, second, third, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    for judgement in (first, first, second, third):
        journal.sent(of(judgement))
    journal.failed(of(first))
    journal.failed(of(second))
    assert counted(run) == 2


def test_nor_where_others_were_stored_meanwhile(run: Run) -> None:
    first, second, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    for judgement in (first, second, second):
        journal.sent(of(judgement))
    journal.failed(of(second))
    run.judgements.filter(pk=first).update(state="error", reason="timeout", finished_at=1.0)
    journal.stored([of(first)])
    assert counted(run) == 1


def test_an_answer_is_not_mistaken_for_a_judgement_with_the_same_id(run: Run) -> None:
    first, *_ = run.judgements.values_list("pk", flat=True)
    Journal("elsewhere:1:1").sent(WorkKey(Work.ANSWER, first))
    assert counted(run) == 0


def test_what_an_earlier_release_left_is_removed_and_not_counted(run: Run) -> None:
    Journal("elsewhere:1:1")
    left = Path(settings.DATA_DIR) / FOLDER / "elsewhere:1:1"
    left.write_bytes(struct.pack("<q", run.judgements.values_list("pk", flat=True)[0]))
    assert counted(run) == 0
    assert not left.exists()


def test_an_entry_that_was_cut_off_is_left_out(run: Run) -> None:
    first, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    journal.sent(of(first))
    journal.path.write_bytes(journal.path.read_bytes() + b"\x01\x01\x07")
    assert counted(run) == 1


def test_a_judgement_cancelled_before_its_first_step_reports_that_it_was_abandoned() -> None:
    ended: list[str] = []

    async def judge(waiting: InFlight) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("abandoned")

    async def run() -> None:
        in_flight = WorkInFlight(Journal("elsewhere:1:1"))
        in_flight.start(of(1), judge)
        in_flight.cancel_unsent()
        await asyncio.wait(in_flight.tasks)

    asyncio.run(run())
    assert ended == ["abandoned"]
