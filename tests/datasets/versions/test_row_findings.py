"""Only a thousand findings per code are stored; filters, lists, rows and downloads cover all of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from django.conf import LazySettings
from django.test import Client

from datasets.core.reader import KEPT_PER_CODE
from datasets.core.search_index import SearchFrom
from datasets.models import Version
from datasets.views import row_browser
from datasets.views.row_browser import BrowserFilter, rows_page
from evalsite.accounts.models import User
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, jsonl, question

pytestmark = pytest.mark.django_db
MANY = KEPT_PER_CODE + 150
BAD = {"messages": [{"role": "bot", "content": "a"}, {"role": 3, "content": "b"}]}


@pytest.fixture
def many(upload: Upload) -> Version:
    """Good rows, each after a bad one with two wrong roles; then blank questions, which are repeated prompts."""
    rows = [row for n in range(MANY) for row in (BAD, question(f"q{n}"))]
    return upload(jsonl(*rows, *[question(" ")] * MANY), read=True)


def address(version: Version) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/"


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def all_lines(version: Version, code: str) -> list[int]:
    lines, after = [], 0
    while page := row_browser.find(version, BrowserFilter(finding=code), SearchFrom(after), 500).lines:
        lines += page
        after = page[-1]
    return lines


def test_the_filter_reaches_every_row_with_a_finding(many: Version) -> None:
    assert all_lines(many, "role.unknown") == list(range(1, 2 * MANY, 2))
    assert all_lines(many, "row.duplicate")[-1] == 3 * MANY
    assert len(all_lines(many, "any")) == 2 * MANY


def test_going_back_reaches_them_too(many: Version) -> None:
    page = rows_page(many, BrowserFilter(finding="role.unknown"), before=2 * MANY + 1, size=2)
    assert [row.line for row in page.rows] == [2 * MANY - 3, 2 * MANY - 1]


def test_the_list_shows_the_codes_of_rows_whose_findings_are_not_kept(many: Version) -> None:
    (row,) = rows_page(many, BrowserFilter(), after=3 * MANY - 1).rows
    assert row.findings == [("content.blank", "warning"), ("row.duplicate", "warning")]


def test_a_bad_row_beyond_what_is_kept_still_shows_everything(many: Version, as_alice: Client) -> None:
    page = as_alice.get(f"{address(many)}rows/{2 * MANY - 1}/").content.decode()
    assert "The role is “bot”" in page
    assert "The role is a number" in page
    assert "messages[1].role" in page


def test_a_repeated_row_beyond_what_is_kept_says_that_it_is_one(many: Version, as_alice: Client) -> None:
    page = as_alice.get(f"{address(many)}rows/{3 * MANY}/").content.decode()
    assert "Duplicate prompt: same as an earlier line" in page


def test_the_download_holds_every_finding_of_every_bad_row(many: Version, as_alice: Client) -> None:
    answer = as_alice.get(f"{address(many)}bad-rows/")
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[arg-type]
    assert len(lines) == MANY
    assert {len(json.loads(line)["findings"]) for line in lines[1:]} == {3}  # two roles and a repeated prompt
    assert json.loads(lines[-1])["findings"][0]["message"].startswith("The role is “bot”")


def test_bad_records_of_a_csv_are_all_reported(upload: Upload, as_alice: Client) -> None:
    source = "prompt,response\n" + "a,b,c\n" * MANY
    version = upload(source.encode(), read=True, file_name="x.csv")
    answer = as_alice.get(f"{address(version)}bad-rows/")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]
    records = list(csv.reader(io.StringIO(text)))
    assert len(records) == MANY + 1
    assert "The record has 3 fields" in records[-1][0]


def test_a_warning_beyond_what_is_kept_says_where_in_the_row_it_is(upload: Upload, as_alice: Client) -> None:
    blank = {"model_name": "lark", "responses": [{"content": "a"}, {"content": " "}]}
    version = upload(jsonl(*[{**question("a"), "model_outputs": [blank]}] * MANY), read=True)
    page = as_alice.get(f"{address(version)}rows/{MANY}/").content.decode()
    assert "The answer is blank" in page
    assert "model_outputs[0].responses[1].content" in page


def test_a_blank_answer_in_a_csv_beyond_what_is_kept_is_reported_whole(
    upload: Upload, as_alice: Client
) -> None:
    version = upload(b"prompt,response\n" + b"a,\n" * MANY, read=True, file_name="x.csv")
    page = as_alice.get(f"{address(version)}rows/{MANY + 1}/").content.decode()
    assert "The answer is blank" in page
    assert "<code>response</code>" in page


def test_the_byte_that_is_no_text_is_named_beyond_what_is_kept(upload: Upload, as_alice: Client) -> None:
    version = upload(jsonl(question("a")) + b'{"\xff"}\n' * MANY, read=True)
    page = as_alice.get(f"{address(version)}rows/{MANY + 1}/").content.decode()
    assert "byte 0xFF" in page


def test_a_row_that_is_too_long_is_reported_beyond_what_is_kept(
    upload: Upload, as_alice: Client, settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, row_max_kb=1)
    version = upload(jsonl(question("a")) + (b"{" * 1025 + b"\n") * MANY, read=True)
    page = as_alice.get(f"{address(version)}rows/{MANY + 1}/").content.decode()
    assert "The row is longer than 1,024 bytes" in page


def test_reading_a_version_again_leaves_no_lines_of_before(many: Version) -> None:
    assert many.finding_lines.filter(code="role.unknown").count() == 1


def test_a_caret_is_under_the_place_in_a_bad_row(upload: Upload, as_alice: Client) -> None:
    version = upload(jsonl(question("a")) + '{"名": “x”}\n'.encode(), read=True)
    for part in ("", "rows/2/"):
        page = as_alice.get(f"{address(version)}{part}").content.decode()
        assert '<code class="place">{&quot;名&quot;: <mark>“</mark>x”}</code>' in page


def test_a_place_far_in_a_long_row_is_shown_too(upload: Upload, as_alice: Client) -> None:
    version = upload(jsonl(question("a")) + b'{"a": "' + b"x" * 9000 + b'", "b": nothing}\n', read=True)
    page = as_alice.get(address(version)).content.decode()
    assert "<mark>n</mark>othing}" in page


def test_a_repair_far_in_a_long_row_is_shown_in_its_finding(upload: Upload, as_alice: Client) -> None:
    version = upload(jsonl(question("a")) + b'{"a": "' + b"x" * 9000 + b'", "b": True}\n', read=True)
    page = as_alice.get(address(version)).content.decode()
    assert "<del>T</del><ins>t</ins>rue}" in page


def test_a_printed_object_that_ends_early_shows_the_place_in_the_file(
    upload: Upload, as_alice: Client
) -> None:
    version = upload(b"{\n \"messages\": [],\n 'id': 1\n}\n", read=True)
    page = as_alice.get(address(version)).content.decode()
    assert '<code class="place"> <mark>&#x27;</mark>id&#x27;: 1</code>' in page
    assert "The first objects are incomplete" in page
    assert "rows/?line=3" not in page
