"""A partly read file can only be used after the user has confirmed it."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from django.conf import LazySettings
from django.test import Client

from datasets import selectors
from datasets.core.repair.apply import Repair
from datasets.importing.worker import import_version
from datasets.models import Version
from datasets.services import version_leave_bad_rows_out
from datasets.versions.repair import version_repair
from evalsite.accounts.models import User
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, question

pytestmark = pytest.mark.django_db
ROWS = jsonl(*(question(f"question {number}", model_outputs=answers(lark="yes")) for number in range(20)))
CUT = gzip.compress(ROWS)[:-4]  # every row can be read, but the file is incomplete
SENTENCE = "Only part of the file was read, so this version can't be used yet."
AGREED = "Only part of the file was read. Nothing after these rows is used in runs."


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def address(version: Version) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/"


def usable(version: Version) -> bool:
    return version in selectors.usable_versions(version.dataset.project)


def test_a_cut_archive_is_not_used_unasked_though_all_its_rows_are_good(
    as_alice: Client, upload: Upload, alice: User
) -> None:
    version = upload(CUT, read=True)
    assert (version.rows, version.valid_rows, version.stopped_by) == (20, 20, "file.encoding")
    assert not version.usable
    assert not usable(version)
    text = as_alice.get(address(version)).content.decode()
    assert SENTENCE in text
    assert "Use only the 20 valid rows" in text
    assert "The file is incomplete" in as_alice.get("/p/physics/runs/new/").content.decode()


def test_more_rows_than_the_limit_are_not_left_out_unasked(upload: Upload, settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, rows_max=10)
    version = upload(ROWS, read=True)
    assert (version.rows, version.valid_rows, version.stopped_by) == (10, 10, "file.too_many_rows")
    assert not usable(version)


def test_going_on_with_what_was_read_is_chosen_and_stated(as_alice: Client, upload: Upload) -> None:
    version = upload(CUT, read=True)
    as_alice.post(address(version) + "leave-out/", {"rows": "0"})
    version.refresh_from_db()
    assert version.usable
    assert usable(version)
    assert AGREED in as_alice.get(address(version)).content.decode()
    assert "only partly read" in as_alice.get("/p/physics/datasets/").content.decode()
    form = as_alice.get("/p/physics/evaluations/new/", {"version": str(version.pk)})
    assert "The file of this version was not read completely" in form.content.decode()


def test_a_repaired_version_of_a_cut_file_is_no_whole_one(
    as_alice: Client, upload: Upload, alice: User
) -> None:
    version = upload(gzip.compress(ROWS.replace(b"\n", b" // a note\n"))[:-4], read=True)
    made, _new = version_repair(version=version, repairs=[Repair("strip_comments")], user=alice)
    import_version(made.pk)
    made.refresh_from_db()
    assert (made.valid_rows, made.counts, made.stopped_by) == (20, {}, "file.encoding")
    assert not usable(made)
    assert (
        "Only part of the file that this version was made from was read"
        in as_alice.get(address(made)).content.decode()
    )
    assert version_leave_bad_rows_out(version=made, user=alice)
    assert usable(made)


def test_a_whole_file_has_nothing_to_leave_out(upload: Upload, alice: User) -> None:
    version = upload(gzip.compress(ROWS), read=True)
    assert version.stopped_by == ""
    assert usable(version)
    assert not version_leave_bad_rows_out(version=version, user=alice)


def test_what_can_be_done_for_a_file_without_a_good_row_is_reported(as_alice: Client, upload: Upload) -> None:
    printed = upload(b'[\n{"messages": [{"role": "user",\n "content": "q"}]}\n]', read=True, name="printed")
    empty = upload(b"\n", read=True, name="empty")
    new_run = as_alice.get("/p/physics/runs/new/").content.decode()
    assert "The file is not JSON Lines. Open its page to convert it." in new_run
    assert "Upload new version" in as_alice.get(address(empty)).content.decode()
    page = as_alice.get(address(printed)).content.decode()
    assert "<dt>Objects</dt><dd>1</dd>" in page
    assert "1 object" in as_alice.get("/p/physics/datasets/").content.decode()
