"""Attaching answers over HTTP: preview, result, permissions, and what a failed attempt leaves behind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from datasets.importing import worker
from datasets.models import Attachment, Response, Row, Version, VersionState
from datasets.versions import attach
from evalsite.accounts.models import User
from evalsite.tasks import jobs
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, question
from tests.datasets.helpers import GIVEN, attach_address, reply, send

pytestmark = pytest.mark.django_db
State = Attachment.State


@pytest.fixture
def version(upload: Upload) -> Version:
    return upload(
        jsonl(question("首都是哪里?", id="a"), question("天空?", id="b"), question("1+1=?")), read=True
    )


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def matched(client: Client, version: Version, content: bytes = GIVEN, **fields: Any) -> Attachment:
    assert send(client, version, content, **fields).status_code == 302
    attachment = Attachment.objects.latest("pk")
    assert jobs.run("match_answers", attachment.pk)
    attachment.refresh_from_db()
    return attachment


def kept_files(settings: LazySettings) -> set[str]:
    return {path.name for path in (Path(settings.DATA_DIR) / "uploads").rglob("*") if path.is_file()}


def test_what_matches_and_what_does_not_is_shown_before_anything_is_made(
    as_alice: Client, version: Version
) -> None:
    attachment = matched(as_alice, version)
    page = as_alice.get(attach_address(version, f"{attachment.pk}/")).content.decode()
    assert "Create new version with 2 answers" in page
    assert "No valid row has this “id”" in page
    assert "Invalid JSON" in page
    assert "1 valid row of 3 would have no answer" in page
    assert Version.objects.count() == 1


def test_the_list_of_what_did_not_match_is_complete(as_alice: Client, version: Version) -> None:
    attachment = matched(as_alice, version)
    answer = as_alice.get(attach_address(version, f"{attachment.pk}/unmatched/"))
    entries = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert [(entry["line"], entry["reason"]) for entry in entries] == [(2, "unknown_id"), (4, "bad_line")]
    assert entries[1]["text"] == "{bad"
    assert entries[0]["problem"].startswith("No valid row")


def test_agreeing_makes_a_version_that_is_read_like_any_upload(as_alice: Client, version: Version) -> None:
    attachment = matched(as_alice, version)
    as_alice.post(attach_address(version, f"{attachment.pk}/use/"))
    made = Version.objects.get(number=2)
    assert (made.origin, made.parent, made.chosen_format) == ("attach", version, "judge_only")
    worker.import_version(made.pk)
    made.refresh_from_db()
    assert (made.state, made.rows, made.valid_rows) == (VersionState.READY, 3, 2)
    assert made.counts["model_outputs.missing"] == 1
    assert Response.objects.filter(row__version=made).count() == 2
    assert Row.objects.filter(version=version).count() == 3


def test_the_new_versions_digest_is_that_of_its_file(as_alice: Client, version: Version) -> None:
    attachment = matched(as_alice, version)
    as_alice.post(attach_address(version, f"{attachment.pk}/use/"))
    made = Version.objects.get(number=2)
    assert made.size == made.path.stat().st_size
    assert made.path.stat().st_mode & 0o077 == 0


def test_agreeing_twice_makes_one_version(as_alice: Client, version: Version) -> None:
    attachment = matched(as_alice, version)
    for _ in range(2):
        as_alice.post(attach_address(version, f"{attachment.pk}/use/"))
    assert Version.objects.count() == 2
    assert not attach.attachment_discard(attachment=attachment)


def test_nothing_is_made_of_answers_that_do_not_match(as_alice: Client, version: Version) -> None:
    attachment = matched(as_alice, version, jsonl(reply("x", id="z")))
    as_alice.post(attach_address(version, f"{attachment.pk}/use/"))
    assert Version.objects.count() == 1
    assert "No answer matches" in as_alice.get(attach_address(version, f"{attachment.pk}/")).content.decode()


def test_thrown_away_answers_leave_no_file(
    as_alice: Client, version: Version, settings: LazySettings
) -> None:
    before = kept_files(settings)
    attachment = matched(as_alice, version)
    as_alice.post(attach_address(version, f"{attachment.pk}/discard/"))
    assert kept_files(settings) == before


def test_a_version_with_answers_gets_more(as_alice: Client, upload: Upload) -> None:
    base = upload(jsonl(question("a", id=1, model_outputs=answers(old="x"))), read=True)
    attachment = matched(as_alice, base, jsonl(reply("y", id=1)))
    as_alice.post(attach_address(base, f"{attachment.pk}/use/"))
    made = Version.objects.get(number=2)
    worker.import_version(made.pk)
    made.refresh_from_db()
    assert sorted(made.models_found) == ["old", "新模型"]
    assert made.usable


def test_a_legacy_version_and_a_legacy_file(as_alice: Client, upload: Upload) -> None:
    rows = "prompt,response\n首都是哪里?,{}\n天空?,{}\n"
    base = upload(rows.format("北京", "蓝").encode(), read=True)
    attachment = matched(as_alice, base, rows.format("南京", "绿").encode(), model_name="qwen")
    as_alice.post(attach_address(base, f"{attachment.pk}/use/"))
    made = Version.objects.get(number=2)
    worker.import_version(made.pk)
    made.refresh_from_db()
    assert (made.format, made.models_found) == ("judge_only", {"qwen": {"rows": 2, "responses": 2}})
    assert made.usable


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "has no rows"), (b"%PDF-1.7", "This file is a PDF"), (b"prompt,response\na,b\n", "Legacy file")],
)
def test_a_file_that_cannot_be_matched_says_why(
    as_alice: Client, version: Version, content: bytes, sentence: str
) -> None:
    attachment = matched(as_alice, version, content)
    assert attachment.state == State.FAILED
    assert sentence in as_alice.get(attach_address(version, f"{attachment.pk}/")).content.decode()


def test_a_legacy_file_sent_without_a_name_is_named_without_sending_it_again(
    as_alice: Client, upload: Upload
) -> None:
    rows = "prompt,response\n首都是哪里?,{}\n".format
    base = upload(rows("北京").encode(), read=True)
    attachment = matched(as_alice, base, rows("南京").encode())
    assert "Name of the model" in as_alice.get(attach_address(base, f"{attachment.pk}/")).content.decode()
    as_alice.post(attach_address(base, f"{attachment.pk}/name/"), {"model_name": " "})
    attachment.refresh_from_db()
    assert attachment.state == State.FAILED
    as_alice.post(attach_address(base, f"{attachment.pk}/name/"), {"model_name": " qwen "})
    jobs.run("match_answers", attachment.pk)
    attachment.refresh_from_db()
    assert (attachment.state, attachment.model_name, attachment.report["matched"]) == (
        State.MATCHED,
        "qwen",
        1,
    )
    again = as_alice.post(
        attach_address(base, f"{attachment.pk}/name/"), {"model_name": "other"}, follow=True
    )
    assert "a decision was already made" in again.content.decode()


def test_while_it_is_matched_the_page_asks_again(as_alice: Client, version: Version) -> None:
    send(as_alice, version)
    waiting = Attachment.objects.get()
    assert "every 1s" in as_alice.get(attach_address(version, f"{waiting.pk}/")).content.decode()
    part = as_alice.get(
        attach_address(version, f"{waiting.pk}/"), headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in part
    jobs.run("match_answers", waiting.pk)
    done = as_alice.get(attach_address(version, f"{waiting.pk}/"), headers={"HX-Request": "true"})
    assert done.headers["HX-Refresh"] == "true"


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 200), ("adam", 200), ("bob", 403), ("rita", 403), ("charlie", 404)]
)
@pytest.mark.parametrize("part", ["", "{}/", "{}/unmatched/"])
def test_who_may_look(
    client_of: ClientOf, cast: dict[str, User], version: Version, name: str, status: int, part: str
) -> None:
    attachment = matched(client_of(cast["alice"]), version)
    answer = client_of(cast[name]).get(attach_address(version, part.format(attachment.pk)))
    assert answer.status_code == status


@pytest.mark.parametrize(("name", "status"), [("alice", 302), ("bob", 403), ("charlie", 404)])
@pytest.mark.parametrize("part", ["", "{}/use/", "{}/discard/"])
def test_who_may_attach(
    client_of: ClientOf, cast: dict[str, User], version: Version, name: str, status: int, part: str
) -> None:
    attachment = matched(client_of(cast["alice"]), version)
    file = SimpleUploadedFile("a.jsonl", GIVEN)
    answer = client_of(cast[name]).post(attach_address(version, part.format(attachment.pk)), {"file": file})
    assert answer.status_code == status


def test_an_attachment_is_not_found_under_another_version(
    as_alice: Client, version: Version, upload: Upload
) -> None:
    attachment = matched(as_alice, version)
    other = upload(jsonl(question("x")), name="other", read=True)
    assert as_alice.get(attach_address(other, f"{attachment.pk}/")).status_code == 404


def test_a_file_beyond_the_limit_leaves_nothing(
    as_alice: Client, version: Version, settings: LazySettings
) -> None:
    from dataclasses import replace

    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)
    before = kept_files(settings)
    assert send(as_alice, version, b"x" * 2_000_000).status_code == 422
    assert kept_files(settings) == before


def test_a_worker_that_is_asked_to_end_gives_the_file_back(as_alice: Client, version: Version) -> None:
    send(as_alice, version)
    waiting = Attachment.objects.get()
    stop = threading.Event()
    stop.set()
    assert jobs.run("match_answers", waiting.pk, stop)
    waiting.refresh_from_db()
    job = jobs.of("match_answers", waiting.pk)
    assert (waiting.state, job and job.state) == (State.WAITING, "waiting")


def test_a_dead_workers_matching_is_resumed(as_alice: Client, version: Version) -> None:
    send(as_alice, version)
    waiting = Attachment.objects.get()
    assert jobs.claim("match_answers", waiting.pk, owner="elsewhere:1:1")
    jobs.reconcile()
    assert jobs.run("match_answers", waiting.pk)


def test_what_nobody_decides_on_is_thrown_away_in_the_end(as_alice: Client, version: Version) -> None:
    attachment = matched(as_alice, version)
    Attachment.objects.update(created_at=timezone.now() - attach.KEPT_FOR - timedelta(days=1))
    attach.delete_old()
    attachment.refresh_from_db()
    assert attachment.state == State.DISCARDED


@pytest.fixture
def at_once() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.django_db(transaction=True)
def test_two_people_who_agree_at_the_same_moment_make_one_version(
    client_of: ClientOf, cast: dict[str, User], version: Version, at_once: ThreadPoolExecutor
) -> None:
    attachment = matched(client_of(cast["alice"]), version)

    def agree(name: str) -> int:
        try:
            return client_of(cast[name]).post(attach_address(version, f"{attachment.pk}/use/")).status_code
        finally:
            connection.close()

    assert list(at_once.map(agree, ["alice", "adam"])) == [302, 302]
    assert Version.objects.filter(origin="attach").count() == 1


def conversation(first: str, last: str, **more: Any) -> dict[str, Any]:
    turns = [{"prompt": "one?", "response": first}, {"prompt": "two?", "response": last}]
    return {"conversation": turns, **more}


@pytest.fixture
def two_turns(upload: Upload) -> Version:
    return upload(jsonl(conversation("old first", "old last", id="a")), read=True)


def test_answers_that_bring_their_own_turns_say_so_and_show_them_with_the_row(
    as_alice: Client, two_turns: Version
) -> None:
    given = jsonl(conversation("new first", "new last"))
    attachment = matched(as_alice, two_turns, given, model_name="m")
    page = as_alice.get(attach_address(two_turns, f"{attachment.pk}/")).content.decode()
    assert "1 answer keeps its own earlier turns." in page
    assert "same_turns" not in page
    as_alice.post(attach_address(two_turns, f"{attachment.pk}/use/"))
    made = Version.objects.get(number=2)
    worker.import_version(made.pk)
    row = as_alice.get(f"/p/physics/datasets/{made.dataset_id}/v2/rows/1/").content.decode()
    assert row.count("old first") >= 1
    assert row.count("new first") == 1
    assert "Earlier turns of this answer" in row


def test_it_is_asked_which_turns_an_answer_follows_if_only_its_last_turn_is_known(
    as_alice: Client, two_turns: Version
) -> None:
    attachment = matched(as_alice, two_turns, jsonl(reply("new last", id="a")))
    page = as_alice.get(attach_address(two_turns, f"{attachment.pk}/")).content.decode()
    assert "1 answer to a multi-turn row comes without its earlier turns." in page
    assert 'name="same_turns" form="use" required' in page
    refused = as_alice.post(attach_address(two_turns, f"{attachment.pk}/use/"), follow=True).content.decode()
    assert "confirm which earlier turns" in refused
    assert Version.objects.count() == 1
    as_alice.post(attach_address(two_turns, f"{attachment.pk}/use/"), {"same_turns": "on"})
    assert Version.objects.count() == 2
