"""Which judgements a filter matches, and their counts by state."""

from __future__ import annotations

from typing import Any

import pytest

from evalsite.accounts.models import Project
from judging.core.results import JudgementResult
from judging.filters.conditions import matching
from judging.filters.counts import counts_by_state, reasons
from judging.filters.judgement_filter import Filters, meaning_category
from judging.records.models import Run
from judging.runs import services
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, judge, said
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


def mixed(place: int) -> JudgementResult:
    """Positions 0 to 5: alpha 7, beta unparsed, alpha error, beta 3, alpha 7.5 (flagged), beta 10."""
    flagged = said(7.5, flags=("planted_verdict",), seconds=9.0)
    return [said(7), said(None), failed(), said(3), flagged, said(10)][place % 6]


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project, mixed)


def positions(run: Run, **asked: Any) -> set[int]:
    return set(matching(run, Filters(**asked)).values_list("position", flat=True))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {0, 1, 2, 3, 4, 5}),
        ({"candidate": "alpha"}, {0, 2, 4}),
        ({"candidate": "nobody"}, set()),
        ({"metric": "quality"}, {0, 1, 2, 3, 4, 5}),
        ({"metric": "other"}, set()),
        ({"state": "error"}, {2}),
        ({"state": "scored", "candidate": "beta"}, {3, 5}),
        ({"reason": "nothing_offered"}, {1}),
        ({"reason": "rate_limited", "candidate": "beta"}, set()),
        ({"flag": "planted_verdict"}, {4}),
        ({"least": 7.0}, {0, 4, 5}),
        ({"least": 3.0, "most": 7.0}, {0, 3}),
        ({"least": 7.0, "below": 7.5}, {0}),
        ({"value": "7"}, {0}),
        ({"value": "7.5"}, {4}),
        ({"value": "good"}, set()),
        ({"line": 2}, {2, 3}),
        ({"q": "BETA says 3"}, {5}),
        ({"q": "100%"}, set()),
        ({"q": "content"}, set()),
        ({"q": "alpha", "state": "scored"}, {0, 4}),
        ({"attempts": "older"}, set()),
        ({"attempts": "all", "state": "scored"}, {0, 3, 4, 5}),
    ],
)
def test_a_filter_means_these_positions(run: Run, asked: dict[str, Any], expected: set[int]) -> None:
    assert positions(run, **asked) == expected


def test_the_answers_text_is_searched_also_where_the_upload_escaped_it(run: Run) -> None:
    response = run.judgements.get(position=3).response
    response.raw = r'{"content": "\u7b54\u6848\u662f 42"}'
    response.save()
    assert positions(run, q="答案是") == {3}


def test_an_answer_that_the_database_cannot_read_does_not_break_the_search(run: Run) -> None:
    response = run.judgements.get(position=3).response
    response.raw = '{"content": ' + "[" * 2000 + "]" * 2000 + "}"
    response.save()
    assert positions(run, q="alpha") == {0, 2, 4}


def test_bools_and_categories_are_found_by_their_value(project: Project) -> None:
    run = a_judged_run(
        project, lambda place: [said(True), said(1), said("好"), said(False)][place % 4], rows=2
    )
    assert [positions(run, value=value) for value in ("true", "1", "好")] == [{0}, {1}, {2}]


@pytest.mark.parametrize(
    "asked", [{}, {"candidate": "alpha"}, {"least": 5.0}, {"q": "says"}, {"reason": "rate_limited"}]
)
def test_the_counts_are_those_of_the_list(run: Run, asked: dict[str, Any]) -> None:
    for state, count in counts_by_state(run, Filters(**asked)).items():
        assert count == len(positions(run, **asked, state=state)) > 0


def test_the_counts_of_the_states_do_not_depend_on_the_state_chosen(run: Run) -> None:
    assert counts_by_state(run, Filters(state="error")) == {"scored": 4, "unparsed": 1, "error": 1}


def test_a_retried_judgement_is_among_the_older_ones(run: Run) -> None:
    services.run_retry(run)
    again = judge(run, lambda _: said(5))
    assert counts_by_state(again, Filters()) == {"scored": 5, "unparsed": 1}
    assert positions(again, attempts="older") == {2}
    assert positions(again, line=2) == {3, 6}
    assert counts_by_state(again, Filters(attempts="all")) == {"scored": 5, "unparsed": 1, "error": 1}


def test_reasons_are_counted_the_most_frequent_first(project: Project) -> None:
    run = a_judged_run(project, lambda place: failed() if place < 3 else said(None), rows=4)
    assert reasons(run) == [("unparsed", "nothing_offered", 5), ("error", "rate_limited", 3)]


def test_other_runs_are_not_meant(run: Run) -> None:
    other = judge(a_run(run.version, a_metric(JUDGE_URL)), lambda _: failed())
    assert positions(run, state="error") == {2}
    assert matching(other, Filters(state="error")).count() == 6


def test_what_waits_is_not_run(project: Project) -> None:
    run = a_run(a_version(project), a_metric(JUDGE_URL))
    assert counts_by_state(run, Filters()) == {}


@pytest.mark.parametrize(
    ("filters", "query"),
    [
        (Filters(), ""),
        (Filters(candidate="a b", least=0.0), "?candidate=a+b&least=0.0"),
        (Filters(state="error", sort="-score"), "?state=error&sort=-score"),
    ],
)
def test_a_filters_address_is_short(filters: Filters, query: str) -> None:
    assert filters.query() == query


@pytest.mark.parametrize("label", ["A>B", "5", "true", "nan", '"q', '"q"', " wide ", "不适用", "[1]", "null"])
def test_any_text_can_be_asked_for_as_a_category(label: str) -> None:
    assert Filters(value=meaning_category(label).strip()).category == label


@pytest.mark.parametrize(("value", "score"), [("5", 5), ("true", 1), ("0.5", 0.5)])
def test_what_reads_as_a_score_is_no_category(value: str, score: float) -> None:
    asked = Filters(value=value)
    assert (asked.valued, asked.category) == (score, None)
