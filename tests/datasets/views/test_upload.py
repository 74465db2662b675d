"""Uploading over HTTP: what is stored, under which name, and what is refused."""

from __future__ import annotations

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from datasets import uploads
from datasets.models import Dataset, Version
from evalsite.accounts.models import User
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, jsonl, numbered, question
from tests.full_and_locked import files_up_to
from tests.odd_requests import Unread

pytestmark = pytest.mark.django_db
ADDRESS = "/p/physics/datasets/upload/"


def send(client: Client, content: bytes = b"{}\n", name: str = "a.jsonl", **fields: Any) -> HttpResponse:
    headers = fields.pop("headers", {})
    return client.post(ADDRESS, {"file": SimpleUploadedFile(name, content), **fields}, headers=headers)


def stored_files(settings: LazySettings) -> list[Path]:
    folder = Path(settings.DATA_DIR) / "uploads"
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def test_the_bytes_are_kept_as_they_came(as_alice: Client) -> None:
    content = b"\xef\xbb\xbf{\r\n\xff\0"
    send(as_alice, content)
    version = Version.objects.get()
    assert version.path.read_bytes() == content
    assert (version.size, version.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_the_name_comes_from_the_file(as_alice: Client) -> None:
    send(as_alice, name="首都.JSONL.gz")
    assert Dataset.objects.get().name == "首都"


def test_a_name_that_exists_gets_a_further_version(as_alice: Client) -> None:
    send(as_alice, name="one.jsonl")
    as_alice.post(ADDRESS, {"file": SimpleUploadedFile("x.csv", b""), "name": "one"})
    assert sorted(Version.objects.filter(dataset__name="one").values_list("number", flat=True)) == [1, 2]


@pytest.mark.parametrize(
    ("file_name", "versions"),
    [
        ("answers.jsonl", [("answers", 1), ("answers", 2)]),
        ("answers.json", [("answers", 1), ("answers.json", 1)]),
        ("answers.jsonl.gz", [("answers", 1), ("answers.jsonl.gz", 1)]),
    ],
)
def test_files_whose_names_differ_only_in_the_ending_are_no_versions_of_each_other(
    as_alice: Client, file_name: str, versions: list[tuple[str, int]]
) -> None:
    for name in ("answers.jsonl", file_name):
        send(as_alice, jsonl(question("Why?")), name)
    assert list(Version.objects.order_by("pk").values_list("dataset__name", "number")) == versions


def test_a_file_with_another_ending_finds_its_own_data_set_again(upload: Upload) -> None:
    for file_name in ("answers.jsonl", "answers.json", "answers.json"):
        upload(jsonl(question("Why?")), name="", file_name=file_name)
    found = Version.objects.order_by("pk").values_list("dataset__name", "number")
    assert list(found) == [("answers", 1), ("answers.json", 1), ("answers.json", 2)]


def test_a_chosen_name_makes_a_version_whatever_the_ending(upload: Upload) -> None:
    for file_name in ("answers.jsonl", "answers.json"):
        upload(jsonl(question("Why?")), name="answers", file_name=file_name)
    assert list(Version.objects.order_by("pk").values_list("dataset__name", "number")) == [
        ("answers", 1),
        ("answers", 2),
    ]


def test_files_of_one_name_in_one_upload_become_separate_data_sets(as_alice: Client) -> None:
    files = [SimpleUploadedFile("data.jsonl", b"{}\n") for _ in range(4)]
    as_alice.post(ADDRESS, {"file": files})
    found = Dataset.objects.order_by("pk").values_list("name", "versions__number")
    assert list(found) == [("data", 1), ("data.jsonl", 1), ("data (3)", 1), ("data (4)", 1)]


def test_two_people_who_upload_one_name_get_two_versions(
    client_of: ClientOf, alice: User, adam: User
) -> None:
    send(client_of(alice))
    send(client_of(adam))
    assert sorted(Version.objects.values_list("number", "created_by__username")) == [
        (1, "alice"),
        (2, "adam"),
    ]


@pytest.mark.django_db(transaction=True)
def test_uploads_of_one_name_at_the_same_moment_get_numbers_of_their_own(upload: Upload) -> None:
    def send_one(_: int) -> int:
        with closing(connection):
            return upload(numbered(1)).number

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(send_one, range(6))) == [1, 2, 3, 4, 5, 6]


def test_the_same_name_in_another_project_is_another_data_set(
    client_of: ClientOf, alice: User, charlie: User
) -> None:
    send(client_of(alice))
    file = SimpleUploadedFile("a.jsonl", b"{}")
    client_of(charlie).post("/p/elsewhere/datasets/upload/", {"file": file})
    assert Dataset.objects.filter(name="a").count() == 2


def test_uploading_to_an_archived_name_brings_it_back(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(1), name="a")
    as_alice.post(f"/p/physics/datasets/{version.dataset_id}/archive/")
    send(as_alice)
    assert Dataset.objects.get().archived_at is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\set.jsonl", "set.jsonl"),
        ("a\u202ecsv.exe", "acsv.exe"),
        ("a\nb\x00.jsonl", "ab.jsonl"),
        ("...", "upload"),
        ("", "upload"),
        ("x" * 300 + ".jsonl", "x" * 249 + ".jsonl"),
        ("<b>.jsonl", "<b>.jsonl"),
        ("数据 集.csv", "数据 集.csv"),
    ],
)
def test_a_file_name_is_shown_without_what_misleads(name: str, shown: str) -> None:
    assert uploads.shown_name(name) == shown


@pytest.mark.parametrize(
    "name", ["../../../evil.jsonl", "/etc/cron.d/x", "\u202eexe.jsonl", "a" * 250 + ".csv"]
)
def test_a_hostile_name_never_reaches_the_disk(as_alice: Client, settings: LazySettings, name: str) -> None:
    assert send(as_alice, name=name).status_code == 302
    kept = stored_files(settings)
    assert [path.name.isalnum() for path in kept] == [True]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>.jsonl", "a\"b'c.jsonl", "评测 集.csv"])
def test_a_hostile_name_is_shown_escaped_and_downloads(as_alice: Client, name: str) -> None:
    address = send(as_alice, name=name).headers["Location"]
    page = as_alice.get(address)
    download = as_alice.get(address + "original/")
    assert b"<script>alert" not in page.content
    assert b"".join(download.streaming_content) == b"{}\n"
    assert download.headers["Content-Disposition"].startswith("attachment")


def small_limit(settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)


def test_a_file_beyond_the_limit_is_refused_in_a_sentence(as_alice: Client, settings: LazySettings) -> None:
    small_limit(settings)
    answer = send(as_alice, b"x" * 1024 * 1024 + b"y")
    assert answer.status_code == 422
    assert b"larger than 1 MB" in answer.content
    assert not Version.objects.exists()
    assert stored_files(settings) == []


def test_a_file_of_just_the_limit_is_kept(as_alice: Client, settings: LazySettings) -> None:
    small_limit(settings)
    assert send(as_alice, b"x" * 1024 * 1024).status_code == 302


def test_the_service_keeps_the_limit_too(upload: Upload, settings: LazySettings) -> None:
    small_limit(settings)
    with pytest.raises(ValidationError, match="larger than 1 MB"):
        upload(b"x" * 1024 * 1024 + b"y")
    assert stored_files(settings) == []


def test_a_script_gets_the_address_as_json(as_alice: Client) -> None:
    answer = send(as_alice, headers={"accept": "application/json"})
    version = Version.objects.get()
    assert answer.json() == {"address": f"/p/physics/datasets/{version.dataset_id}/v1/"}


def test_a_script_gets_errors_as_json(as_alice: Client) -> None:
    answer = as_alice.post(ADDRESS, {}, headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()) == (422, {"errors": ["Choose a file or paste its content."]})


def test_a_form_without_a_file_says_so(as_alice: Client) -> None:
    answer = as_alice.post(ADDRESS, {"name": "x"})
    assert answer.status_code == 422
    assert b"Choose a file or paste its content." in answer.content


def test_a_pasted_text_is_a_file_too(as_alice: Client) -> None:
    as_alice.post(ADDRESS, {"text": '{"a": 1}\r\n{"a": 2}', "name": "notes"})
    version = Version.objects.get()
    assert version.path.read_bytes() == b'{"a": 1}\n{"a": 2}'
    assert (version.dataset.name, version.file_name) == ("notes", "pasted.jsonl")


def test_a_text_pasted_without_a_name_is_called_by_its_moment(as_alice: Client) -> None:
    as_alice.post(ADDRESS, {"text": "{}"})
    assert re.fullmatch(r"Pasted text, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", Dataset.objects.get().name)


def test_a_file_and_a_text_at_once_are_refused(as_alice: Client, settings: LazySettings) -> None:
    answer = send(as_alice, text="{}")
    assert b"Choose a file or paste a text, not both." in answer.content
    assert stored_files(settings) == []


def test_a_text_beyond_the_limit_is_refused_in_a_sentence(as_alice: Client) -> None:
    answer = as_alice.post(ADDRESS, {"text": "x" * 1_000_001})
    assert (answer.status_code, Version.objects.count()) == (422, 0)
    assert b"at most 1000000 characters" in answer.content


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("a.png", "a"),
        ("a.b.JSONL.gz", "a.b"),
        ("results v1.2.xlsx", "results v1.2"),
        ("set.tar.gz", "set"),
        ("gpt-4.1", "gpt-4.1"),
    ],
)
def test_the_name_that_a_file_suggests_has_no_ending(file_name: str, name: str) -> None:
    assert uploads.name_from(file_name) == name


def test_an_unknown_format_is_refused(as_alice: Client) -> None:
    assert send(as_alice, chosen_format="xml").status_code == 422
    assert not Version.objects.exists()


def test_the_token_is_asked_for(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert send(client).status_code == 403
    assert not Version.objects.exists()


@pytest.mark.parametrize(
    ("name", "status"),
    [("alice", 302), ("adam", 302), ("olga", 302), ("bob", 403), ("rita", 403), ("charlie", 404)],
)
def test_who_may_upload(client_of: ClientOf, cast: dict[str, User], name: str, status: int) -> None:
    assert send(client_of(cast[name])).status_code == status
    assert Version.objects.count() == (status == 302)


def test_an_outsider_is_sent_to_sign_in(client: Client, alice: User) -> None:
    assert send(client).headers["Location"].startswith("/sign-in/")


def test_the_page_offers_a_sample_of_every_format(as_alice: Client) -> None:
    page = as_alice.get(ADDRESS).content.decode()
    for path in uploads.sample_files().values():
        address = f"/p/physics/datasets/samples/{path.name}"
        assert address in page
        assert b"".join(as_alice.get(address).streaming_content) == path.read_bytes()


@pytest.mark.parametrize("name", ["nothing.jsonl", "..", "%2e%2e%2fmodels.py"])
def test_nothing_but_samples_is_given_out(as_alice: Client, name: str) -> None:
    assert as_alice.get(f"/p/physics/datasets/samples/{name}").status_code == 404


def test_a_further_version_is_offered_under_the_name(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(1), name="capitals")
    assert b'value="capitals"' in as_alice.get(f"{ADDRESS}?dataset={version.dataset_id}").content


def test_the_name_of_another_projects_data_set_is_not_shown(
    client_of: ClientOf, charlie: User, upload: Upload
) -> None:
    version = upload(numbered(1), name="capitals")
    page = client_of(charlie).get(f"/p/elsewhere/datasets/upload/?dataset={version.dataset_id}")
    assert b"capitals" not in page.content


DISK_IS_FULL = "disk is full"
MEGABYTE = 1024 * 1024


@pytest.fixture
def incoming(settings: LazySettings, tmp_path: Path) -> Path:
    """The temporary folder of uploads in progress."""
    settings.FILE_UPLOAD_TEMP_DIR = tmp_path
    return tmp_path


def test_an_upload_that_does_not_fit_on_the_disk_while_it_arrives_is_refused(
    as_alice: Client, incoming: Path, settings: LazySettings
) -> None:
    before = stored_files(settings)
    with files_up_to(MEGABYTE):
        answer = send(as_alice, numbered(1) * (3 * MEGABYTE // len(numbered(1))))
    assert (answer.status_code, DISK_IS_FULL in answer.text) == (507, True)
    assert answer.headers["Retry-After"]
    assert (list(incoming.iterdir()), stored_files(settings), Version.objects.count()) == ([], before, 0)


def test_the_upload_form_gets_the_sentence(as_alice: Client, incoming: Path) -> None:
    with files_up_to(MEGABYTE):
        answer = send(as_alice, b" " * 3 * MEGABYTE, headers={"Accept": "application/json"})
    assert answer.status_code == 507
    assert answer.json()["errors"][0].startswith("The server's disk is full. ")


def test_an_upload_larger_than_the_space_left_is_refused_before_it_is_read(
    as_alice: Client, settings: LazySettings
) -> None:
    settings.DATA_DIR = Path("/proc")  # a file system without free space
    answer = as_alice.generic("POST", ADDRESS, CONTENT_LENGTH="1000", **{"wsgi.input": Unread()})
    assert (answer.status_code, DISK_IS_FULL in answer.text) == (507, True)


def test_a_file_that_cannot_be_kept_on_a_full_disk_is_refused_in_a_sentence(
    upload: Upload, settings: LazySettings
) -> None:
    before = stored_files(settings)
    with files_up_to(MEGABYTE), pytest.raises(ValidationError, match=DISK_IS_FULL):
        upload(b" " * 3 * MEGABYTE)
    assert stored_files(settings) == before
