"""Web and data worker on separate machines, files in a bucket: neither sees the other's DATA_DIR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client

from datasets import services
from datasets.core.repair.apply import Repair
from datasets.importing import worker
from datasets.models import Attachment, SearchIndex, Version, VersionState
from datasets.versions import attach, repair, search
from datasets.views import row_browser
from datasets.views.row_browser import BrowserFilter
from evalsite.accounts.models import User
from evalsite.tasks import jobs
from tests import s3
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, jsonl, numbered, question
from tests.datasets.helpers import GIVEN, send

pytestmark = pytest.mark.django_db
COMMENTED = jsonl(question("Why?")).replace(b"\n", b" // a note\n")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3.server() as found:
        yield found


class Machines:
    """Tests run on the web machine and switch DATA_DIR to the worker's to process tasks."""

    def __init__(self, settings: LazySettings, folder: Path) -> None:
        self.settings, self.web, self.worker = settings, folder / "web", folder / "worker"
        for machine in (self.web, self.worker):
            machine.mkdir()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self.settings.DATA_DIR = self.worker
        yield
        self.settings.DATA_DIR = self.web

    def read(self, version: Version) -> Version:
        with self.at_work():
            assert worker.import_version(version.pk)
        version.refresh_from_db()
        return version

    def index(self, version: Version) -> None:
        with self.at_work():
            assert jobs.run("index_version", version.pk)


@pytest.fixture
def machines(settings: LazySettings, address: str, tmp_path: Path) -> Machines:
    two = Machines(settings, tmp_path)
    s3.use(settings, s3.environment(address), two.web)
    s3.make_bucket()
    return two


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def address_of(version: Version, part: str) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/{part}"


def body(client: Client, address: str) -> bytes:
    answer = client.get(address)
    assert answer.status_code == 200
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_an_upload_is_read_there_and_downloaded_here(
    machines: Machines, upload: Upload, as_alice: Client
) -> None:
    version = machines.read(upload(numbered(30)))
    assert (version.state, version.rows) == (VersionState.READY, 30)
    assert body(as_alice, address_of(version, "original/")) == numbered(30)
    assert b"question 7" in body(as_alice, address_of(version, "rows/7/original/"))


def test_what_was_repaired_there_is_offered_and_exported_here(
    machines: Machines, upload: Upload, as_alice: Client
) -> None:
    version = machines.read(upload(COMMENTED))
    made, _new = repair.version_repair(version=version, repairs=[Repair("strip_comments")], user=None)
    assert machines.read(made).valid_rows == 1
    assert body(as_alice, address_of(made, "original/")) == jsonl(question("Why?"))


def test_answers_that_were_matched_there_are_taken_here(
    machines: Machines, upload: Upload, as_alice: Client
) -> None:
    rows = jsonl(question("首都是哪里?", id="a"), question("天空?", id="b"))
    assert send(as_alice, machines.read(upload(rows)), GIVEN).status_code == 302
    attachment = Attachment.objects.get()
    with machines.at_work():
        assert jobs.run("match_answers", attachment.pk)
    part = f"attach/{attachment.pk}/unmatched/"
    assert b'"line": 2' in body(as_alice, address_of(attachment.version, part))
    attachment.refresh_from_db()
    made = attach.attachment_use(attachment=attachment, user=None)
    assert made
    assert machines.read(made).models_found


def test_answers_that_are_thrown_away_leave_nothing_in_the_bucket(
    machines: Machines, upload: Upload, as_alice: Client
) -> None:
    version = machines.read(upload(numbered(3)))
    before = s3.names()
    send(as_alice, version, GIVEN)
    attachment = Attachment.objects.get()
    with machines.at_work():
        jobs.run("match_answers", attachment.pk)
    assert attach.attachment_discard(attachment=attachment)
    assert s3.names() == before


def test_the_index_that_was_built_there_is_used_here(machines: Machines, upload: Upload) -> None:
    version = machines.read(upload(numbered(30)))
    machines.index(version)
    assert search.state_of(version).indexed
    found = row_browser.rows_page(version, BrowserFilter(text="question 17")).rows
    assert [row.line for row in found] == [17]
    assert SearchIndex.objects.get().state == SearchIndex.State.READY  # not requested again


def away(machines: Machines) -> None:
    bucket = machines.settings.CONFIG.s3_bucket
    given = s3.environment("http://the-user:the-secret@127.0.0.1:9") | {"S3_BUCKET": bucket}
    s3.use(machines.settings, given, machines.settings.DATA_DIR)


def test_a_page_says_that_the_store_is_away(machines: Machines, upload: Upload, as_alice: Client) -> None:
    version = machines.read(upload(numbered(3)))
    machines.settings.DATA_DIR = machines.worker.parent / "a third one"
    away(machines)
    answer = as_alice.get(address_of(version, "original/"))
    assert answer.status_code == 503
    assert "not responding" in answer.text


def test_an_upload_that_cannot_be_kept_is_refused_in_a_sentence(machines: Machines, upload: Upload) -> None:
    away(machines)
    with pytest.raises(services.ValidationError, match="Nothing was saved"):
        upload(numbered(3))
    assert not [path for path in machines.web.rglob("*") if path.is_file()]


def test_a_version_whose_file_is_not_available_now_can_be_read_again(
    machines: Machines, upload: Upload, address: str
) -> None:
    version = upload(numbered(3))
    away(machines)
    assert machines.read(version).problem == worker.AWAY
    assert version.state == VersionState.FAILED


def test_an_index_that_cannot_be_kept_now_is_kept_later(
    machines: Machines, upload: Upload, settings: LazySettings
) -> None:
    version = machines.read(upload(numbered(3)))
    config, storages = settings.CONFIG, settings.STORAGES
    away(machines)
    machines.index(version)
    assert not SearchIndex.objects.filter(state=SearchIndex.State.FAILED).exists()
    settings.CONFIG, settings.STORAGES = config, storages
    machines.index(version)
    assert search.state_of(version).indexed
