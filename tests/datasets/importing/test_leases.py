"""Database rows that workers claim, hold and release: the same for answers, comparisons and search indexes."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from datasets.importing.leases import LEASE, Hold, Leases
from datasets.models import Difference, DifferenceState, SearchIndex, Version
from evalsite.tasks import workers
from evalsite.tasks.workers import WorkStopped
from tests.datasets.conftest import Upload

State = DifferenceState
COMPARING = Leases(Difference, State.WAITING, State.COMPARING, begun=("rows_read",))
BUILDING = Leases(SearchIndex, SearchIndex.State.BUILDING, SearchIndex.State.BUILDING)
ME, OTHER = workers.owner(), "elsewhere:1:1"


@pytest.fixture
def row(upload: Upload) -> Difference:
    return Difference.objects.create(old=upload(b""), new=upload(b"", name="other"))


def now(row: Difference) -> tuple[str, str, int]:
    row.refresh_from_db()
    return row.state, row.owner, row.rows_read


def test_what_one_worker_has_claimed_no_other_gets(row: Difference) -> None:
    assert (COMPARING.claim(row.pk, ME), COMPARING.claim(row.pk, OTHER)) == (True, False)
    assert now(row) == (State.COMPARING, ME, 0)


def test_what_is_given_back_waits_from_the_start(row: Difference) -> None:
    COMPARING.claim(row.pk, ME)
    Hold(COMPARING, row.pk, ME, threading.Event()).renew(rows_read=7)
    assert now(row) == (State.COMPARING, ME, 7)
    assert COMPARING.give_back(row.pk, ME)
    assert now(row) == (State.WAITING, "", 0)


def test_nobody_gives_back_or_ends_what_another_holds(row: Difference) -> None:
    COMPARING.claim(row.pk, OTHER)
    assert not COMPARING.give_back(row.pk, ME)
    with pytest.raises(WorkStopped):
        Hold(COMPARING, row.pk, ME, threading.Event()).end(State.READY)
    assert now(row) == (State.COMPARING, OTHER, 0)


def test_a_worker_that_lost_a_row_is_stopped_at_the_next_look(row: Difference) -> None:
    with pytest.raises(WorkStopped):
        Hold(COMPARING, row.pk, ME, threading.Event()).renew()


def test_the_lease_is_not_renewed_at_every_look(row: Difference) -> None:
    COMPARING.claim(row.pk, ME)
    hold = Hold(COMPARING, row.pk, ME, threading.Event())
    assert not hold.renew_at_times(rows_read=7)
    assert now(row)[2] == 0


def test_a_worker_that_is_to_end_is_stopped_at_once(row: Difference) -> None:
    COMPARING.claim(row.pk, ME)
    hold = Hold(COMPARING, row.pk, ME, threading.Event())
    hold.stop.set()
    with pytest.raises(WorkStopped):
        hold.renew_at_times()


def nothing_noted(error: Exception) -> dict[str, object]:
    raise AssertionError(error)


@pytest.mark.parametrize("error", [WorkStopped(), OperationalError("database is locked")])
def test_work_that_stops_or_misses_the_database_waits_again(row: Difference, error: Exception) -> None:
    if isinstance(error, OperationalError):
        error.__cause__ = locked()

    def work(_: Hold) -> None:
        raise error

    assert COMPARING.work(row.pk, ME, None, work, nothing_noted)
    assert now(row) == (State.WAITING, "", 0)


def locked() -> Exception:
    import sqlite3

    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


def test_another_error_ends_the_work_as_it_says(row: Difference) -> None:
    def work(_: Hold) -> None:
        raise ValueError

    assert COMPARING.work(row.pk, ME, None, work, lambda _: {"state": State.FAILED, "same": 3})
    assert (now(row)[:2], row.same) == ((State.FAILED, ""), 3)
    assert not COMPARING.work(row.pk, ME, None, work, nothing_noted)


def test_rows_of_dead_workers_and_expired_ones_are_freed(row: Difference) -> None:
    COMPARING.claim(row.pk, OTHER)
    COMPARING.free_lost()
    assert list(COMPARING.ids_waiting()) == [row.pk]
    COMPARING.claim(row.pk, ME)
    assert COMPARING.ids_busy() == {row.pk}
    COMPARING.free_lost(timezone.now() + LEASE + timedelta(seconds=1))
    assert now(row)[0] == State.WAITING


def test_where_waiting_and_busy_are_one_state_the_owner_tells(upload: Upload) -> None:
    version: Version = upload(b"")
    index = SearchIndex.objects.create(version=version, line=500)
    assert list(BUILDING.ids_waiting()) == [version.pk]
    assert (BUILDING.claim(version.pk, OTHER), BUILDING.claim(version.pk, ME)) == (True, False)
    assert list(BUILDING.ids_waiting()) == []
    BUILDING.free_lost()
    index.refresh_from_db()
    assert (index.owner, index.line) == ("", 500)
