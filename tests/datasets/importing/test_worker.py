"""An import creates rows, responses, candidates and findings, completely or not at all."""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from datasets import selectors, services
from datasets.core.decode import CHUNK
from datasets.core.rows import NewRow
from datasets.importing import tables, worker
from datasets.importing.worker import import_or_wait, import_version
from datasets.models import Candidate, Response, Row, StoredFinding, Version, VersionState
from evalsite.models import Job
from evalsite.tasks import jobs, workers
from tests.datasets.conftest import Upload, answers, begin_reading, jsonl, numbered, question
from tests.full_and_locked import full_database, locked_database
from tests.real_data import real_data

pytestmark = pytest.mark.django_db
DEAD = "elsewhere:1:1"


def test_a_row_is_kept_without_its_answers_and_the_answers_beside_it(upload: Upload) -> None:
    version = upload(jsonl(question("Why?", model_outputs=answers(alpha="So."))), read=True)
    assert Row.objects.get(version=version).raw == '{"messages": [{"role": "user", "content": "Why?"}]}'
    assert Response.objects.get(row__version=version).raw == '{"content": "So."}'


def test_big_integers_and_the_order_of_keys_survive(upload: Upload) -> None:
    text = '{"z":123456789012345678901234567890,"messages":[{"role":"user","content":"a"}],"a":1.10}'
    version = upload(text.encode(), read=True)
    assert Row.objects.get(version=version).raw == text


def test_candidates_know_how_many_rows_they_answered(upload: Upload) -> None:
    twice = [{"model_name": "beta", "responses": [{"content": "1"}, {"content": "2"}]}]
    version = upload(
        jsonl(question("a", model_outputs=answers(alpha="x") + twice), question("b", model_outputs=twice)),
        read=True,
    )
    counts = Candidate.objects.filter(version=version).values_list("name", "rows", "responses")
    assert sorted(counts) == [("alpha", 1, 1), ("beta", 2, 4)]


def test_responses_are_numbered_from_one(upload: Upload) -> None:
    outputs = [{"model_name": "a", "responses": [{"content": "x"}, {"content": "y"}]}]
    upload(jsonl(question("q", model_outputs=outputs)), read=True)
    assert list(Response.objects.order_by("number").values_list("number", "raw")) == [
        (1, '{"content": "x"}'),
        (2, '{"content": "y"}'),
    ]


def test_a_bad_row_is_kept_as_found_and_counted(upload: Upload) -> None:
    version = upload(jsonl(question("a")) + b"{not json}\n", read=True)
    assert (version.rows, version.valid_rows, version.usable) == (2, 1, False)
    assert Row.objects.get(version=version, valid=False).raw == "{not json}"


def test_findings_are_kept_with_their_place(upload: Upload) -> None:
    version = upload(jsonl(question("a"), {"messages": [{"role": "robot", "content": "x"}]}), read=True)
    finding = StoredFinding.objects.get(version=version, code="role.unknown")
    assert (finding.line, finding.path, finding.severity) == (2, "messages[0].role", "error")


def test_more_rows_than_a_batch_are_all_stored_in_order(upload: Upload) -> None:
    count = worker.BATCH_ROWS * 2 + 7
    version = upload(numbered(count), read=True)
    lines = list(Row.objects.filter(version=version).order_by("pk").values_list("line", flat=True))
    assert lines == list(range(1, count + 1))


def test_a_further_batch_takes_few_statements(upload: Upload, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not counting those that send rows, which bypass Django's query log."""
    monkeypatch.setattr(worker, "BATCH_ROWS", 1)  # one batch per part returned by the reader
    versions = [upload(numbered(count)) for count in (10_000, 20_000)]
    taken = []
    for version in versions:
        with CaptureQueriesContext(connection) as queries:
            import_version(version.pk)
        taken.append(len(queries))
    batches = (versions[1].size - versions[0].size) // CHUNK
    assert taken[1] - taken[0] <= 8 * (batches + 2)


def test_a_model_that_first_answers_in_a_later_batch_has_its_answers(
    upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "IDS_AT_ONCE", worker.BATCH_ROWS)
    late = 2 * worker.BATCH_ROWS + 5
    rows = [
        question(f"q{n}", model_outputs=answers(**{"beta" if n >= late else "alpha": "x"}))
        for n in range(3 * late)
    ]
    version = upload(jsonl(*rows), read=True)
    given = Response.objects.filter(row__version=version).order_by("row__line")
    assert list(given.values_list("candidate__name", flat=True)) == late * ["alpha"] + 2 * late * ["beta"]
    counts = Candidate.objects.filter(version=version).values_list("name", "rows")
    assert sorted(counts) == [("alpha", late), ("beta", 2 * late)]


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="checks are switched for a connection on this database only"
)
@pytest.mark.django_db(transaction=True)
def test_references_are_checked_again_though_a_batch_could_not_be_undone(upload: Upload) -> None:
    def checked() -> bool:
        with connection.cursor() as cursor:
            return bool(cursor.execute("PRAGMA foreign_keys").fetchone()[0])

    def cannot_be_undone(*_: object) -> bool:
        raise OperationalError

    version = upload(numbered(1))
    importer = worker.Importer(version, begin_reading(version))
    importer.begin()
    importer.under_way.push(cannot_be_undone)
    assert not checked()
    with pytest.raises(OperationalError), importer:
        pass
    assert checked()


@pytest.mark.django_db(transaction=True)
def test_files_that_are_read_at_once_do_not_mix_their_rows(upload: Upload) -> None:
    versions = [upload(numbered(2 * worker.BATCH_ROWS)) for _ in range(3)]

    def read(version: Version) -> None:
        with closing(connection):
            import_version(version.pk)

    with ThreadPoolExecutor(len(versions)) as readers:
        list(readers.map(read, versions))
    for version in versions:
        lines = Row.objects.filter(version=version).order_by("line").values_list("line", flat=True)
        assert list(lines) == list(range(1, 2 * worker.BATCH_ROWS + 1))
        assert Response.objects.filter(row__version=version).count() == 2 * worker.BATCH_ROWS


def test_what_was_stored_under_a_broken_promise_is_gone(upload: Upload) -> None:
    broken = json.dumps(question("spread"), indent=1).encode()
    version = upload(numbered(10_000) + broken, read=True)
    assert (version.state, version.counts) == (VersionState.READY, {"file.not_jsonl": 1})
    assert not Row.objects.filter(version=version).exists()


def test_two_versions_have_their_own_rows(upload: Upload) -> None:
    first, second = upload(numbered(3), read=True), upload(numbered(5), read=True)
    assert [Row.objects.filter(version=version).count() for version in (first, second)] == [3, 5]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0",
        b"\xff\xfe",
        b"%PDF-1.7",
        b"[" * 5000,
        b"\x1f\x8b\x08",
        b'prompt,response\n"never',
        b"{}\n" * 3,
    ],
)
def test_no_content_makes_the_reading_fail(upload: Upload, content: bytes) -> None:
    version = upload(content, read=True)
    assert version.state == VersionState.READY
    assert version.counts


def test_a_row_with_nul_bytes_is_stored(upload: Upload) -> None:
    version = upload(jsonl(question("a")) + b'{"messages": "\0"}\n', read=True)
    assert "\0" not in Row.objects.get(version=version, line=2).raw


def test_a_line_beyond_the_limit_is_a_finding(upload: Upload, settings: LazySettings) -> None:
    huge = question("x" * (settings.CONFIG.row_max_kb * 1024))
    version = upload(jsonl(question("a"), huge, question("b")), read=True)
    assert version.counts["row.too_large"] == 1
    assert (version.rows, version.valid_rows) == (3, 2)


@pytest.mark.parametrize(
    ("setting", "code"), [("rows_max", "file.too_many_rows"), ("unpacked_max_mb", "file.too_large")]
)
def test_a_file_beyond_a_limit_is_read_up_to_it(
    upload: Upload, settings: LazySettings, setting: str, code: str
) -> None:
    settings.CONFIG = replace(settings.CONFIG, **{setting: 1})
    version = upload(gzip.compress(jsonl(*[question("x" * 2_000)] * 1_000)), read=True)
    assert (version.state, version.counts[code]) == (VersionState.READY, 1)
    assert 0 < Row.objects.filter(version=version).count() < 1_000


def test_a_version_is_read_once(upload: Upload) -> None:
    version = upload(numbered(3), read=True)
    assert import_version(version.pk) is False
    assert Row.objects.filter(version=version).count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_several_readers_at_once_one_reads(upload: Upload) -> None:
    version = upload(numbered(2000))

    def read(_number: int) -> bool:
        with closing(connection):
            return import_version(version.pk)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(read, range(4))) == [False, False, False, True]
    assert Row.objects.filter(version=version).count() == 2000


def test_who_does_not_get_the_version_waits_for_it(upload: Upload) -> None:
    version = upload(numbered(3), read=True)
    assert import_or_wait(version.pk).state == VersionState.READY


def test_a_vanished_file_is_said_in_a_sentence(upload: Upload) -> None:
    version = upload(numbered(3))
    version.path.unlink()
    import_version(version.pk)
    version.refresh_from_db()
    assert (version.state, version.problem) == (VersionState.FAILED, worker.GONE)


def test_an_unforeseen_error_leaves_nothing_half(upload: Upload, caplog: Any) -> None:
    version = upload(numbered(worker.BATCH_ROWS + 1))
    version.path.unlink()
    version.path.mkdir()  # a directory, which cannot be opened as a file
    import_version(version.pk)
    version.refresh_from_db()
    assert (version.state, version.problem) == (VersionState.FAILED, worker.UNEXPECTED)
    assert not Row.objects.filter(version=version).exists()


def half_read(version: Version, owner: str = DEAD) -> None:
    """Leave the version as a worker that died after its first batch would."""
    begin_reading(version, owner)
    rows = [NewRow(1, True, b"{}", [("alpha", 1, b"{}")]), NewRow(2, True, b"{}")]
    for send in tables.Writer(version.pk).sending(rows):
        send()


def test_what_a_dead_reader_left_is_read_from_the_start(upload: Upload) -> None:
    version = upload(numbered(5))
    half_read(version)
    jobs.reconcile()
    import_version(version.pk)
    version.refresh_from_db()
    assert (version.state, version.rows) == (VersionState.READY, 5)
    assert Response.objects.filter(row__version=version).count() == 5


def test_a_living_reader_is_left_alone(upload: Upload) -> None:
    version = upload(numbered(5))
    reader = f"{socket.gethostname()}:{os.getppid()}:{workers.start_time(os.getppid())}"
    begin_reading(version, reader)
    jobs.reconcile()
    job = jobs.of("read_version", version.pk)
    assert (state_of(version), job and job.owner) == (VersionState.READING, reader)


def test_a_lease_that_ran_out_is_taken_away(upload: Upload) -> None:
    version = upload(numbered(5))
    begin_reading(version, f"{socket.gethostname()}:{os.getppid()}:{workers.start_time(os.getppid())}")
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.reconcile()
    assert state_of(version) == VersionState.WAITING


def test_who_lost_the_lease_writes_no_further(upload: Upload) -> None:
    version = upload(numbered(5))
    hold = begin_reading(version, DEAD)
    jobs.reconcile()
    with pytest.raises(tables.WorkStopped):
        tables.advance(hold, bytes_read=1, rows=1)


def test_reconciling_wakes_a_worker_for_what_waits(
    upload: Upload, django_capture_on_commit_callbacks: Any
) -> None:
    version = upload(numbered(5))
    with django_capture_on_commit_callbacks(execute=True):
        jobs.reconcile()
    assert DBTaskResult.objects.get().args_kwargs["kwargs"] == {
        "kind": "read_version",
        "object_id": version.pk,
    }


def test_cancelling_what_waits_ends_it_at_once(upload: Upload) -> None:
    version = upload(numbered(5))
    assert services.version_cancel(version=version)
    version.refresh_from_db()
    assert version.state == VersionState.CANCELLED


def test_cancelling_while_it_is_read_leaves_no_row(upload: Upload) -> None:
    version = upload(numbered(5))
    half_read(version)
    services.version_cancel(version=version)
    jobs.reconcile()
    import_version(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.CANCELLED
    assert not Row.objects.filter(version=version).exists()


def test_a_worker_that_is_asked_to_stop_gives_the_version_back(upload: Upload) -> None:
    version = upload(numbered(5))
    stop = threading.Event()
    stop.set()
    import_version(version.pk, stop)
    assert state_of(version) == VersionState.WAITING
    assert list(jobs.ids("read_version", Job.State.WAITING)) == [version.pk]


def test_a_ready_version_is_changed_by_nothing_but_leaving_rows_out(upload: Upload, alice: Any) -> None:
    version = upload(jsonl(question("a")) + b"{bad\n", read=True)
    before = Version.objects.values().get(pk=version.pk)
    assert not services.version_cancel(version=version)
    assert not services.version_try_again(version=version)
    assert not import_version(version.pk)
    services.version_read_as(version=version, chosen_format="legacy_jsonl", user=alice)
    upload(numbered(2))
    jobs.reconcile()
    assert Version.objects.values().get(pk=version.pk) == before
    assert services.version_leave_bad_rows_out(version=version, user=alice)
    after = Version.objects.values().get(pk=version.pk)
    assert {name for name in after if after[name] != before[name]} == {"left_out_at", "left_out_by_id"}


def test_a_wrong_guess_is_corrected_into_a_version_of_its_own(upload: Upload, alice: Any) -> None:
    version = upload(jsonl({"conversation": [{"prompt": "a", "response": "b"}], **question("c")}), read=True)
    made = services.version_read_as(version=version, chosen_format="legacy_jsonl", user=alice)
    import_version(made.pk)
    made.refresh_from_db()
    assert (made.number, made.parent, made.format) == (2, version, "legacy_jsonl")
    assert made.stored_as == version.stored_as


@pytest.mark.parametrize(
    ("name", "rows", "models"),
    [
        ("mtbench_llama2_upload.jsonl", 80, 5),
        ("arena_hard_v01_upload.jsonl", 500, 3),
        ("belle_zh_upload.jsonl", 1000, 0),
        ("mtbench_llama2_legacy_2turn.llama2_7b.jsonl", 80, 0),
    ],
)
def test_real_files_are_read_whole(upload: Upload, name: str, rows: int, models: int) -> None:
    version = upload(real_data(name).read_bytes(), read=True)
    assert (version.rows, version.valid_rows) == (rows, rows)
    assert len(selectors.candidates_of(version)) == models


class WhenAsked(threading.Event):
    """A stop event that calls `act` when the importer first checks it, in the middle of its work."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act: Callable[[], object] | None = act

    def is_set(self) -> bool:
        act, self.act = self.act, None
        if act:
            act()
        return False


on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="SQLite's own errors, on this database only"
)


def state_of(version: Version) -> VersionState:
    version.refresh_from_db()
    return VersionState(version.state)


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_locked_for_a_while_fails_no_version(upload: Upload) -> None:
    version = upload(numbered(5))
    with ExitStack() as locked:
        stop = WhenAsked(lambda: locked.enter_context(locked_database()))
        assert import_version(version.pk, stop)
        assert state_of(version) == VersionState.READING  # the new state could not be written either
    jobs.reconcile()
    assert state_of(version) == VersionState.WAITING
    import_version(version.pk)
    assert (state_of(version), version.rows) == (VersionState.READY, 5)


def test_what_this_process_still_reads_is_left_alone(upload: Upload) -> None:
    version = upload(numbered(5))
    seen = []

    def look() -> None:
        jobs.reconcile()
        seen.append(state_of(version))

    import_version(version.pk, WhenAsked(look))
    assert (seen, state_of(version)) == ([VersionState.READING], VersionState.READY)


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_full_disk_fails_the_version_with_a_sentence_and_it_can_be_read_again(upload: Upload) -> None:
    version = upload(numbered(4000))
    with full_database():
        import_version(version.pk)
        jobs.reconcile()
    assert (state_of(version), version.problem) == (VersionState.FAILED, worker.DISK_FULL)
    services.version_try_again(version=version)
    import_version(version.pk)
    assert (state_of(version), version.rows) == (VersionState.READY, 4000)
