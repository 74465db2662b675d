"""Pages of rows by keyset, filters, search."""

from __future__ import annotations

import json

import pytest

from datasets import browsing, selectors
from datasets.browsing import RowFilter, matching, rows_page
from datasets.models import Version
from tests.datasets.conftest import Upload, answers, jsonl, numbered, question

pytestmark = pytest.mark.django_db
ALL = RowFilter()


def lines(version: Version, chosen: RowFilter = ALL, **place: int) -> list[int]:
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
    assert lines(version, RowFilter(model=by_name["y"])) == [2]


def test_rows_with_findings_and_with_one_code(upload: Upload) -> None:
    version = upload(jsonl(question("a"), question(" "), question("b")) + b"{bad\n", read=True)
    assert lines(version, RowFilter(finding="any")) == [2, 4]
    assert lines(version, RowFilter(finding="json.invalid")) == [4]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("text", ["首都", "北京。", 'say "hi"', "a/b", "100%", "a_b", "😀"])
def test_search_finds_a_text_escaped_or_not(upload: Upload, ascii_only: bool, text: str) -> None:
    texts = [f"before {text} after", "something else"]
    content = "".join(json.dumps(question(t), ensure_ascii=ascii_only) + "\n" for t in texts)
    version = upload(content.encode(), read=True)
    assert lines(version, RowFilter(text=text)) == [1]


def test_search_finds_upper_case_escapes_and_escaped_slashes(upload: Upload) -> None:
    version = upload(b'{"messages":[{"role":"user","content":"\\u9996\\u90FD \\/ x"}]}\n', read=True)
    assert lines(version, RowFilter(text="首都 / x")) == [1]


def test_search_ignores_case(upload: Upload) -> None:
    assert lines(upload(jsonl(question("Paris")), read=True), RowFilter(text="pARIS")) == [1]


def test_search_looks_into_answers(long: Version) -> None:
    assert lines(long, RowFilter(text="answer 77")) == [77]


def test_filters_narrow_each_other(long: Version) -> None:
    model = selectors.candidates_of(long)[0].pk
    assert lines(long, RowFilter(text="question 77", model=model)) == [77]
    assert lines(long, RowFilter(text="question 77", finding="any")) == []


def test_neighbours_are_those_in_the_filter(long: Version) -> None:
    assert browsing.neighbours(long, ALL, 1) == (None, 2)
    assert browsing.neighbours(long, RowFilter(text="question 11"), 110) == (11, 111)


def test_a_very_long_row_is_shown_by_its_beginning(upload: Upload) -> None:
    version = upload(jsonl(question("x" * (browsing.WHOLE + 1))), read=True)
    row = rows_page(version, ALL).rows[0]
    assert (row.question, len(row.beginning)) == ("", browsing.EXCERPT)


@pytest.mark.parametrize(
    "chosen", [ALL, RowFilter(text="x"), RowFilter(model=1), RowFilter(finding="json.nul")]
)
@pytest.mark.parametrize("order", ["line", "-line"])
def test_a_page_is_found_by_the_index_and_not_by_sorting(
    long: Version, chosen: RowFilter, order: str
) -> None:
    plan = matching(long, chosen).filter(line__gt=50).order_by(order)[:51].explain()
    first = plan.splitlines()[0]
    assert "SEARCH" in first or "Index" in plan
    assert "datasets_row" in plan
    assert "ORDER BY" not in plan


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
