"""Searching a filtered list from a place on: the order, the index that is read, and where a search stops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import Response
from evalsite.accounts.models import Project, Role, User
from judging.core.results import JudgementResult
from judging.filters.conditions import matching
from judging.filters.counts import counts_by_state, counts_of_choices, reasons
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ListPosition
from judging.filters.page_limits import Limits
from judging.filters.search import Match, nearest
from judging.records.models import Judgement, Run
from judging.records.overrides import override_add
from judging.review import selectors
from judging.review.grid import grid_page
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from tests.conftest import ClientOf, member
from tests.judging.judged import a_judged_run, failed, said
from tests.judging.review.pages import LIKE_A_LARGE_RUN, ORDERS, SORTED_BY, address, pages, text
from tests.make import a_project

pytestmark = pytest.mark.django_db


def varied(place: int) -> JudgementResult:
    if place % 7 == 3:
        return failed()
    flags = ("truncated",) if place % 9 == 1 else ()
    return said(place * 5 % 11 / 2, seconds=place * 3 % 5, flags=flags)


@pytest.fixture(scope="module")
def project(module_db: None) -> Project:
    return a_project()


@pytest.fixture(scope="module")
def bob(project: Project) -> User:
    return member("bob", project, Role.REVIEWER)


@pytest.fixture(scope="module")
def run_pk(project: Project, bob: User) -> int:
    """130 judgements, some overridden."""
    run = a_judged_run(project, varied, rows=65)
    overridden = run.judgements.filter(position__in=(3, 10, 20, 50)).order_by("position")
    for place, one in enumerate(overridden):
        override_add(judgement=one, value=place * 1.25, reason="seen", by=bob)
    last = overridden[3]
    run_rejudge(
        run=run, selection=Selection(Filters(), last.pk), user=None
    )  # overridden and queued for re-judging
    return run.pk


@pytest.fixture
def run(run_pk: int) -> Run:
    return Run.objects.get(pk=run_pk)


FILTERS: list[dict[str, object]] = [
    {"state": "scored"},
    {"state": "error"},
    {"state": "not_run"},
    {"candidate": "beta"},
    {"least": 1.0, "most": 3.0},
    {"least": 2.5, "most": 2.5},
    {"below": 2.0, "candidate": "alpha"},
    {"value": "2.5"},
    {"value": "nothing"},
    {"reason": "timeout"},
    {"flag": "truncated"},
    {"line": 4},
    {"q": "says 1"},
    {"overridden": "yes"},
    {"overridden": "yes", "state": "scored", "most": 2.0},
    {"overridden": "no", "least": 1.0},
    {"attempts": "all"},
    {"attempts": "older"},
]
IN_ORDERS = [(chosen, sort) for place, chosen in enumerate(FILTERS) for sort in ORDERS[place % 3 :: 3]]
"""Each filter in a third of the orders, each order with a third of the filters."""


@pytest.mark.parametrize(("chosen", "sort"), IN_ORDERS)
def test_every_order_lists_the_filtered_judgements(run: Run, sort: str, chosen: dict[str, object]) -> None:
    filters = Filters(sort=sort, **chosen)  # type: ignore[arg-type]
    matches = {row.position: row for row in matching(run, filters)}
    for limits in (Limits(), LIKE_A_LARGE_RUN):
        shown = [position for page in pages(run, filters, limits=limits) for position in page]
        ranks = [_rank(matches[position], sort) for position in shown]
        assert sorted(shown) == sorted(matches), limits
        assert ranks == sorted(ranks), limits


def _rank(one: Judgement, sort: str) -> tuple[bool, float, int]:
    value, sign = SORTED_BY[sort.removeprefix("-")](one), -1 if sort.startswith("-") else 1
    return value is None, sign * (value or 0), sign * one.position


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.parametrize("limits", [Limits(), Limits(few=-1)])
def test_a_walk_back_meets_the_same_judgements(run: Run, sort: str, limits: Limits) -> None:
    filters = Filters(sort=sort, flag="truncated")
    forth = list(_walk(run, filters, limits))
    assert [*reversed(list(_walk(run, filters, limits, back=True, match=forth[-1])))] == forth[:-1]


def _walk(
    run: Run, filters: Filters, limits: Limits, *, back: bool = False, match: Match | None = None
) -> Iterator[Match]:
    while True:
        look = nearest(run, filters, match.place if match else None, 1, back=back, limits=limits)
        if not look.matches:
            return
        (match,) = look.matches
        yield match


NOWHERE = "no answer says this"


def test_a_search_stops_and_continues_where_it_stopped(run: Run) -> None:
    first = selectors.page(run, Filters(q=NOWHERE), limits=LIKE_A_LARGE_RUN)
    assert (first.lines, first.stopped, first.looked_at) == ([], ListPosition(19, 19), 20)
    assert first.next == ListPosition(19, 19)
    assert len(pages(run, Filters(q=NOWHERE), limits=LIKE_A_LARGE_RUN)) == 7


@pytest.mark.parametrize("sort", ORDERS)
def test_a_search_in_any_order_looks_at_each_judgement_once(run: Run, sort: str) -> None:
    steps = pages(run, Filters(q=NOWHERE, sort=sort), limits=LIKE_A_LARGE_RUN)
    assert len(steps) == 7  # 130 judgements, 20 in each step


def test_a_few_matches_of_an_index_are_found_at_once(run: Run) -> None:
    limits = Limits(few=20, entries=1, judgements=1, scattered=1)
    rare = Filters(flag="truncated", q="alpha", sort="-score")
    assert nearest(run, rare, None, 51, limits=limits).stopped is None


@pytest.mark.parametrize("chosen", [{"state": "error"}, {"reason": "rate_limited"}, {"value": "good"}])
def test_what_has_no_score_is_found_at_the_end_of_the_scores(run: Run, chosen: dict[str, str]) -> None:
    filters = Filters(sort="-score", **chosen)  # type: ignore[arg-type]
    assert nearest(run, filters, None, 3, limits=Limits(few=-1, entries=20, scattered=20)).stopped is None


@pytest.mark.urls("tests.judging.review.large_run_urls")
@pytest.mark.parametrize("page", ["judgements", "items"])
def test_a_page_without_results_so_far_offers_to_continue(
    run: Run, bob: User, client_of: ClientOf, page: str
) -> None:
    shown = text(client_of(bob).get(address(run, page), {"q": NOWHERE}))
    assert "Judgements searched so far: 20 of 130." in shown
    assert "after=19~19" in shown or "after=19%7E19" in shown


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_in_other_orders_a_page_tells_how_many_it_searched(run: Run, bob: User, client_of: ClientOf) -> None:
    page = text(client_of(bob).get(address(run), {"q": NOWHERE, "sort": "-score"}))
    assert "Judgements searched for this page: 20 of 130." in page


@pytest.mark.urls("tests.judging.review.large_run_urls")
@pytest.mark.parametrize(
    ("end", "label"), [("after", "Continue searching →"), ("before", "← Continue searching")]
)
def test_a_page_with_results_offers_to_continue_the_search(
    run: Run, bob: User, client_of: ClientOf, end: str, label: str
) -> None:
    response = run.judgements.get(position=70).response
    Response.objects.filter(pk=response.pk).update(raw='{"content": "the needle"}')
    beside = {"after": ListPosition(60, 60), "before": ListPosition(80, 80)}[end]
    page = text(client_of(bob).get(address(run), {"q": "needle", end: str(beside)}))
    assert "the needle" in page
    assert label in page
    assert page.count("Continue searching") == 1


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_from_the_start_the_search_continues_forward(run: Run, bob: User, client_of: ClientOf) -> None:
    context = client_of(bob).get(address(run), {"q": NOWHERE, "before": "5~5"}).context
    assert (context["search_on"], context["previous_url"]) == ("next", "")
    assert context["searched"] == "Judgements searched so far: 20 of 130."


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_counts_beyond_the_limit_are_shown_as_at_least(run: Run, bob: User, client_of: ClientOf) -> None:
    states = client_of(bob).get(address(run), {"candidate": "alpha"}).context["states"]
    assert [(one["name"], one["count"]) for one in states] == [
        ("All", "9+"),
        ("scored", "9+"),
        ("error", "8"),
    ]


def test_filters_without_an_index_are_not_counted_in_a_large_run(run: Run) -> None:
    assert counts_by_state(run, Filters(q="says")) == {"scored": 113, "error": 17}
    assert counts_by_state(run, Filters(q="says"), Limits(counted=20)) is None


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        (Filters(), "judgement_position"),
        (Filters(sort="-position"), "judgement_position"),
        (Filters(candidate="alpha"), "judgement_position"),
        (Filters(q="says"), "judgement_position"),
        (Filters(reply="because"), "judgement_position"),
        (Filters(question="question"), "judgement_position"),
        (Filters(flag="truncated", metric="quality"), "judgement_position"),
        (Filters(attempts="older"), "judgement_position"),
        (Filters(state="scored"), "judgement_state"),
        (Filters(sort="score"), "judgement_score"),
        (Filters(sort="-score", state="scored"), "judgement_score"),
        (Filters(reply="because", sort="-score"), "judgement_score"),
        (Filters(sort="-seconds", candidate="alpha"), "judgement_seconds"),
        (Filters(q="says", sort="seconds"), "judgement_seconds"),
        (Filters(sort="changed"), "judgement_changed"),
        (Filters(sort="-changed", overridden="no"), "judgement_changed"),
    ],
)
@pytest.mark.parametrize("place", [None, ListPosition(2.5, 40)])
def test_the_index_of_the_order_gives_the_next_judgements(
    run: Run, filters: Filters, index: str, place: ListPosition | None
) -> None:
    limits = Limits(few=-1)
    with CaptureQueriesContext(connection) as queries:
        nearest(run, filters, place, 1, limits=limits)
        nearest(run, filters, place, 1, back=True, limits=limits)
    walks = [plan_of(one["sql"]) for one in queries.captured_queries if "sort_key" in one["sql"]]
    assert walks
    assert all(_uses(index, plan) for plan in walks)
    assert not any("TEMP B-TREE" in plan or "Sort" in plan for plan in walks)


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        (Filters(state="error"), "judgement_figures"),
        (Filters(least=2.5, most=2.5, sort="-changed"), "judgement_figures"),
        (Filters(reason="rate_limited"), "judgement_reasons"),
        (Filters(flag="truncated"), "judgement_flagged"),
        (Filters(overridden="yes", q="says"), "judgement_overridden"),
        (Filters(spread=0.0), "judgement_spread"),
    ],
)
def test_an_index_finds_few_matches(run: Run, filters: Filters, index: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        nearest(run, filters, None, 1)
    plans = [plan_of(one["sql"]) for one in queries.captured_queries]
    assert any(_uses(index, plan) for plan in plans), plans


@pytest.mark.parametrize(
    ("sort", "after"), [*((sort, None) for sort in ORDERS), ("-score", ListPosition(1.5, 40))]
)
def test_the_grid_finds_the_judgements_of_its_rows_by_their_answers(
    run: Run, sort: str, after: ListPosition | None
) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert grid_page(run, Filters(sort=sort), after).rows
    plans = [plan_of(one["sql"]) for one in queries.captured_queries]
    (of_rows,) = (plan for plan, one in zip(plans, queries, strict=True) if "verdictsource" in one["sql"])
    assert _uses("judgement_once", of_rows) or "sqlite_autoindex_judging_judgement" in of_rows
    assert "judgement_figures" not in of_rows


def test_choices_are_counted_in_the_index_of_the_figures(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        counts_of_choices(run, Filters(candidate="alpha"), {"metric": ["quality"]}, Limits(counted=9))
    assert _uses("judgement_figures", plan_of(queries.captured_queries[-1]["sql"]))


def test_what_judges_disagree_on_is_counted_by_state(run: Run) -> None:
    run.judgements.filter(position__lt=18).update(spread=4.0)
    assert counts_by_state(run, Filters(spread=4.0)) == {"scored": 17, "error": 1}
    assert counts_by_state(run, Filters(spread=4.0), Limits(counted=20)) == {"scored": 17, "error": 1}
    assert counts_by_state(run, Filters(spread=4.0), Limits(counted=5)) is None


def test_reasons_are_counted_in_their_index_alone(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert reasons(run)
    assert "judgement_reasons" in plan_of(queries.captured_queries[-1]["sql"])


def _uses(index: str, plan: str) -> bool:
    """Whether a plan uses the index. PostgreSQL may use another one, since the table is small."""
    return index in plan or (connection.vendor == "postgresql" and "Seq Scan" not in plan)


def plan_of(sql: str) -> str:
    """The query plan. Disables plans that PostgreSQL would prefer only because the table is small."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%", "%%"), [])
            return "\n".join(row[3] for row in cursor.fetchall())
        cursor.execute(
            "ANALYZE judging_judgement"
        )  # without statistics PostgreSQL assigns the same cost to every index
        for way in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute("EXPLAIN " + sql.replace("%", "%%"), [])
        return "\n".join(row[0] for row in cursor.fetchall())
