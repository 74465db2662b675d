"""The list of judgements: filters in the URL, keyset pagination, correct counts, rows of one run only."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from evalsite.accounts.models import Project, User
from judging.core.results import JudgementResult
from judging.filters.counts import counts_by_state, reasons
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ListPosition, place_from
from judging.filters.search import nearest
from judging.messages import reason_sentence
from judging.records.models import Run
from judging.review import selectors
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, judge, said
from tests.judging.review.pages import ORDERS, SORTED_BY, address, pages, text
from tests.make import a_comparison, a_project, a_run, a_version

pytestmark = pytest.mark.django_db


def varied(place: int) -> JudgementResult:
    """Repeated scores in no particular order, with some missing."""
    return failed() if place % 7 == 3 else said(place * 5 % 11 / 2, seconds=place * 3 % 5)


@pytest.fixture(scope="module")
def project(module_db: None) -> Project:
    return a_project()


@pytest.fixture(scope="module")
def run_pk(project: Project) -> int:
    """A run with 130 judgements: three pages."""
    return a_judged_run(project, varied, rows=65).pk


@pytest.fixture
def run(run_pk: int) -> Run:
    return Run.objects.get(pk=run_pk)


@pytest.mark.parametrize("sort", ORDERS)
def test_pages_hold_every_judgement_once_in_order(run: Run, sort: str) -> None:
    shown = [position for page in pages(run, Filters(sort=sort)) for position in page]
    name, down = sort.removeprefix("-"), sort.startswith("-")
    judgements = run.judgements.select_related("candidate", "run_metric")
    kept = {one.position: SORTED_BY[name](one) for one in judgements}
    known = [position for position in shown if kept[position] is not None]
    assert sorted(shown) == list(range(130))
    assert known == sorted(known, key=lambda one: (kept[one], one), reverse=down)
    assert shown[: len(known)] == known


def test_a_comparison_shows_both_answers(project: Project, bob: User, client_of: ClientOf) -> None:
    run = judge(a_run(a_version(project, 1), a_comparison(JUDGE_URL)), lambda _place: said(2))
    shown = client_of(bob).get(address(run, "judgements")).text
    assert "<b>A</b> alpha says 1.1<" in shown
    assert "<b>B</b> beta says 1.1<" in shown


def test_scores_of_the_list_have_equal_decimals(run: Run) -> None:
    texts = {line.value for line in selectors.page(run, Filters()).lines}
    assert {"0.0", "2.5", "5.0", ""} <= texts
    assert not {text for text in texts if text and text[-2] != "."}


@pytest.mark.parametrize("sort", ["candidate", "-metric", "state", "spread", "-differs"])
@pytest.mark.parametrize("page", ["judgements", "items"])
def test_an_address_with_a_former_order_lists_by_row_and_says_so(
    run: Run, bob: User, client_of: ClientOf, page: str, sort: str
) -> None:
    shown = client_of(bob).get(address(run, page), {"sort": sort, "candidate": "alpha"})
    assert "They are sorted by row." in text(shown)
    assert shown.context["query"] == "?candidate=alpha"


@pytest.mark.parametrize("sort", ORDERS)
def test_the_way_back_shows_the_same_pages(run: Run, sort: str) -> None:
    filters = Filters(sort=sort)
    forth = pages(run, filters)
    last = selectors.page(run, filters, before=None, after=None)
    while last.next is not None:
        last = selectors.page(run, filters, after=last.next)
    middle = selectors.page(run, filters, before=last.previous)
    first = selectors.page(run, filters, before=middle.previous)
    assert [[line.judgement.position for line in page.lines] for page in (first, middle)] == forth[:2]
    assert first.previous is None


def test_a_page_does_not_shift_while_judgements_before_it_change(run: Run) -> None:
    first = selectors.page(run, Filters(sort="score"))
    expected = [
        line.judgement.pk for line in selectors.page(run, Filters(sort="score"), after=first.next).lines
    ]
    run.judgements.filter(pk=first.lines[0].judgement.pk).update(
        state="error", reason="cut", value=None, score=None
    )
    assert [
        line.judgement.pk for line in selectors.page(run, Filters(sort="score"), after=first.next).lines
    ] == expected


@pytest.mark.parametrize("nonsense", ["", "x", "1~", "~1", "1~x", "1", "1~" + "9" * 5000])
def test_nonsense_in_place_of_a_place_is_the_first_page(
    run: Run, bob: User, client_of: ClientOf, nonsense: str
) -> None:
    page = client_of(bob).get(address(run), {"after": nonsense}, follow=True).context["page"]
    assert page.lines[0].judgement.position == 0


@pytest.mark.parametrize(
    "odd",
    [
        {"after": "1e999~" + "9" * 30},
        {"before": "nan~-5"},
        {"value": "nan"},
    ],
)
@pytest.mark.parametrize("sort", ORDERS)
def test_odd_addresses_break_nothing(
    run: Run, bob: User, client_of: ClientOf, odd: dict[str, str], sort: str
) -> None:
    assert client_of(bob).get(address(run), odd | {"sort": sort}).status_code == 200


def test_a_place_survives_the_address() -> None:
    assert place_from(str(ListPosition(0.1 + 0.2, 7))) == ListPosition(0.1 + 0.2, 7)


def test_the_tabs_count_each_state_and_the_list_has_as_many(run: Run, bob: User, client_of: ClientOf) -> None:
    context = client_of(bob).get(address(run), {"candidate": "alpha"}).context
    assert [(one["name"], one["count"]) for one in context["states"]] == [
        ("All", "65"),
        ("scored", "56"),
        ("error", "9"),
    ]
    assert sum(len(page) for page in pages(run, Filters(candidate="alpha", state="error"))) == 9


@pytest.mark.parametrize(
    "asked",
    [{"q": "says 12"}, {"state": "error"}, {"least": "3", "most": "4"}, {"line": "12"}, {"attempts": "all"}],
)
def test_what_the_address_asks_for_is_shown(
    run: Run, bob: User, client_of: ClientOf, asked: dict[str, str]
) -> None:
    context = client_of(bob).get(address(run), asked).context
    filters = context["filters"]
    counts = counts_by_state(run, filters)
    assert counts is not None
    assert context["count"] == counts.get(filters.state) or sum(counts.values())
    assert context["count"] == sum(len(page) for page in pages(run, filters)) > 0


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"least": "x"}, "The filter “least” can&#x27;t be “x”: Enter a number."),
        ({"line": "-1"}, "The filter “line” can&#x27;t be “-1”"),
        ({"state": "odd"}, "The filter “state” can&#x27;t be “odd”"),
        ({"sort": "name"}, "The filter “sort” can&#x27;t be “name”"),
        ({"attempts": "1"}, "The filter “attempts” can&#x27;t be “1”"),
        ({"candidate": "\0"}, "The filter “candidate” can&#x27;t be"),
        ({"candidate": "gone"}, "can&#x27;t be “gone”: This run has no candidate with that name."),
        ({"metric": "gone"}, "can&#x27;t be “gone”: This run has no metric with that name."),
        ({"field": "gone", "field_is": "1"}, "can&#x27;t be “gone”: The rows have no field with that name."),
        ({"reason": "\0"}, "The filter “reason” can&#x27;t be"),
        ({"rule": "first"}, "can&#x27;t be “first”: Enter the number of a line."),
        ({"rule_score": "1"}, "The filter “rule_score” can&#x27;t be “1”: Choose the rule line too."),
        ({"candidat": "alpha"}, "There is no filter “candidat”."),
    ],
)
@pytest.mark.parametrize("page", ["judgements", "items"])
def test_what_makes_no_sense_is_refused_by_name(
    run: Run, bob: User, client_of: ClientOf, page: str, wrong: dict[str, str], sentence: str
) -> None:
    answer = client_of(bob).get(address(run, page), wrong)
    assert answer.status_code == 400
    assert sentence in text(answer)


@pytest.mark.parametrize("asked", [{"reason": "timeout"}, {"tag": "odd"}, {"assigned": "carol"}])
def test_what_reviewers_or_retries_may_bring_about_is_no_mistake(
    run: Run, bob: User, client_of: ClientOf, asked: dict[str, str]
) -> None:
    assert client_of(bob).get(address(run), asked).status_code == 200


def test_a_refused_filter_leads_back_to_the_run_without_what_is_wrong(
    run: Run, bob: User, client_of: ClientOf
) -> None:
    wrong = {"candidate": "alpha", "candidat": "x", "least": "y", "field_is": "1", "field_has": "2"}
    page = text(client_of(bob).get(address(run), wrong))
    assert f'href="{address(run)}?candidate=alpha">Show judgements without it</a>' in page


def test_candidates_have_their_marks_in_the_list(run: Run, bob: User, client_of: ClientOf) -> None:
    page = client_of(bob).get(address(run), {"line": "1"}).content.decode()
    assert [page.count(f'class="mark series-{number}"') for number in (1, 2)] == [1, 1]


def test_a_download_of_an_unknown_filter_is_refused(run: Run, bob: User, client_of: ClientOf) -> None:
    assert client_of(bob).get(address(run, "export", "csv"), {"stat": "error"}).status_code == 400


def test_the_list_says_in_a_sentence_why_there_is_no_score(run: Run, bob: User, client_of: ClientOf) -> None:
    page = client_of(bob).get(address(run), {"state": "error"})
    reason = page.context["page"].lines[0].judgement.reason
    assert escape(reason_sentence(reason)) in page.text


def test_nothing_found_is_said_with_the_way_back(run: Run, bob: User, client_of: ClientOf) -> None:
    assert "No matching judgements" in text(client_of(bob).get(address(run), {"q": "nowhere"}))


def test_the_filter_stays_in_the_links_to_judgements_and_downloads(
    run: Run, bob: User, client_of: ClientOf
) -> None:
    page = client_of(bob).get(address(run), {"state": "error"})
    first = page.context["page"].lines[0].judgement
    assert f'href="{address(run, "judgement", first.pk)}?state=error"' in page.content.decode()
    assert f'href="{address(run, "export", "csv")}?state=error"' in page.content.decode()


def test_a_download_holds_what_the_filter_shows(run: Run, bob: User, client_of: ClientOf) -> None:
    answer = client_of(bob).get(address(run, "export", "jsonl"), {"state": "error", "candidate": "beta"})
    assert len(b"".join(answer.streaming_content).splitlines()) == 10  # type: ignore[attr-defined]
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")


def test_there_is_no_download_of_another_kind(run: Run, bob: User, client_of: ClientOf) -> None:
    assert client_of(bob).get(address(run, "export", "exe")).status_code == 404


def test_a_runs_name_cannot_break_the_downloads_header(run: Run, bob: User, client_of: ClientOf) -> None:
    Run.objects.filter(pk=run.pk).update(name='数学 "x"\r\nSet-Cookie: a=b')
    answer = client_of(bob).get(address(run, "export", "csv"))
    assert "Set-Cookie" not in answer.headers
    assert "\n" not in answer.headers["Content-Disposition"]


def test_models_texts_are_shown_as_texts(project: Project, bob: User, client_of: ClientOf) -> None:
    run = a_judged_run(project, models=("<script>alert(1)</script>",))
    page = client_of(bob).get(address(run)).content
    assert b"<script>alert" not in page
    assert b"&lt;script&gt;alert" in page


def test_the_number_of_queries_does_not_grow_with_the_page(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    counts = []
    for rows in (1, 60):
        run, browser = a_judged_run(project, varied, rows=rows), client_of(bob)
        with CaptureQueriesContext(connection) as queries:
            browser.get(address(run), {"candidate": "alpha"})
        counts.append(len(queries))
    assert max(counts) <= 24
    assert counts[1] - counts[0] <= 1  # reasons are queried only if something failed


@pytest.mark.parametrize(
    "filters",
    [
        Filters(),
        Filters(sort="score"),
        Filters(sort="-seconds"),
        Filters(state="error"),
        Filters(candidate="alpha"),
        Filters(candidate="alpha", least=3.0),
        Filters(reason="rate_limited"),
        Filters(flag="planted_verdict"),
        Filters(q="says"),
        Filters(line=3),
        Filters(attempts="older"),
        Filters(attempts="all"),
    ],
)
def test_the_database_reads_this_run_only(run: Run, filters: Filters) -> None:
    with CaptureQueriesContext(connection) as queries:
        nearest(run, filters, ListPosition(2.0, 2), 51)
        nearest(run, filters, ListPosition(2.0, 2), 51, back=True)
        counts_by_state(run, filters)
    for step in plan_of(queries):
        assert not step.startswith("SCAN") or step.startswith(
            ("SCAN entries", "SCAN subquery", "SCAN json_each")
        )  # of the matches
        assert (
            "judging_judgement" not in step
            or "run_id=?" in step
            or "(response_id=?)" in step
            or "(rowid=?)" in step
        )


def test_few_among_many_are_found_by_the_index_of_the_figures(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        nearest(run, Filters(state="error", candidate="alpha"), None, 51)
    assert any(
        "judgement_figures (run_id=? AND run_metric_id=? AND candidate_id=? AND state_in_force=?)" in step
        for step in plan_of(queries)
    )


def test_reasons_are_counted_without_a_look_at_what_was_scored(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert reasons(run)
    (counting,) = (query["sql"] for query in queries.captured_queries if "COUNT" in query["sql"])
    assert counting.count('"state" IN') == 1
    assert "'scored'" not in counting


def test_the_plain_list_is_read_in_the_order_of_positions(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        nearest(run, Filters(), ListPosition(99.0, 99), 51)
    assert not any("TEMP B-TREE" in step for step in plan_of(queries))


def plan_of(queries: CaptureQueriesContext) -> list[str]:
    """SQLite's plan of each query; SCAN means it reads a whole table."""
    if connection.vendor != "sqlite":
        pytest.skip("SQLite's plans are not to be had on this database")
    steps = []
    with connection.cursor() as cursor:
        for query in queries.captured_queries:
            cursor.execute("EXPLAIN QUERY PLAN " + query["sql"].replace("%", "%%"))
            steps += [row[3] for row in cursor.fetchall()]
    return steps


def test_rows_that_were_left_out_are_named_where_judgements_are_downloaded(
    run: Run, bob: User, client_of: ClientOf
) -> None:
    Run.objects.filter(pk=run.pk).update(bad_rows_left_out=3)
    assert "3 rows with errors were left out." in text(client_of(bob).get(address(run)))
