"""Several files in one upload: separate data sets, or parts of one."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.messages import get_messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from datasets import services, uploads
from datasets.core.repair.apply import Repair
from datasets.importing.worker import import_version
from datasets.models import Dataset, Row, Version
from datasets.versions import parts, repair
from evalsite.accounts.models import Project, User
from evalsite.storage import backup
from tests.conftest import ClientOf
from tests.datasets.conftest import jsonl, question

pytestmark = pytest.mark.django_db
ADDRESS = "/p/physics/datasets/upload/"
LEGACY = b'{"conversation": [{"prompt": "q", "response": "a"}]}\n'
CSV = b"prompt,response\nq,a\n"
Given = tuple[str, bytes]
Join = Callable[..., Version]


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def join(project: Project) -> Join:
    """Upload the parts of a data set; `read=True` also imports them."""

    def upload(*given: Given, read: bool = False, **more: Any) -> Version:
        opened = [(io.BytesIO(content), name) for name, content in given]
        made = parts.dataset_upload_parts(
            project=project, name="whole", named_files=opened, user=None, **more
        )
        return read_now(made) if read else made

    return upload


def read_now(version: Version) -> Version:
    import_version(version.pk)
    version.refresh_from_db()
    return version


def send(client: Client, *given: Given, **fields: Any) -> HttpResponse:
    headers = fields.pop("headers", {})
    sent = [SimpleUploadedFile(name, content) for name, content in given]
    return client.post(ADDRESS, {"file": sent, **fields}, headers=headers)


def said(answer: HttpResponse) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def stored_files(settings: LazySettings) -> list[Path]:
    folder = Path(settings.DATA_DIR) / "uploads"
    return sorted(folder.iterdir()) if folder.exists() else []


def address(version: Version) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/"


# Each file is a data set


def test_each_of_several_files_becomes_a_data_set(as_alice: Client) -> None:
    answer = send(as_alice, ("b.jsonl", LEGACY), ("a.csv", CSV), together="each")
    assert answer.headers["Location"] == "/p/physics/datasets/"
    assert set(Version.objects.values_list("dataset__name", "file_name")) == {
        ("a", "a.csv"),
        ("b", "b.jsonl"),
    }
    assert said(answer) == ["2 files uploaded: a.csv, b.jsonl."]


def test_several_files_without_a_choice_are_data_sets_each(as_alice: Client) -> None:
    send(as_alice, ("a.jsonl", LEGACY), ("b.jsonl", LEGACY))
    assert Dataset.objects.count() == 2


def test_a_file_that_is_refused_does_not_lose_the_others(as_alice: Client, settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)
    answer = send(as_alice, ("a.jsonl", LEGACY), ("b.jsonl", b"x" * 1024 * 1024 + b"y"), ("c.jsonl", LEGACY))
    assert answer.status_code == 302
    assert sorted(Version.objects.values_list("file_name", flat=True)) == ["a.jsonl", "c.jsonl"]
    taken, refused = said(answer)
    assert taken == "2 files uploaded: a.jsonl, c.jsonl."
    assert refused.startswith("“b.jsonl” was not uploaded: Not saved: larger than 1 MB")
    assert len(stored_files(settings)) == 2


def test_where_no_file_is_taken_the_form_says_why_of_each(as_alice: Client, settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)
    large = b"x" * 1024 * 1024 + b"y"
    answer = send(as_alice, ("a.jsonl", large), ("b.jsonl", large), headers={"accept": "application/json"})
    assert answer.status_code == 422
    assert [text[:9] for text in answer.json()["errors"]] == ["“a.jsonl”", "“b.jsonl”"]


def test_a_request_beyond_the_limit_of_all_files_is_refused_unread(
    as_alice: Client, settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)
    content = b"x" * 900 * 1024
    answer = send(as_alice, *[(f"{n}.jsonl", content) for n in range(7)])
    assert answer.status_code == 413
    assert "for one file and for all files of an upload together" in answer.text
    assert not Version.objects.exists()


def test_more_files_than_an_upload_can_have_are_refused_with_a_sentence(
    as_alice: Client, settings: LazySettings
) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 2
    answer = send(as_alice, *[(f"{n}.jsonl", LEGACY) for n in range(3)])
    assert answer.status_code == 413
    assert "An upload can have at most 2 files." in answer.text
    assert not Version.objects.exists()


def test_files_that_suggest_one_name_get_data_sets_of_their_own(as_alice: Client) -> None:
    send(as_alice, ("a.csv", CSV), ("a.jsonl", LEGACY))
    assert sorted(Dataset.objects.values_list("name", flat=True)) == ["a", "a.jsonl"]


def test_a_name_for_several_data_sets_is_refused(as_alice: Client) -> None:
    answer = send(as_alice, ("a.csv", CSV), ("b.csv", CSV), name="mine")
    assert answer.status_code == 422
    assert "Several data sets can&#x27;t share a name." in answer.text


# Parts of one data set


def test_parts_become_one_version_in_the_natural_order_of_their_names(as_alice: Client) -> None:
    given = [(f"part-{n}.jsonl", jsonl(question(f"q{n}"))) for n in (10, 2, 1)]
    answer = send(as_alice, *given, together="parts")
    version = Version.objects.get()
    assert answer.headers["Location"] == address(version)
    assert (version.dataset.name, version.file_name) == ("part", "part.jsonl")
    assert version.path.read_bytes() == jsonl(question("q1"), question("q2"), question("q10"))
    assert said(answer) == ["3 files were joined into one data set."]


def test_parts_are_joined_in_the_order_that_was_chosen(as_alice: Client) -> None:
    send(as_alice, ("b.jsonl", LEGACY), ("a.jsonl", LEGACY * 2), together="parts", order="given")
    assert [part["name"] for part in Version.objects.get().parts] == ["b.jsonl", "a.jsonl"]


def test_a_script_gets_the_address_of_the_joined_version(as_alice: Client) -> None:
    headers = {"accept": "application/json"}
    answer = send(as_alice, ("a.csv", CSV), ("b.csv", CSV), together="parts", headers=headers)
    assert answer.json() == {"address": address(Version.objects.get())}


def test_the_rows_of_all_parts_are_read_as_one_version(join: Join) -> None:
    version = join(
        ("1.jsonl", jsonl(question("你好，世界")).decode().encode("gb18030")),
        ("2.jsonl.gz", gzip.compress(jsonl(question("b")).rstrip())),
        ("3.jsonl", jsonl(question("c")).decode().encode("utf-16")),
        read=True,
    )
    assert (version.rows, version.valid_rows, version.format) == (3, 3, "infer_and_judge")
    raws = Row.objects.filter(version=version).order_by("line").values_list("raw", flat=True)
    assert [json.loads(raw)["messages"][0]["content"] for raw in raws] == ["你好，世界", "b", "c"]
    assert [part.encoding for part in parts.parts_of(version)] == ["gb18030", "utf-8", "utf-16"]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (("b.csv", CSV), "“b.csv” is CSV, but “a.jsonl” is JSONL."),
        (
            ("b.jsonl", LEGACY),
            "The rows of “b.jsonl” have “conversation”, but those of “a.jsonl” have “messages”.",
        ),
        (("b.pdf", b"%PDF-1.7\n"), "“b.pdf”: This file is a PDF"),
        (("b.gz", gzip.compress(jsonl(question("b")))[:-9]), "“b.gz”: The compressed file is incomplete"),
    ],
)
def test_a_part_that_does_not_fit_is_refused_by_name(
    as_alice: Client, settings: LazySettings, other: Given, sentence: str
) -> None:
    headers = {"accept": "application/json"}
    answer = send(as_alice, ("a.jsonl", jsonl(question("q"))), other, together="parts", headers=headers)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error.startswith(sentence)
    assert error.endswith("Nothing was saved.")
    assert not Version.objects.exists()
    assert stored_files(settings) == []


def test_csv_parts_with_other_columns_are_refused_with_both_headers(join: Join) -> None:
    with pytest.raises(
        ValidationError, match=r"“b.csv” has the columns response, prompt, but “a.csv” has prompt"
    ):
        join(("a.csv", CSV), ("b.csv", b"response,prompt\na,q\n"))


def test_an_open_quote_names_its_file_and_line(join: Join) -> None:
    with pytest.raises(ValidationError, match=r"In “a.csv”, a quoted field opens in line 3"):
        join(("a.csv", CSV + b'"x,y\n'), ("b.csv", CSV))


def test_parts_beyond_what_is_unpacked_are_refused(join: Join, settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1, unpacked_max_mb=1)
    packed = gzip.compress(jsonl(question("x" * 600_000)))
    with pytest.raises(ValidationError, match=r"Up to “b.gz”, the parts come to more than 1 MB"):
        join(("a.gz", packed), ("b.gz", packed))
    assert stored_files(settings) == []


def test_the_original_bytes_of_every_part_are_kept_and_downloaded(as_alice: Client, join: Join) -> None:
    packed = gzip.compress(CSV)
    version = join(("a.csv", b"\xef\xbb\xbf" + CSV), ("b.csv.gz", packed), read=True)
    page = as_alice.get(address(version)).text
    for number, (name, content) in enumerate([("a.csv", b"\xef\xbb\xbf" + CSV), ("b.csv.gz", packed)], 1):
        assert f'href="{address(version)}original/{number}/"' in page
        assert hashlib.sha256(content).hexdigest() in page
        answer = as_alice.get(f"{address(version)}original/{number}/")
        assert b"".join(answer.streaming_content) == content
        assert name in answer.headers["Content-Disposition"]
    assert as_alice.get(f"{address(version)}original/3/").status_code == 404
    assert as_alice.get(f"{address(version)}original/0/").status_code == 404


def test_a_part_whose_bytes_changed_is_not_given_out_as_the_original(as_alice: Client, join: Join) -> None:
    version = join(("a.csv", CSV), ("b.csv", CSV), read=True)
    part = parts.parts_of(version)[1]
    (version.path.parent / Path(part.stored_as).name).write_bytes(b"other")
    answer = as_alice.get(f"{address(version)}original/2/")
    assert (answer.status_code, part.sha256 in answer.text) == (409, True)


# Findings


def test_a_finding_names_the_file_and_its_line(as_alice: Client, join: Join) -> None:
    good = jsonl(question("q"))
    version = join(("a.jsonl", good + good), ("b.jsonl", good + b"{bad\n"), read=True)
    page = as_alice.get(address(version)).text
    assert "b.jsonl, line 2" in page
    assert "b.jsonl, line 2" in as_alice.get(f"{address(version)}findings/json.invalid/").text
    assert "b.jsonl, line 2" in as_alice.get(f"{address(version)}rows/4/").text


def test_bad_rows_name_the_file_and_its_line(as_alice: Client, join: Join) -> None:
    version = join(("a.jsonl", jsonl(question("q"))), ("b.jsonl", b"\n{bad\n"), read=True)
    answer = as_alice.get(f"{address(version)}bad-rows/")
    row = json.loads(b"".join(answer.streaming_content))
    found = row["findings"][0]
    assert (row["line"], found["line"], found["file"], found["line_in_file"]) == (3, 3, "b.jsonl", 2)


def test_bad_records_name_the_file_and_its_line(as_alice: Client, join: Join) -> None:
    version = join(("a.csv", CSV), ("b.csv", CSV + b"only one\n"), read=True)
    answer = as_alice.get(f"{address(version)}bad-rows/")
    assert b"4 (b.csv:3) csv.columns" in b"".join(answer.streaming_content)


def test_a_version_of_one_file_names_no_file(upload: Any) -> None:
    assert parts.places(upload(b"{bad\n", read=True))(1) is None


# Other actions on versions


def test_parts_read_as_another_format_stay_parts(as_alice: Client, join: Join) -> None:
    version = join(("a.jsonl", LEGACY), ("b.jsonl", b"{bad\n"), read=True)
    made = read_now(services.version_read_as(version=version, chosen_format="infer_and_judge", user=None))
    assert (made.parts, made.format) == (version.parts, "infer_and_judge")
    assert "b.jsonl, line 1" in as_alice.get(f"{address(made)}findings/json.invalid/").text


def test_a_repaired_version_still_offers_the_parts_it_came_from(as_alice: Client, join: Join) -> None:
    version = join(("a.jsonl", LEGACY), ("b.jsonl", b"// note\n" + LEGACY), read=True)
    made, _new = repair.version_repair(version=version, repairs=[Repair("strip_comments")], user=None)
    read_now(made)
    assert (made.valid_rows, made.bad_rows, made.parts) == (2, 0, [])
    page = as_alice.get(address(made)).text
    assert f'href="{address(version)}original/2/"' in page
    assert "These are the parts of version 1" in page


def test_every_part_is_kept_where_a_backup_copies_from(join: Join) -> None:
    version = join(("a.csv", CSV), ("b.csv", CSV + CSV))
    for part in parts.parts_of(version):
        assert part.stored_as.partition("/")[0] in backup.COPIED
        assert uploads.is_intact(part.stored_as, part.sha256)


def test_the_plain_form_offers_the_choice(as_alice: Client) -> None:
    page = as_alice.get(ADDRESS).text
    assert "Each file is a data set" in page
    assert "Parts of one data set" in page
    assert "multiple" in page
