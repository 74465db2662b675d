"""Search results show where in a row the text occurs; a random row is one of the filtered rows."""

from __future__ import annotations

import pytest
from django.test import Client

from datasets.models import Version
from datasets.versions.search import Excerpt, text_hit
from datasets.views import row_browser
from datasets.views.row_browser import BrowserFilter, random_line, rows_page
from evalsite.accounts.models import User
from evalsite.templatetags.show import marked
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, question

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(upload: Upload) -> Version:
    rows = [question(f"第 {n} 题", topic=f"t{n % 3}", model_outputs=answers(x="a" * 500)) for n in range(30)]
    rows[20] = question("首都", topic="t9", model_outputs=answers(x="z" * 200 + "The Capital <is> 北京。"))
    return upload(jsonl(*rows), read=True)


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def address(version: Version) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/rows/"


@pytest.mark.parametrize(
    ("text", "wanted", "shown"),
    [
        ("The Capital", "cap", "The <mark>Cap</mark>ital"),
        ("北京，北京", "北", "<mark>北</mark>京，<mark>北</mark>京"),
        ("<b>", "b", "&lt;<mark>b</mark>&gt;"),
        ("a.c abc", "a.c", "<mark>a.c</mark> abc"),
        ("abc", "", "abc"),
    ],
)
def test_the_words_are_marked_and_all_else_is_escaped(text: str, wanted: str, shown: str) -> None:
    assert marked(text, wanted) == shown


def test_a_frequent_character_is_marked_so_often_and_no_more() -> None:
    assert marked("a" * 100_000, "a").count("<mark>") == 500


def test_a_hit_is_the_first_place_with_what_is_around_it() -> None:
    assert text_hit(["x", "b" * 70 + "North" + "c" * 3], "north") == Excerpt("…" + "b" * 60, "North", "ccc")


def test_a_text_found_in_an_answer_is_shown_with_its_surroundings(version: Version) -> None:
    (row,) = rows_page(version, BrowserFilter(text="capital")).rows
    assert row.hit is not None
    assert (row.line, row.hit.met, row.hit.after) == (21, "Capital", " <is> 北京。")


def test_the_list_and_the_row_mark_what_was_searched_for(version: Version, as_alice: Client) -> None:
    for part in ("?q=capital", "21/?q=capital"):
        page = as_alice.get(address(version) + part).content.decode()
        assert "<mark>Capital</mark> &lt;is&gt;" in page


def test_a_random_row_stays_within_the_filter(version: Version, as_alice: Client) -> None:
    for _ in range(10):
        answer = as_alice.get(f"{address(version)}random/?field=topic&value=t9")
        assert answer.headers["Location"] == f"{address(version)}21/?field=topic&value=t9"


def test_random_rows_within_a_filter_are_not_always_the_same(version: Version) -> None:
    drawn = {random_line(version, BrowserFilter(field="topic", value="t1")) for _ in range(60)}
    assert len(drawn) > 3


def test_where_nothing_matches_the_page_says_so(version: Version, as_alice: Client) -> None:
    page = as_alice.get(f"{address(version)}random/?q=nowhere", follow=True).content.decode()
    assert "No matching row was found" in page


def test_the_look_for_a_random_row_ends(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_browser, "MOST_ROWS", 1)
    assert random_line(version, BrowserFilter(text="nowhere")) is None
