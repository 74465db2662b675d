"""The data queue: uploads come first, small ones before large ones, and pages show what is ahead in the queue."""

from __future__ import annotations

import io
import threading

import pytest
from django.test import Client

from datasets.importing import worker
from datasets.importing.worker import import_version
from datasets.models import SearchIndex, Version, VersionState
from datasets.versions import attach, compare
from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs, workers
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, jsonl, numbered

pytestmark = pytest.mark.django_db
ELSEWHERE = "elsewhere:1:1"


@pytest.fixture(autouse=True)
def _looks_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LOOK_UP_SECONDS", 0)
    monkeypatch.setattr(jobs, "RENEW_SECONDS", 0)


def answers_for(version: Version) -> attach.Attachment:
    file = io.BytesIO(jsonl({"line": 1, "model_name": "beta", "responses": [{"content": "x"}]}))
    return attach.answers_upload(
        version=version, file=file, file_name="a.jsonl", model_name="", match_by="", user=None
    )


def state(version: Version) -> str:
    version.refresh_from_db()
    return version.state


def test_a_small_upload_is_read_in_the_middle_of_a_large_one(
    upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = upload(numbered(3000), name="large"), upload(numbered(2), name="small")
    monkeypatch.setattr(worker, "SMALL", 10_000)
    import_version(large.pk)
    assert (state(large), state(small)) == (VersionState.READY, VersionState.READY)
    finished = Version.objects.order_by("finished_at").values_list("dataset__name", flat=True)
    assert list(finished) == ["small", "large"]
    assert (large.data_rows.count(), small.data_rows.count()) == (3000, 2)


def test_a_large_upload_waits_for_a_large_one(upload: Upload, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = upload(numbered(300), name="first"), upload(numbered(300), name="second")
    monkeypatch.setattr(worker, "SMALL", 10)
    import_version(first.pk)
    assert (state(first), state(second)) == (VersionState.READY, VersionState.WAITING)


def test_uploads_are_read_in_the_middle_of_matching(upload: Upload) -> None:
    attachment = answers_for(upload(numbered(50), read=True))
    waiting = upload(numbered(2), name="next")
    jobs.run("match_answers", attachment.pk)
    attachment.refresh_from_db()
    assert (state(waiting), attachment.state) == (VersionState.READY, attach.State.MATCHED)


def test_uploads_are_read_in_the_middle_of_a_comparison(upload: Upload) -> None:
    old, new = upload(numbered(50), read=True), upload(numbered(51), read=True)
    difference = compare.difference_ask(old=old, new=new)
    waiting = upload(numbered(2), name="next")
    jobs.run("compare_versions", difference.pk)
    difference.refresh_from_db()
    assert (state(waiting), difference.ready, difference.added) == (VersionState.READY, True, 1)


def test_a_worker_that_ends_begins_no_upload(upload: Upload) -> None:
    waiting, stop = upload(numbered(2)), threading.Event()
    stop.set()
    worker.do_urgent_work(stop)
    assert state(waiting) == VersionState.WAITING


def test_the_search_index_waits_for_answers_to_be_matched(upload: Upload) -> None:
    version = upload(numbered(1200), read=True)
    answers_for(version)
    jobs.run("index_version", version.pk)
    assert SearchIndex.objects.get(pk=version.pk).rows == 500


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def being_read(version: Version) -> None:
    workers.heartbeat(workers.DATA)
    assert jobs.claim("read_version", version.pk, owner=ELSEWHERE)
    Version.objects.filter(pk=version.pk).update(state=VersionState.READING, bytes_read=version.size // 2)


def page(client: Client, version: Version) -> str:
    return client.get(f"/p/physics/datasets/{version.dataset_id}/v{version.number}/").content.decode()


def test_the_page_says_which_file_is_read_first(upload: Upload, as_alice: Client) -> None:
    first, second = upload(numbered(300), name="first"), upload(numbered(2), name="second")
    being_read(first)
    assert "Queued behind “first v1” (50" in page(as_alice, second)


def test_the_page_names_no_file_of_another_project(upload: Upload, as_alice: Client) -> None:
    other = Project.objects.create(name="Elsewhere", slug="elsewhere")
    being_read(upload(numbered(300), name="secret", project=other))
    text = page(as_alice, upload(numbered(2), name="second"))
    assert "Queued behind a file of another project" in text
    assert "secret" not in text


def test_answers_that_wait_say_for_what(upload: Upload, as_alice: Client) -> None:
    version = upload(numbered(2), read=True)
    attachment = answers_for(version)
    being_read(upload(numbered(300), name="first"))
    address = f"/p/physics/datasets/{version.dataset_id}/v{version.number}/attach/{attachment.pk}/"
    assert "Queued behind “first v1”" in as_alice.get(address).content.decode()


def test_the_list_says_that_nobody_reads_what_waits(upload: Upload, alice: User, client_of: ClientOf) -> None:
    upload(numbered(3))
    said = "No worker is running."
    assert said in client_of(alice).get("/p/physics/datasets/").text
    workers.heartbeat(workers.DATA)
    assert said not in client_of(alice).get("/p/physics/datasets/").text
