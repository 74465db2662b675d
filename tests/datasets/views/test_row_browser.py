"""The row browser: keyset pagination, filters, search."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets import selectors
from datasets.models import Version
from datasets.versions import search
from datasets.views import row_browser
from datasets.views.row_browser import BrowserFilter, rows_page
from evalsite.tasks import jobs
from tests.datasets.conftest import Upload, answers, jsonl, numbered, question

pytestmark = pytest.mark.django_db
ALL = BrowserFilter()


def lines(version: Version, chosen: BrowserFilter = ALL, **place: int) -> list[int]:
    return [row.line for row in rows_page(version, chosen, **place).rows]


@pytest.fixture
def long(upload: Upload) -> Version:
    return upload(numbered(120), read=True)


def test_pages_go_forward_to_the_end(long: Version) -> None:
    first = rows_page(long, ALL)
    second = rows_page(long, ALL, after=first.after)
    third = rows_page(long, ALL, after=second.after)
    assert [row.line for page in (first, second, third) for row in page.rows] == list(range(1, 121))
    assert (first.before, third.after) == (None, None)


def test_pages_go_back_in_the_same_order(long: Version) -> None:
    last = rows_page(long, ALL, after=100)
    assert lines(long, before=last.before or 0) == list(range(51, 101))


def test_a_row_shows_its_question_and_how_many_answers_it_has(long: Version) -> None:
    row = rows_page(long, ALL).rows[6]
    assert (row.question, row.answers) == ("question 7", 1)


def test_rows_of_one_model(upload: Upload) -> None:
    version = upload(
        jsonl(question("a", model_outputs=answers(x="1")), question("b", model_outputs=answers(y="2"))),
        read=True,
    )
    by_name = {candidate.name: candidate.pk for candidate in selectors.candidates_of(version)}
    assert lines(version, BrowserFilter(model=by_name["y"])) == [2]


def test_rows_with_findings_and_with_one_code(upload: Upload) -> None:
    version = upload(jsonl(question("a"), question(" "), question("b")) + b"{bad\n", read=True)
    assert lines(version, BrowserFilter(finding="any")) == [2, 4]
    assert lines(version, BrowserFilter(finding="json.invalid")) == [4]


def test_search_looks_into_answers(long: Version) -> None:
    assert lines(long, BrowserFilter(text="answer 77")) == [77]


def test_filters_narrow_each_other(long: Version) -> None:
    model = selectors.candidates_of(long)[0].pk
    assert lines(long, BrowserFilter(text="question 77", model=model)) == [77]
    assert lines(long, BrowserFilter(text="question 77", finding="any")) == []


def test_neighbours_are_those_in_the_filter(long: Version) -> None:
    def around(chosen: BrowserFilter, line: int) -> list[list[int]]:
        return [found.lines for found in row_browser.neighbours(long, chosen, line)]

    assert around(ALL, 1) == [[], [2]]
    assert around(BrowserFilter(text="question 11"), 110) == [[11], [111]]


def test_a_very_long_row_is_shown_by_its_beginning(upload: Upload) -> None:
    version = upload(jsonl(question("x" * (row_browser.WHOLE + 1))), read=True)
    row = rows_page(version, ALL).rows[0]
    assert (row.question, len(row.beginning), row.beginning[-1]) == ("", row_browser.EXCERPT + 1, "…")


@pytest.fixture(params=[False, True], ids=["plain", "indexed"])
def searched(request: pytest.FixtureRequest, upload: Upload) -> Upload:
    """Upload function, parametrized without and with a search index: both must find the same rows."""

    def read(content: bytes, **more: Any) -> Version:
        version = upload(content, read=True, **more)
        if request.param:
            assert jobs.run("index_version", version.pk)
            assert search.state_of(version).indexed
        return version

    return read


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "首都",
        "首",
        "北京。",
        "北京。上海",
        'say "hi"',
        "a/b",
        "100%",
        "a_b",
        "😀",
        "😀😀😀",
        "A\nb",
        "ÉCOLE",
        "\\",
    ],
)
def test_search_finds_a_text_however_it_is_escaped(searched: Upload, ascii_only: bool, text: str) -> None:
    texts = [f"before {text} after", "something else"]
    content = "".join(json.dumps(question(t), ensure_ascii=ascii_only) + "\n" for t in texts)
    assert lines(searched(content.encode()), BrowserFilter(text=text)) == [1]


def test_search_finds_upper_case_escapes_and_escaped_slashes(searched: Upload) -> None:
    version = searched(b'{"messages":[{"role":"user","content":"\\u9996\\u90FD \\/ x"}]}\n')
    assert lines(version, BrowserFilter(text="首都 / x")) == [1]


@pytest.mark.parametrize("text", ["pARIS", "straße", "STRASSE"])
def test_search_ignores_case(searched: Upload, text: str) -> None:
    assert lines(searched(jsonl(question("Paris, Straße"), question("x"))), BrowserFilter(text=text)) == [1]


@pytest.mark.parametrize("text", ["answer 77", "because 77", "77.5", "tag 77", "reference 77", "call 77"])
def test_search_looks_into_everything_that_one_can_read(searched: Upload, text: str) -> None:
    response = {
        "content": "answer 77",
        "reasoning_content": "because 77",
        "tool_calls": [{"name": "call 77"}],
    }
    outputs = [{"model_name": "m", "responses": [{"content": "first"}, response]}]
    more = {"n": 77.5, "tags": [{"a": ["tag 77"]}], "ref_answer": "reference 77"}
    rows = jsonl(question("q", model_outputs=answers(m="x")), question("q2", model_outputs=outputs, **more))
    assert lines(searched(rows), BrowserFilter(text=text)) == [2]


@pytest.mark.parametrize("text", ["user", "model_outputs", "content", "assistant"])
def test_search_passes_over_roles_and_names_of_fields(searched: Upload, text: str) -> None:
    assert lines(searched(jsonl(question("q", model_outputs=answers(m="x")))), BrowserFilter(text=text)) == []


def test_search_finds_a_text_across_parts(searched: Upload) -> None:
    parts = [{"type": "text", "text": "床前明"}, {"type": "text", "text": "月光"}]
    version = searched(jsonl({"messages": [{"role": "user", "content": parts}]}))
    assert lines(version, BrowserFilter(text="前明月光")) == [1]


def test_search_looks_into_bad_rows_as_they_are(searched: Upload) -> None:
    assert lines(searched(jsonl(question("a")) + "{坏的行\n".encode()), BrowserFilter(text="坏的行")) == [2]


def test_search_pages_go_forward_and_back(searched: Upload) -> None:
    version = searched(numbered(120))
    chosen = BrowserFilter(text="question")
    first = rows_page(version, chosen)
    second = rows_page(version, chosen, after=first.after)
    assert [row.line for row in second.rows] == list(range(51, 101))
    assert lines(version, chosen, before=second.before or 0) == list(range(1, 51))


def test_search_in_a_legacy_csv(searched: Upload) -> None:
    version = searched("prompt,response\n首都是哪里?,北京\n天空,蓝\n".encode())
    assert lines(version, BrowserFilter(text="首都是")) == [2]
    assert lines(version, BrowserFilter(text="蓝")) == [3]


@pytest.mark.parametrize(
    "hostile", ['"', "' OR 1=1 --", "a AND", "NEAR(", "*", "%_%", "col:", "-x", "\\u", "^a"]
)
def test_signs_of_query_languages_are_letters_like_any_other(searched: Upload, hostile: str) -> None:
    version = searched(jsonl(question(f"x{hostile}{hostile}y"), question("abc abc abc")))
    assert lines(version, BrowserFilter(text=hostile + hostile)) == [1]


VALUES = [
    ("t", "数学", [1]),
    ("t", "数", []),
    ("n", "5", [1, 2]),
    ("n", "5.0", []),
    ("b", "true", [2]),
    ("z", "null", [1]),
]


@pytest.mark.parametrize(("name", "value", "expected"), VALUES)
def test_rows_by_the_value_of_a_field(searched: Upload, name: str, value: str, expected: list[int]) -> None:
    version = searched(
        jsonl(question("a", t="数学", n=5, b=False, z=None), question("b", t="数学题", n="5", b=True))
    )
    assert lines(version, BrowserFilter(field=name, value=value)) == expected


def test_a_list_has_each_of_its_values(searched: Upload) -> None:
    version = searched(jsonl(question("a", tags=["难", "长"]), question("b", tags=["易"])))
    assert lines(version, BrowserFilter(field="tags", value="长")) == [1]


def test_rows_of_a_model_that_answered_few(searched: Upload) -> None:
    rows = [
        question(f"q{n}", model_outputs=answers(**({"rare": "x"} if n == 9 else {"usual": "y"})))
        for n in range(12)
    ]
    version = searched(jsonl(*rows))
    by_name = {candidate.name: candidate.pk for candidate in selectors.candidates_of(version)}
    assert lines(version, BrowserFilter(model=by_name["rare"])) == [10]
    assert len(lines(version, BrowserFilter(model=by_name["usual"]))) == 11


def test_all_filters_narrow_each_other(searched: Upload) -> None:
    version = searched(
        jsonl(*(question(f"question {n}", t=str(n % 3), model_outputs=answers(m="x")) for n in range(30)))
    )
    model = selectors.candidates_of(version)[0].pk
    assert lines(version, BrowserFilter(text="question 1", field="t", value="1", model=model)) == [
        2,
        11,
        14,
        17,
        20,
    ]
    assert lines(version, BrowserFilter(text="question 1", model=model + 1)) == []
    assert lines(version, BrowserFilter(text="question 1", finding="any")) == []


def test_a_look_ends_after_so_many_rows_and_goes_on_from_there(
    upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = upload(numbered(400), read=True)
    monkeypatch.setattr(row_browser, "MOST_ROWS", 60)
    chosen = BrowserFilter(text="question 350")
    page = rows_page(version, chosen)
    assert (page.rows, page.stopped, page.after) == ([], 301, 301)
    while not page.rows:
        page = rows_page(version, chosen, after=page.after)
    assert [row.line for row in page.rows] == [350]


def test_a_look_ends_after_so_much_text_in_both_directions(
    upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = upload(numbered(1000), read=True)
    monkeypatch.setattr(row_browser, "MOST_CHARACTERS", 2000)
    page = rows_page(version, BrowserFilter(text="nowhere"), before=990)
    assert (page.rows, page.stopped, page.before) == ([], 689, 689)
    around = row_browser.neighbours(version, BrowserFilter(text="nowhere"), 500)
    assert [found.stopped for found in around] == [249, 751]


def test_a_look_that_came_to_the_end_is_not_said_to_have_stopped(
    upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = upload(numbered(60), read=True)
    monkeypatch.setattr(row_browser, "MOST_CHARACTERS", 1)
    page = rows_page(version, BrowserFilter(text="nowhere"))
    assert (page.stopped, page.after) == (51, 51)
    assert rows_page(version, BrowserFilter(text="nowhere"), after=51).stopped is None


CHOSEN = [
    ALL,
    BrowserFilter(text="question 9"),
    BrowserFilter(field="t", value="1"),
    BrowserFilter(model=1),
    BrowserFilter(finding="json.invalid"),
]


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("place", [{"after": 60}, {"before": 60}])
def test_no_query_of_a_page_reads_a_whole_table(
    searched: Upload, chosen: BrowserFilter, place: dict[str, int]
) -> None:
    version = searched(numbered(120))
    with CaptureQueriesContext(connection) as queries:
        rows_page(version, chosen, **place)
    for query in queries:
        if connection.vendor == "sqlite" and query["sql"].startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN QUERY PLAN " + query["sql"])
                steps = [step[3] for step in cursor.fetchall()]
            assert not [step for step in steps if step.startswith("SCAN datasets_")], query["sql"]
            assert not [step for step in steps if "ORDER BY" in step and "datasets_row" in query["sql"][:99]]


def test_a_random_row_is_drawn_without_a_look_at_every_line(searched: Upload) -> None:
    version = searched(numbered(120))
    with CaptureQueriesContext(connection) as queries:
        assert selectors.random_row(version)
    assert not [query["sql"] for query in queries if "MIN(" in query["sql"] or "MAX(" in query["sql"]]


def test_previous_next_and_random_rows_are_good_ones(upload: Upload) -> None:
    version = upload(jsonl(question("a")) + b"{bad\n" + jsonl(question("b")), read=True)
    after, before = selectors.next_row(version, 1), selectors.previous_row(version, 3)
    assert after is not None
    assert before is not None
    assert (after.line, before.line) == (3, 1)
    assert {row.line for _ in range(20) if (row := selectors.random_row(version))} <= {1, 3}


def test_the_values_of_a_row_are_what_templates_see(upload: Upload) -> None:
    version = upload(jsonl(question("Why?", topic="x")), read=True)
    row = selectors.sample_rows(version)[0]
    values = selectors.row_values(row)
    assert (values["question"], values["topic"], values["gt"]) == ("Why?", "x", None)


def test_responses_come_with_their_candidates(upload: Upload) -> None:
    version = upload(jsonl(question("a", model_outputs=answers(y="2", x="1"))), read=True)
    row = selectors.row_for(version, 1)
    assert row is not None
    assert [response.candidate.name for response in selectors.responses_of(row)] == ["x", "y"]
