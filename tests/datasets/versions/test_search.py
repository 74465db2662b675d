"""The search index: built in steps by one background worker after uploads, and rebuilt if lost."""

from __future__ import annotations

import errno
import sqlite3
import threading
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client
from django_tasks_db.models import DBTaskResult

from datasets import services
from datasets.core.search_index import Builder, IndexRow
from datasets.importing import queue_status
from datasets.models import SearchIndex, Version, VersionState
from datasets.versions import search
from datasets.views import row_browser
from datasets.views.row_browser import BrowserFilter
from evalsite.accounts.models import User
from evalsite.storage import files
from evalsite.storage.errors import StorageUnreachable
from evalsite.tasks import jobs
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, numbered, question

pytestmark = pytest.mark.django_db
State = SearchIndex.State
FULL_DISK = Path("/proc")  # a file system without space


def lines(version: Version, chosen: BrowserFilter) -> list[int]:
    return [row.line for row in row_browser.rows_page(version, chosen).rows]


@pytest.fixture
def version(upload: Upload) -> Version:
    return upload(numbered(1200), read=True)


def test_a_version_that_was_read_wakes_the_builder(
    upload: Upload, django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        version = upload(numbered(3), read=True)
    woken = [task.args_kwargs["kwargs"] for task in DBTaskResult.objects.all()]
    assert {"kind": "index_version", "object_id": version.pk} in woken


def test_the_index_is_no_part_of_the_import(version: Version) -> None:
    assert version.state == VersionState.READY
    assert not files.local(search.index_name(version.pk)).exists()
    assert not search.state_of(version).indexed


def test_building_gives_way_to_an_upload_and_goes_on_after_it(version: Version, upload: Upload) -> None:
    waiting = upload(numbered(3), name="other")
    assert jobs.run("index_version", version.pk)
    state = search.state_of(version)
    assert (state.indexed, round(state.share, 2)) == (False, 0.42)
    services.version_cancel(version=waiting)
    assert jobs.run("index_version", version.pk)
    assert search.state_of(version).indexed
    assert lines(version, BrowserFilter(text="question 1200")) == [1200]


def test_a_worker_that_is_asked_to_end_keeps_what_is_done(version: Version) -> None:
    stop = threading.Event()
    stop.set()
    jobs.run("index_version", version.pk, stop)
    index = SearchIndex.objects.get()
    assert (index.state, index.line) == (State.BUILDING, 500)


def test_only_one_worker_builds(version: Version) -> None:
    assert jobs.claim("index_version", version.pk, owner="elsewhere:1:1")
    assert not jobs.run("index_version", version.pk)


def test_what_a_dead_worker_held_is_freed(version: Version) -> None:
    assert jobs.claim("index_version", version.pk, owner="elsewhere:1:1")
    jobs.reconcile()
    assert jobs.run("index_version", version.pk)


def test_versions_from_before_the_index_get_one(
    version: Version, django_capture_on_commit_callbacks: object
) -> None:
    DBTaskResult.objects.all().delete()
    jobs.cancel("index_version", version.pk)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        search.reconcile()
    assert DBTaskResult.objects.get().args_kwargs["kwargs"] == {
        "kind": "index_version",
        "object_id": version.pk,
    }


def test_an_index_that_was_deleted_is_built_again(version: Version) -> None:
    jobs.run("index_version", version.pk)
    files.local(search.index_name(version.pk)).unlink()
    assert lines(version, BrowserFilter(text="question 900")) == [900]
    assert jobs.run("index_version", version.pk)
    assert search.state_of(version).indexed


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    noise = b"\xa5" * 4096
    changed = {
        "no database": noise * 20,
        "empty": b"",
        "cut": content[: len(content) // 2],
        "pages overwritten": content[:4096] + noise * (len(content) // 4096 - 1),
    }
    path.write_bytes(changed[how])


@pytest.mark.parametrize("how", ["no database", "empty", "cut", "pages overwritten"])
def test_a_damaged_index_is_built_again(version: Version, how: str, client_of: ClientOf, alice: User) -> None:
    jobs.run("index_version", version.pk)
    damage(files.local(search.index_name(version.pk)), how)
    address = f"/p/physics/datasets/{version.dataset_id}/v{version.number}/rows/"
    as_alice = client_of(alice)
    assert as_alice.get(address).status_code == 200
    assert as_alice.get(f"{address}?text=question+900").status_code == 200
    assert lines(version, BrowserFilter(text="question 900")) == [900]
    assert jobs.run("index_version", version.pk)
    assert search.state_of(version).indexed
    assert lines(version, BrowserFilter(text="question 900")) == [900]


def test_a_file_that_a_power_cut_damaged_is_started_again(version: Version) -> None:
    part = files.local(search.index_name(version.pk)).with_suffix(".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"no database" * 1000)
    jobs.run("index_version", version.pk)
    assert search.state_of(version).indexed


def test_a_version_without_rows_has_an_empty_index(upload: Upload) -> None:
    version = upload(b"", read=True)
    jobs.run("index_version", version.pk)
    assert search.state_of(version).indexed
    assert lines(version, BrowserFilter(text="abc")) == []


def test_a_batch_that_was_not_finished_leaves_nothing(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "x.part")
    builder.add([IndexRow(1, "abc", (("t", "v"),))])
    builder.database.execute("BEGIN")
    builder.database.execute("INSERT INTO grams (rowid, text) VALUES (2, 'abd')")
    builder.database.close()
    again = Builder(tmp_path / "x.part")
    assert (again.line, again.rows, again.facets) == (1, 1, {"t": {"v": 1}})
    assert again.database.execute("SELECT rowid FROM grams WHERE grams MATCH 'abd'").fetchall() == []


def test_a_field_with_many_values_is_not_listed(upload: Upload) -> None:
    rows = [question(f"q{n}", topic="甲乙"[n % 2], number=n) for n in range(80)]
    version = upload(jsonl(*rows), read=True)
    jobs.run("index_version", version.pk)
    index = search.open_index(version)
    assert index is not None
    assert index.facets() == {"topic": [("乙", 40), ("甲", 40)]}


@pytest.mark.parametrize(
    ("text", "expected"), [("化学", [2]), ("学", [1, 2]), ("氢", [2]), ("理", [1]), ("无", []), ("\n", [])]
)
def test_one_and_two_characters_are_looked_up_too_at_the_end_of_a_text_as_well(
    upload: Upload, text: str, expected: list[int]
) -> None:
    version = upload(jsonl(question("数学与物理"), question("氢 化学")), read=True)
    jobs.run("index_version", version.pk)
    index = search.open_index(version)
    assert index is not None
    assert index.question(text) is not None
    assert lines(version, BrowserFilter(text=text)) == expected


def test_a_character_that_very_many_trigrams_begin_with_is_looked_for_in_the_rows(upload: Upload) -> None:
    many = "".join(f"的{chr(0x4E00 + n)}" for n in range(2000))
    version = upload(jsonl(question("a"), question(many)), read=True)
    jobs.run("index_version", version.pk)
    index = search.open_index(version)
    assert index is not None
    assert index.question("的") is None
    assert lines(version, BrowserFilter(text="的")) == [2]


def test_looking_something_up_reads_an_index_and_sorts_nothing(version: Version) -> None:
    jobs.run("index_version", version.pk)
    database = sqlite3.connect(files.local(search.index_name(version.pk)))
    for query in (
        "SELECT line FROM value WHERE hash = 1 AND line > 5 ORDER BY line LIMIT 51",
        "SELECT line FROM value WHERE hash = 1 AND line < 5 ORDER BY line DESC LIMIT 51",
    ):
        assert "SEARCH value USING PRIMARY KEY" in str(
            database.execute("EXPLAIN QUERY PLAN " + query).fetchall()
        )
    for order in ("> 5 ORDER BY rowid", "< 5 ORDER BY rowid DESC"):
        query = f"SELECT rowid FROM grams WHERE grams MATCH 'abc' AND rowid {order} LIMIT 51"
        plan = str(database.execute("EXPLAIN QUERY PLAN " + query).fetchall())
        assert "VIRTUAL TABLE INDEX" in plan
        assert "B-TREE" not in plan


@pytest.fixture
def as_bob(client_of: ClientOf, bob: User) -> Client:
    return client_of(bob)


def page(client: Client, version: Version, query: str) -> str:
    return client.get(
        f"/p/physics/datasets/{version.dataset_id}/v{version.number}/rows/?{query}"
    ).content.decode()


def test_the_page_says_while_the_index_is_being_built(as_bob: Client, version: Version) -> None:
    assert "The search index is being built: 0" in page(as_bob, version, "q=question")
    assert "The search index is being built: 0" in page(as_bob, version, "")
    jobs.run("index_version", version.pk)
    assert "The search index" not in page(as_bob, version, "q=question")
    assert "The search index" not in page(as_bob, version, "")


def test_a_text_with_blanks_that_is_found_nowhere_is_said_to_be_one(as_bob: Client, version: Version) -> None:
    jobs.run("index_version", version.pk)
    sentence = "Matches the exact text, including spaces."
    assert sentence in page(as_bob, version, "q=question+nowhere")
    assert sentence not in page(as_bob, version, "q=nowhere")


def test_the_page_says_when_there_will_be_no_index(as_bob: Client, version: Version) -> None:
    SearchIndex.objects.create(version=version, state=State.FAILED)
    assert "This version has no search index" in page(as_bob, version, "q=question")


def test_previous_and_next_stay_in_the_filter_of_the_address(as_bob: Client, upload: Upload) -> None:
    rows = [question(f"q{n}", topic="甲乙"[n % 2], model_outputs=answers(m="x")) for n in range(9)]
    version = upload(jsonl(*rows), read=True)
    address = f"/p/physics/datasets/{version.dataset_id}/v{version.number}/rows/"
    text = as_bob.get(address + "4/", {"field": "topic", "value": "乙"}).content.decode()
    query = "?field=topic&amp;value=%E4%B9%99"
    assert f'href="{address}2/{query}" data-key="k"' in text
    assert f'href="{address}6/{query}" data-key="j"' in text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_a_row_is_shown_as_it_is_in_the_file(as_bob: Client, upload: Upload, encoding: str) -> None:
    text = '\n{"messages": [{"role":"user","content":"首都是哪里?"}], "n":  1.10}\n'
    version = upload(text.encode(encoding), read=True)
    address = f"/p/physics/datasets/{version.dataset_id}/v{version.number}/rows/2/original/"
    shown = as_bob.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "&quot;首都是哪里?&quot;}], &quot;n&quot;:  1.10}</pre>" in shown


def test_a_record_of_a_csv_is_shown_over_all_its_lines(as_bob: Client, upload: Upload) -> None:
    version = upload(b'prompt,response\n"a\nb",c\nd,e\n', read=True)
    address = f"/p/physics/datasets/{version.dataset_id}/v{version.number}/rows/2/original/"
    assert "&quot;a\nb&quot;,c</pre>" in as_bob.get(address).content.decode()


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (OSError(errno.ENOSPC, "full"), State.BUILDING),
        (StorageUnreachable("away"), State.BUILDING),
        (ValueError("a fault of the program"), State.FAILED),
    ],
)
def test_an_index_that_lacked_space_is_tried_again(version: Version, error: Exception, state: str) -> None:
    SearchIndex.objects.create(version=version)
    hold = jobs.claim("index_version", version.pk)
    assert hold
    jobs.kind_called("index_version").failed(hold, version, error)
    assert SearchIndex.objects.get().state == state
    assert (jobs.of("index_version", version.pk) is not None) == (state == State.BUILDING)


def test_no_index_is_tried_while_the_disk_is_full(version: Version, settings: LazySettings) -> None:
    settings.DATA_DIR = FULL_DISK
    jobs.run("index_version", version.pk)
    job = jobs.of("index_version", version.pk)
    assert job
    assert (job.state, job.not_before is not None) == ("waiting", True)


def test_a_file_that_waits_for_space_says_so(version: Version, settings: LazySettings) -> None:
    settings.DATA_DIR = FULL_DISK
    for sentence in (
        queue_status.for_version(version),
        queue_status.for_further_work(version.dataset.project),
    ):
        assert sentence.startswith("The server’s disk is full.")
