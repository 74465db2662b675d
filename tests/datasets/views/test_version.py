"""The pages of data sets over HTTP: permissions and contents."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from datasets.core.reader import KEPT_PER_CODE
from datasets.importing import tables
from datasets.importing.worker import import_version
from datasets.models import Version, VersionState
from datasets.views import row_browser
from datasets.views.findings_view import groups
from datasets.views.row_browser import BrowserFilter
from evalsite import archiving
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.tasks import workers
from evalsite.web.exchange import BUFFERED
from evalsite.web.server import STEP_ASIDE
from evalsite.web.threads import ThreadsBusy
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, begin_reading, jsonl, numbered, question

pytestmark = pytest.mark.django_db
LIST = "/p/physics/datasets/"
PAGES = ["", "original/", "findings/content.blank/", "rows/", "rows/1/", "rows/1/raw/", "rows/random/"]
ACTIONS = ["cancel/", "again/", "read-as/", "leave-out/"]


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def address(version: Version) -> str:
    return f"{LIST}{version.dataset_id}/v{version.number}/"


@pytest.fixture
def mixed(upload: Upload) -> Version:
    """Five good rows on lines 1 to 5, the last one with a warning, and two bad ones on lines 6 and 7."""
    good = [
        question(f"question {n}", model_outputs=answers(alpha=f"answer {n}"), topic="t") for n in range(1, 5)
    ]
    warned = question(" ", model_outputs=answers(alpha="x", beta="y"))
    return upload(jsonl(*good, warned) + b"{bad\n[1]\n", name="mixed", read=True)


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 200), ("bob", 200), ("adam", 200), ("rita", 403), ("charlie", 404)]
)
@pytest.mark.parametrize("part", PAGES)
def test_who_may_look(
    client_of: ClientOf, cast: dict[str, User], mixed: Version, part: str, name: str, status: int
) -> None:
    with closing(client_of(cast[name]).get(address(mixed) + part, follow=True)) as answer:
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 302), ("adam", 302), ("bob", 403), ("rita", 403), ("charlie", 404)]
)
@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_change(
    client_of: ClientOf, cast: dict[str, User], mixed: Version, action: str, name: str, status: int
) -> None:
    client = client_of(cast[name])
    assert client.post(address(mixed) + action, {"rows": "2"}).status_code == status
    assert client.get(address(mixed) + action).status_code == 405


@pytest.mark.parametrize(("name", "status"), [("alice", 302), ("bob", 403), ("charlie", 404)])
@pytest.mark.parametrize("action", ["archive/", "restore/"])
def test_who_may_archive(
    client_of: ClientOf, cast: dict[str, User], mixed: Version, action: str, name: str, status: int
) -> None:
    assert client_of(cast[name]).post(f"{LIST}{mixed.dataset_id}/{action}").status_code == status


def test_a_version_is_not_found_under_another_project(
    client_of: ClientOf, charlie: User, mixed: Version
) -> None:
    there = address(mixed).replace("physics", "elsewhere")
    assert [client_of(charlie).get(there + page).status_code for page in PAGES] == [404] * len(PAGES)


@pytest.mark.parametrize("part", ["rows/99/", "rows/99/raw/", "findings/json.nul/", "findings/x/", "rows/0/"])
def test_what_is_not_there_is_not_found(as_alice: Client, mixed: Version, part: str) -> None:
    assert as_alice.get(address(mixed) + part).status_code == 404


def test_an_empty_list_invites_to_upload(as_alice: Client) -> None:
    assert b"No data set yet" in as_alice.get(LIST).content


def test_archiving_takes_a_data_set_out_of_the_list_and_restoring_brings_it_back(
    as_alice: Client, mixed: Version
) -> None:
    as_alice.post(f"{LIST}{mixed.dataset_id}/archive/")
    as_alice.get(LIST)  # the toast that names the data set is shown once
    assert b"mixed" not in as_alice.get(LIST).content
    assert b"mixed" in as_alice.get(LIST + "?archived=1").content
    as_alice.post(f"{LIST}{mixed.dataset_id}/restore/")
    assert b"mixed" in as_alice.get(LIST).content


def test_a_data_sets_address_leads_to_its_newest_version(as_alice: Client, upload: Upload) -> None:
    upload(numbered(1))
    newest = upload(numbered(2))
    assert as_alice.get(f"{LIST}{newest.dataset_id}/").headers["Location"] == address(newest)


def test_while_it_waits_the_page_says_that_no_worker_runs(as_alice: Client, upload: Upload) -> None:
    page = as_alice.get(address(upload(numbered(1)))).content.decode()
    assert "No worker is running" in page
    assert 'hx-trigger="every 1s"' in page


def test_a_reader_that_died_is_reported_while_no_worker_runs(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(1))
    begin_reading(version, "elsewhere:1:1")
    assert b"No worker is running" in as_alice.get(address(version)).content


def test_reading_elsewhere_than_in_a_worker_is_reading_too(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(1))
    begin_reading(version)
    assert b"No worker is running" not in as_alice.get(address(version)).content


def test_with_a_worker_it_does_not_say_so(as_alice: Client, upload: Upload) -> None:
    workers.heartbeat(workers.DATA)
    assert b"No worker is running" not in as_alice.get(address(upload(numbered(1)))).content


def test_the_progress_is_asked_for_as_a_part(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(1000))
    tables.advance(begin_reading(version), bytes_read=version.size // 2, rows=500)
    part = as_alice.get(address(version), headers={"HX-Request": "true"}).content.decode()
    assert f'<progress value="{version.size // 2}" max="{version.size}"' in part
    assert "500 rows" in part
    assert "<html" not in part


def test_rate_and_time_left_are_shown_once_they_mean_something(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(1000))
    tables.advance(begin_reading(version), bytes_read=version.size // 2, rows=500)
    part = as_alice.get(address(version) + "?began=1&at=0", headers={"HX-Request": "true"}).content.decode()
    assert "a second" in part


@pytest.mark.parametrize("query", ["began=x&at=y", "began=nan&at=inf", "began=-1&at=1e999", "began=9e99"])
def test_a_hostile_progress_address_does_no_harm(as_alice: Client, upload: Upload, query: str) -> None:
    version = upload(numbered(10))
    tables.advance(begin_reading(version), bytes_read=5, rows=1)
    assert as_alice.get(f"{address(version)}?{query}").status_code == 200


def test_the_last_poll_loads_the_page_again(as_alice: Client, mixed: Version) -> None:
    assert as_alice.get(address(mixed), headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"


def test_cancelling_ends_the_reading_and_it_can_be_read_again(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(3))
    assert b"Reading was cancelled" in as_alice.post(address(version) + "cancel/", follow=True).content
    as_alice.post(address(version) + "again/")
    import_version(version.pk)
    version.refresh_from_db()
    assert (version.state, version.rows) == (VersionState.READY, 3)


def test_a_failed_version_says_why_and_what_was_kept(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(3))
    version.path.unlink()
    import_version(version.pk)
    page = as_alice.get(address(version)).content
    assert b"The uploaded file is missing" in page
    assert as_alice.get(address(version) + "original/").status_code == 404


def test_a_ready_version_shows_what_was_found(as_alice: Client, mixed: Version) -> None:
    page = as_alice.get(address(mixed)).content.decode()
    for text in (
        "Judge only (JSONL)",
        "UTF-8",
        mixed.sha256,
        "alpha",
        "beta",
        "topic",
        "json.invalid",
        "content.blank",
    ):
        assert text in page


def test_invalid_json_of_several_causes_is_not_headed_by_the_first(as_alice: Client, upload: Upload) -> None:
    def title(text: bytes) -> str:
        return next(one.title for one in groups(upload(text, read=True)) if one.code == "json.invalid")

    broken = numbered(1) + b'{"a": 1,}\n'
    assert title(broken).startswith("Invalid JSON: trailing comma")
    assert title(broken + b'{"a": "1}\n') == "Invalid JSON"


def test_a_findings_line_leads_to_its_row(as_alice: Client, mixed: Version) -> None:
    assert f"{address(mixed)}rows/?line=6" in as_alice.get(address(mixed)).content.decode()
    assert as_alice.get(address(mixed) + "rows/?line=6").headers["Location"] == f"{address(mixed)}rows/6/"


def test_a_line_without_a_row_leads_to_the_next_one(as_alice: Client, upload: Upload) -> None:
    version = upload(b"\n\n" + numbered(2), read=True)
    assert as_alice.get(address(version) + "rows/?line=1").headers["Location"].endswith("/rows/3/")
    assert as_alice.get(address(version) + "rows/?line=99").headers["Location"].endswith("/rows/4/")


def test_the_original_comes_back_byte_for_byte(as_alice: Client, upload: Upload) -> None:
    content = b"\xef\xbb\xbf" + numbered(2).replace(b"\n", b"\r\n")
    download = as_alice.get(
        address(upload(content, read=True)) + "original/", headers={"Accept-Encoding": "gzip"}
    )
    assert b"".join(download.streaming_content) == content


def test_an_original_whose_bytes_have_changed_is_not_sent_without_saying_so(
    as_alice: Client, upload: Upload
) -> None:
    version = upload(numbered(2), read=True)
    version.path.write_bytes(numbered(3))
    page = as_alice.get(address(version) + "original/")
    assert page.status_code == 409
    assert "SHA-256 differs" in page.text
    assert version.sha256 in page.text
    damaged = as_alice.get(address(version) + "original/?damaged")
    assert b"".join(damaged.streaming_content) == numbered(3)  # type: ignore[attr-defined]


def test_a_large_original_is_checked_beside_the_threads_of_pages(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(2), read=True)
    version.path.write_bytes(numbered(3))

    def busy() -> None:
        raise ThreadsBusy

    small = as_alice.get(address(version) + "original/", **{STEP_ASIDE: busy})
    assert small.status_code == 409
    Version.objects.filter(pk=version.pk).update(size=BUFFERED + 1)
    assert as_alice.get(address(version) + "original/", **{STEP_ASIDE: busy}).status_code == 503


def test_leaving_bad_rows_out_needs_their_number(as_alice: Client, mixed: Version) -> None:
    as_alice.post(address(mixed) + "leave-out/", {"rows": "1"})
    mixed.refresh_from_db()
    assert mixed.left_out_at is None


def test_leaving_bad_rows_out_is_recorded_and_shown(as_alice: Client, mixed: Version) -> None:
    page = as_alice.post(address(mixed) + "leave-out/", {"rows": "2"}, follow=True).content.decode()
    mixed.refresh_from_db()
    assert mixed.usable
    assert "2 invalid rows of 7 are excluded from every run." in page
    assert "Decided by alice" in page


def test_who_leaves_them_out_second_changes_nothing(
    client_of: ClientOf, alice: User, adam: User, mixed: Version
) -> None:
    for user in (alice, adam):
        client_of(user).post(address(mixed) + "leave-out/", {"rows": "2"})
    mixed.refresh_from_db()
    assert mixed.left_out_by == alice


def test_correcting_the_format_makes_a_further_version(as_alice: Client, mixed: Version) -> None:
    answer = as_alice.post(address(mixed) + "read-as/", {"chosen_format": "infer_and_judge"})
    made = Version.objects.get(number=2)
    assert answer.headers["Location"] == address(made)
    assert (made.parent, made.chosen_format) == (mixed, "infer_and_judge")


def test_a_format_that_does_not_exist_makes_nothing(as_alice: Client, mixed: Version) -> None:
    as_alice.post(address(mixed) + "read-as/", {"chosen_format": "xml"})
    assert Version.objects.count() == 1


def test_a_row_shows_conversation_answers_fields_and_computed_values(
    as_alice: Client, upload: Upload
) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 < 3?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And 4?"},
    ]
    outputs = [
        {
            "model_name": "m",
            "responses": [{"content": "No", "reasoning_content": "hm", "note": 7}, {"content": ""}],
        }
    ]
    row = {
        "messages": messages,
        "ref_answer": {"value": 4},
        "deep": [1, {"a": "b"}],
        "model_outputs": outputs,
    }
    version = upload(jsonl(row), read=True)
    page = as_alice.get(address(version) + "rows/1/").content.decode()
    for text in (
        "Be brief.",
        "2 &lt; 3?",
        "hm",
        "&quot;note&quot;: 7",
        "This answer is blank.",
        "[SYSTEM] Be brief.",
    ):
        assert text in page


@pytest.mark.parametrize(
    "content", [b"prompt,response\nwhy,so\n", b'{"conversation":[{"prompt":"why","response":"so"}]}\n']
)
def test_a_legacy_row_is_shown_as_a_conversation(as_alice: Client, upload: Upload, content: bytes) -> None:
    version = upload(content, read=True)
    line = row_browser.rows_page(version, BrowserFilter()).rows[0].line
    page = as_alice.get(f"{address(version)}rows/{line}/").content.decode()
    assert '<div class="text">why</div>' in page
    assert '<div class="text">so</div>' in page


def test_markup_in_data_is_shown_and_not_interpreted(as_alice: Client, upload: Upload) -> None:
    evil = "<img src=x onerror=alert(1)>"
    row = question(evil, model_outputs=answers(**{evil: evil}), **{evil: evil})
    version = upload(jsonl(row), read=True)
    for page in ("", "rows/", "rows/1/", "rows/?q=" + evil):
        assert evil.encode() not in as_alice.get(address(version) + page).content


def test_a_bad_row_shows_its_text_and_what_is_wrong(as_alice: Client, mixed: Version) -> None:
    page = as_alice.get(address(mixed) + "rows/6/").content.decode()
    assert "{bad" in page
    assert "Invalid JSON" in page


def test_a_row_downloads_whole(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl(question("x" * 300_000)), read=True)
    assert as_alice.get(address(version) + "rows/1/raw/").content.count(b"x") >= 300_000
    assert as_alice.get(address(version) + "rows/1/").content.count(b"x" * 1000) < 300


def test_previous_and_next_stay_inside_the_filter(as_alice: Client, mixed: Version) -> None:
    page = as_alice.get(address(mixed) + "rows/6/?finding=any").content.decode()
    assert f'rel="prev" href="{address(mixed)}rows/5/?finding=any"' in page
    assert f'rel="next" href="{address(mixed)}rows/7/?finding=any"' in page


def test_a_random_row_is_a_good_one(as_alice: Client, mixed: Version) -> None:
    seen = {as_alice.get(address(mixed) + "rows/random/").headers["Location"] for _ in range(30)}
    assert seen <= {f"{address(mixed)}rows/{line}/" for line in range(1, 6)}


@pytest.mark.parametrize(
    "query",
    ["after=x", "after=-1", "after=" + "9" * 40, "before=0", "model=zz", "finding=zz", "line=x", "line=0"],
)
def test_hostile_addresses_of_the_browser_do_no_harm(as_alice: Client, mixed: Version, query: str) -> None:
    assert as_alice.get(f"{address(mixed)}rows/?{query}").status_code == 200


def test_a_filter_that_does_not_exist_says_so(as_alice: Client, mixed: Version) -> None:
    assert b"Select a valid choice" in as_alice.get(f"{address(mixed)}rows/?finding=zz").content


def test_archiving_offers_its_undo(as_alice: Client, mixed: Version) -> None:
    page = as_alice.post(f"{LIST}{mixed.dataset_id}/archive/", follow=True).content.decode()
    assert f'action="{LIST}{mixed.dataset_id}/restore/"' in page


def queries(client: Client, page: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(page).status_code == 200
    return len(captured)


@pytest.fixture
def few_and_many(upload: Upload) -> Callable[..., tuple[Version, Version]]:
    bad = b"{bad\n[1]\n"
    return lambda: (
        upload(numbered(1) + bad, read=True),
        upload(numbered(60) + bad * 20, name="many", read=True),
    )


@pytest.mark.parametrize("part", ["", "rows/", "rows/?finding=any", "rows/1/", "findings/json.invalid/"])
def test_pages_ask_the_database_as_often_for_many_rows_as_for_few(
    as_alice: Client, few_and_many: Any, part: str
) -> None:
    few, many = few_and_many()
    queries(as_alice, address(few) + part)
    assert queries(as_alice, address(many) + part) == queries(as_alice, address(few) + part) <= 26


def test_the_list_asks_as_often_for_many_data_sets_as_for_one(as_alice: Client, upload: Upload) -> None:
    upload(numbered(1), name="one", read=True)
    once = queries(as_alice, LIST)
    for number in range(5):
        upload(numbered(1), name=f"more {number}", read=True)
    assert queries(as_alice, LIST) == once


def test_the_list_goes_on_where_a_page_ends(as_alice: Client, upload: Upload) -> None:
    for number in range(51):
        upload(b"", name=f"set {number}")
    page = as_alice.get(LIST)
    assert ">set 0<" not in page.content.decode()
    assert ">set 0<" in as_alice.get(f"{LIST}?before={page.context['further']}").content.decode()


def test_an_archived_data_set_offers_no_version_to_runs(upload: Upload, project: Any) -> None:
    from datasets.selectors import usable_versions

    version = upload(numbered(2), read=True)
    assert list(usable_versions(project)) == [version]
    archiving.archive(version.dataset, Action.DATASET_ARCHIVED, project)
    assert list(usable_versions(project)) == []


@pytest.mark.parametrize("bad", [False, True])
def test_findings_are_above_the_first_rows_where_rows_are_invalid(
    bad: bool, as_alice: Client, upload: Upload
) -> None:
    rows = [question("1+1?"), question("2+2?", id=1, model_outputs=[]), question("3+3?")][:: 1 if bad else 2]
    page = as_alice.get(address(upload(jsonl(*rows), read=True))).text
    assert (page.index('id="findings"') < page.index('id="first-rows"')) is bad


def test_the_first_rows_say_how_many_answers_are_not_shown(as_alice: Client, upload: Upload) -> None:
    row = question("Which city?", model_outputs=answers(a="1", b="2", c="3", d="4", e="5", f="6"))
    assert "… and 2 more" in as_alice.get(address(upload(jsonl(row), read=True))).text


def test_the_first_rows_show_question_reference_and_answers(as_alice: Client, upload: Upload) -> None:
    row = question(
        "Which city?", ref_answer={"city": "北京"}, model_outputs=answers(lark="Beijing", wren="Paris")
    )
    page = as_alice.get(address(upload(jsonl(row), read=True))).content.decode()
    assert "Which city?" in page
    assert "{&quot;city&quot;: &quot;北京&quot;}" in page
    assert re.search(r"lark</strong> Beijing</div>", page)


def test_every_table_of_a_version_has_a_caption(as_alice: Client, mixed: Version) -> None:
    page = as_alice.get(address(mixed)).content.decode()
    assert page.count("<table") == page.count("<caption") > 3


def test_models_of_a_printed_file_are_counted_before_it_is_repaired(as_alice: Client, upload: Upload) -> None:
    printed = json.dumps(question("q", model_outputs=answers(a="1", b="2")), indent=1).encode()
    version = upload(printed, read=True)
    page = as_alice.get(f"/p/physics/datasets/{version.dataset_id}/v1/").content.decode()
    assert "<dt>Models</dt><dd>2</dd><dd>found in rows that can't be used yet</dd>" in page


def test_models_of_a_file_of_no_format_are_not_known(as_alice: Client, upload: Upload) -> None:
    version = upload(b"what is this\n", read=True)
    page = as_alice.get(f"/p/physics/datasets/{version.dataset_id}/v1/").content.decode()
    assert "<dt>Models</dt><dd>–</dd>" in page


def test_the_list_does_not_count_models_that_are_not_known(as_alice: Client, upload: Upload) -> None:
    upload(b"what is this\n", read=True)
    page = as_alice.get("/p/physics/datasets/").content.decode()
    assert '<td class="num" data-label="Models">–</td>' in page


@pytest.mark.parametrize(("rows", "cut"), [(2, False), (KEPT_PER_CODE + 1, True)])
def test_a_page_of_findings_says_where_not_all_were_kept(
    as_alice: Client, upload: Upload, rows: int, cut: bool
) -> None:
    version = upload(jsonl(*(question(" ", id=number) for number in range(rows))), read=True)
    page = as_alice.get(address(version) + "findings/content.blank/").content.decode()
    assert f"{rows:,} findings." in page
    assert ("The first thousand are shown here." in page) == cut


@pytest.mark.parametrize(
    ("content", "findings_first"),
    [
        (jsonl(question("a")) + b"{bad\n", True),
        (gzip.compress(jsonl(question("a"), question("b")), mtime=0)[:-4], True),  # only partly read
        (jsonl(question(" ")), False),
    ],
)
def test_findings_are_above_the_first_rows_where_they_keep_the_version_from_being_used(
    as_alice: Client, upload: Upload, content: bytes, findings_first: bool
) -> None:
    page = as_alice.get(address(upload(content, read=True))).text
    assert (page.index('id="findings-title"') < page.index('class="table dense first-rows')) == findings_first
