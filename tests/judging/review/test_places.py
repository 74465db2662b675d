"""Queries for the next judgements: all return the same order, and each uses an index in that order."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import Response
from evalsite.accounts.models import Project, Role, User
from judging.core.results import JudgementResult
from judging.review import places, selectors
from judging.review.grid import grid_page
from judging.review.orders import ListPosition
from judging.review.places import nearest
from judging.runs import counts
from judging.runs.counts import counts_by_state, counts_of_choices, reasons
from judging.runs.filters import Filters, matching
from judging.runs.models import Judgement, Run
from judging.runs.overrides import override_add
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from tests.conftest import ClientOf, member
from tests.judging.judged import a_judged_run, failed, said
from tests.judging.review.pages import ORDERS, SORTED_BY, address, pages, text
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
def run(run_pk: int, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Queried like a large run: small windows, and no result counts as few."""
    monkeypatch.setattr(places, "FEW", -1)
    monkeypatch.setattr(places, "WINDOW", 8)
    return Run.objects.get(pk=run_pk)


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.parametrize(
    "chosen",
    [
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
    ],
)
def test_every_query_finds_the_filtered_judgements_in_order(
    run: Run, sort: str, chosen: dict[str, object]
) -> None:
    filters = Filters(sort=sort, **chosen)  # type: ignore[arg-type]
    shown = [position for page in pages(run, filters) for position in page]
    meant = {one.position: one for one in matching(run, filters).select_related("candidate", "run_metric")}
    ranks = [_rank(meant[position], sort) for position in shown]
    assert sorted(shown) == sorted(meant)
    assert ranks == sorted(ranks)


def _rank(one: Judgement, sort: str) -> tuple[bool, float, int]:
    value, sign = SORTED_BY[sort.removeprefix("-")](one), -1 if sort.startswith("-") else 1
    return value is None, sign * (value or 0), sign * one.position


@pytest.mark.parametrize("sort", ORDERS)
def test_the_previous_pages_lead_back(run: Run, sort: str) -> None:
    filters = Filters(sort=sort, state="scored")
    forth = list(_walk(run, filters, back=False))
    assert [*reversed(list(_walk(run, filters, back=True, beside=forth[-1])))] == forth[:-1]


def _walk(
    run: Run, filters: Filters, *, back: bool, beside: tuple[int, float, int] | None = None
) -> Iterator[tuple[int, float, int]]:
    while True:
        place = ListPosition(beside[1], beside[2]) if beside else None
        look = nearest(run, filters, place, 1, back=back)
        if not look.found:
            return
        (beside,) = look.found
        yield beside


def test_a_search_stops_and_continues_where_it_stopped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_LOOKED_AT", 20)
    first = selectors.page(run, Filters(q="no answer says this"))
    assert (first.lines, first.stopped) == ([], ListPosition(19, 19))
    assert first.next == ListPosition(19, 19)
    looks = len(pages(run, Filters(q="no answer says this")))
    assert looks == 7


@pytest.mark.parametrize("sort", ["candidate", "-candidate", "-state"])
def test_a_search_by_candidate_continues_where_it_stopped(
    run: Run, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_LOOKED_AT", 20)
    Response.objects.filter(pk=run.judgements.get(position=71).response_id).update(
        raw='{"content": "needle"}'
    )
    found = [page for page in pages(run, Filters(q="needle", sort=sort)) if page]
    assert found == [[71]]


def test_a_page_without_results_so_far_offers_to_continue(
    run: Run, bob: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_LOOKED_AT", 20)
    page = text(client_of(bob).get(address(run), {"q": "no answer says this"}))
    assert "No matching judgements so far" in page
    assert "after=19~19" in page or "after=19%7E19" in page
    assert "The first 20 judgements were searched." in page


@pytest.mark.parametrize(
    ("end", "label"), [("after", "Continue searching →"), ("before", "← Continue searching")]
)
def test_a_page_with_results_offers_to_continue_the_search(
    run: Run, bob: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch, end: str, label: str
) -> None:
    monkeypatch.setattr(places, "MOST_LOOKED_AT", 20)
    response = run.judgements.get(position=70).response
    Response.objects.filter(pk=response.pk).update(raw='{"content": "the needle"}')
    beside = {"after": ListPosition(60, 60), "before": ListPosition(80, 80)}[end]
    page = text(client_of(bob).get(address(run), {"q": "needle", end: str(beside)}))
    assert "the needle" in page
    assert label in page
    assert page.count("Continue searching") == 1


def test_from_the_start_the_search_continues_forward(
    run: Run, bob: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_LOOKED_AT", 20)
    context = client_of(bob).get(address(run), {"q": "no answer says this", "before": "5~5"}).context
    assert (context["search_on"], context["looked_through"], context["previous_url"]) == ("next", 20, "")


def test_counts_beyond_the_limit_are_shown_as_at_least(
    run: Run, bob: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MOST_COUNTED", 20)
    states = client_of(bob).get(address(run), {"candidate": "alpha"}).context["states"]
    assert [(one["name"], one["count"]) for one in states] == [
        ("All", "20+"),
        ("scored", "20+"),
        ("error", "8"),
    ]
    assert counts_by_state(run, Filters()) == {"scored": 113, "error": 17}


def test_filters_without_an_index_are_not_counted_in_a_large_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counts_by_state(run, Filters(q="says")) is not None
    monkeypatch.setattr(counts, "MOST_COUNTED", 20)
    assert counts_by_state(run, Filters(q="says")) is None


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        (Filters(sort="score"), "judgement_figures"),
        (Filters(sort="-score", candidate="alpha"), "judgement_figures"),
        (Filters(state="error"), "judgement_figures"),
        (Filters(least=2.5, most=2.5), "judgement_figures"),
        (Filters(sort="seconds"), "judgement_seconds"),
        (Filters(sort="-seconds", state="scored"), "judgement_seconds"),
        (Filters(flag="truncated"), "judgement_flagged"),
        (Filters(flag="truncated", metric="quality"), "judgement_flagged"),
        (Filters(overridden="yes"), "judgement_overridden"),
        (Filters(attempts="older"), "judgement_older"),
        (Filters(q="says"), "judgement_place"),
        (Filters(reply="because"), "judgement_place"),
        (Filters(question="question"), "judgement_place"),
        (Filters(reply="because", sort="-score"), "judgement_figures"),
        (Filters(q="says", sort="seconds"), "judgement_seconds"),
        (Filters(spread=0.0, sort="-spread"), "judgement_spread"),
        (Filters(state="scored"), "judgement_place"),
        (Filters(sort="-position"), "judgement_place"),
        (Filters(sort="candidate"), "judgement_place"),
        (Filters(sort="-metric"), "judgement_place"),
        (Filters(sort="state"), "judgement_place"),
        (Filters(sort="-state"), "judgement_figures"),
    ],
)
@pytest.mark.parametrize("beside", [None, ListPosition(2.5, 40)])
def test_an_index_gives_the_next_judgements_in_order(
    run: Run, filters: Filters, index: str, beside: ListPosition | None
) -> None:
    with CaptureQueriesContext(connection) as queries:
        nearest(run, filters, beside, 1)
        nearest(run, filters, beside, 1, back=True)
    plans = [plan_of(one["sql"]) for one in queries.captured_queries]
    looks = [plan for plan in plans if "judgement_" in plan]
    assert any(index in plan for plan in looks)
    assert not any("TEMP B-TREE" in plan or "Sort" in plan for plan in looks)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("beside", [None, ListPosition(40, 40)])
@pytest.mark.parametrize("filters", [Filters(), Filters(state="scored"), Filters(q="says")])
def test_a_walk_by_position_has_one_lower_bound(
    run: Run, filters: Filters, beside: ListPosition | None, back: bool
) -> None:
    """With two lower bounds SQLite uses only the first and reads up to a million judgements needlessly (0.2 s)."""
    with CaptureQueriesContext(connection) as queries:
        nearest(run, filters, beside, 5, back=back)
    walks = [one["sql"] for one in queries.captured_queries if " ORDER BY CASE" in one["sql"]]
    assert walks
    for walk in walks:
        assert len(re.findall(r"END (?:>=?|BETWEEN) ", walk)) == 1


@pytest.mark.parametrize("after", [None, ListPosition(0, 40)])
@pytest.mark.parametrize("sort", ORDERS)
def test_the_grid_finds_the_judgements_of_its_rows_by_their_answers(
    run: Run, sort: str, after: ListPosition | None
) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert grid_page(run, Filters(sort=sort), after).rows
    plans = [plan_of(one["sql"]) for one in queries.captured_queries]
    (of_rows,) = (plan for plan, one in zip(plans, queries, strict=True) if "verdictsource" in one["sql"])
    assert "judgement_once" in of_rows or "sqlite_autoindex_judging_judgement" in of_rows
    assert "judgement_figures" not in of_rows


@pytest.mark.parametrize(
    "asked",
    [Filters(reply="because"), Filters(reply="because", sort="-position"), Filters(q="says", attempts="all")],
)
def test_a_text_is_searched_where_the_judgements_are_read(run: Run, asked: Filters) -> None:
    """The search must be part of the ordered query: reading the judgements again by id takes twice as long."""
    with CaptureQueriesContext(connection) as queries:
        nearest(run, asked, None, 5)
    searches = [one["sql"] for one in queries.captured_queries if "LIKE" in one["sql"]]
    assert searches
    assert all("ORDER BY" in search for search in searches)


@pytest.mark.parametrize(
    ("filters", "index"),
    [(Filters(candidate="alpha"), "judgement_figures"), (Filters(spread=1.0), "judgement_spread")],
)
def test_choices_are_counted_in_an_index(run: Run, filters: Filters, index: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        counts_of_choices(run, filters, {"metric": ["quality"]})
    plan = plan_of(queries.captured_queries[-1]["sql"])
    assert index in plan or (
        connection.vendor == "postgresql" and "Seq Scan" not in plan
    )  # any index: there are only a few rows


def test_what_judges_disagree_on_is_counted_by_state(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.judgements.filter(position__lt=18).update(spread=4.0)
    assert counts_by_state(run, Filters(spread=4.0)) == {"scored": 17, "error": 1}
    monkeypatch.setattr(counts, "MOST_COUNTED", 5)
    assert counts_by_state(run, Filters(spread=4.0)) == {"scored": 6}


def test_reasons_are_counted_in_their_index_alone(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert reasons(run)
    assert "judgement_reasons" in plan_of(queries.captured_queries[-1]["sql"])


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
