"""Calls in flight when a worker died are counted; completed ones are not counted again."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from evalsite.accounts.models import Project
from evalsite.models import WorkerProcess
from evalsite.tasks import workers
from judging.engine import planning
from judging.engine.journal import FOLDER, InFlight, Journal, Work, WorkInFlight, WorkKey, count_lost_of_ended
from judging.records.models import Run
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db
GONE = f"{socket.gethostname()}:1:0"  # no process of this host


@pytest.fixture
def run(project: Project) -> Run:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    planning.plan(run.pk)
    return run


def of(judgement: int) -> WorkKey:
    return WorkKey(Work.JUDGEMENT, judgement)


def counted(run: Run) -> int:
    count_lost_of_ended()
    run.refresh_from_db()
    return run.calls_again


def test_calls_without_an_end_are_counted(run: Run) -> None:
    first, second, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal(GONE)
    for judgement in (first, first, second):
        journal.sent(of(judgement))
    assert counted(run) == 3


def test_calls_that_failed_before_are_not(run: Run) -> None:
    first, second, third, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal(GONE)
    for judgement in (first, first, second, third):
        journal.sent(of(judgement))
    journal.failed(of(first))
    journal.failed(of(second))
    assert counted(run) == 2


def test_nor_where_others_were_stored_meanwhile(run: Run) -> None:
    first, second, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal(GONE)
    for judgement in (first, second, second):
        journal.sent(of(judgement))
    journal.failed(of(second))
    run.judgements.filter(pk=first).update(state="error", reason="timeout", finished_at=1.0)
    journal.stored([of(first)])
    assert counted(run) == 1


@pytest.mark.parametrize("owner", [workers.owner(), "elsewhere:1:1"], ids=["ours", "elsewhere"])
def test_those_of_a_silent_process_that_may_continue_are_not(run: Run, owner: str) -> None:
    """For example while the database was locked, so that no heartbeat was stored."""
    first, *_ = run.judgements.values_list("pk", flat=True)
    silent_since = timezone.now() - timedelta(minutes=1)
    WorkerProcess.objects.create(owner=owner, queue="runs", seen_at=silent_since)
    journal = Journal(owner)
    journal.sent(of(first))
    assert counted(run) == 0
    assert journal.path.exists()


def test_those_of_another_machine_are_counted_when_it_was_silent_for_long(run: Run) -> None:
    first, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal("elsewhere:1:1")
    journal.sent(of(first))
    os.utime(journal.path, (0, 0))
    run.judgements.filter(pk=first).update(state="not_run")
    assert counted(run) == 1


def test_an_answer_is_not_mistaken_for_a_judgement_with_the_same_id(run: Run) -> None:
    first, *_ = run.judgements.values_list("pk", flat=True)
    Journal(GONE).sent(WorkKey(Work.ANSWER, first))
    assert counted(run) == 0


def test_what_an_earlier_release_left_is_removed_and_not_counted(run: Run) -> None:
    Journal(GONE)
    left = Path(settings.DATA_DIR) / FOLDER / GONE
    left.write_bytes(struct.pack("<q", run.judgements.values_list("pk", flat=True)[0]))
    assert counted(run) == 0
    assert not left.exists()


def test_a_draft_of_a_killed_process_is_removed_after_a_while(run: Run) -> None:
    folder = settings.DATA_DIR / FOLDER
    folder.mkdir(exist_ok=True)
    drafts = [folder / f".{GONE}", folder / f".settled-1-{GONE}"]
    for draft in drafts:
        draft.touch()
    count_lost_of_ended()
    assert all(draft.exists() for draft in drafts)
    for draft in drafts:
        os.utime(draft, (0, 0))
    count_lost_of_ended()
    assert not any(draft.exists() for draft in drafts)


def test_an_entry_that_was_cut_off_is_left_out(run: Run) -> None:
    first, *_ = run.judgements.values_list("pk", flat=True)
    journal = Journal(GONE)
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
        in_flight = WorkInFlight(Journal(GONE))
        in_flight.start(of(1), judge)
        in_flight.cancel_unsent()
        await asyncio.wait(in_flight.tasks)

    asyncio.run(run())
    assert ended == ["abandoned"]
