"""Paging through the list or the grid, forwards and backwards, terminates and shows every item exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import pytest
from django.db.models import F

from datasets.models import Response
from evalsite.accounts.models import Role
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ListPosition, place_from
from judging.filters.page_limits import Limits
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.review import selectors
from judging.review.grid import grid_page
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from tests.conftest import member
from tests.judging.judged import a_judged_run, failed, said
from tests.judging.review.pages import ORDERS
from tests.make import a_project

pytestmark = pytest.mark.django_db

Page = TypeVar("Page")

LIMITS = [Limits(few=-1, entries=look, judgements=look, scattered=look, window=4) for look in (8, 20)]
CHOSEN = {
    "anything": {},
    "state": {"state": "error"},
    "waiting": {"state": "not_run"},
    "candidate": {"candidate": "beta"},
    "score": {"least": 1.0, "most": 3.0},
    "one score": {"value": "2.5"},
    "flag": {"flag": "truncated"},
    "overridden": {"overridden": "yes"},
    "not overridden": {"overridden": "no"},
    "not overridden, of a candidate": {"overridden": "no", "candidate": "alpha"},
    "all attempts": {"attempts": "all"},
    "older attempts": {"attempts": "older"},
    "answer": {"q": "says 1"},
    "answer, rare": {"q": "needle"},
    "answer, nowhere": {"q": "no answer says this"},
    "answer, of a state": {"q": "says", "state": "error"},
    "answer, of a candidate": {"q": "needle", "candidate": "alpha"},
    "answer, all attempts": {"q": "needle", "attempts": "all"},
    "reply": {"reply": "because"},
    "question": {"question": "question 1"},
    "spread": {"spread": 2.0},
}


@pytest.fixture(scope="module")
def run_pk(module_db: None) -> int:
    """28 judgements, some queued for re-judging."""
    project = a_project()
    bob = member("bob", project, Role.REVIEWER)
    run = a_judged_run(
        project,
        lambda place: failed() if place % 7 == 3 else said(
            place * 5 % 11 / 2, seconds=place * 3 % 5, flags=("truncated",) if place % 9 == 1 else ()
        ),
        rows=14,
    )  # fmt: skip
    for place in (3, 10, 20, 26):
        override_add(judgement=run.judgements.get(position=place), value=place / 8, reason="so", by=bob)
    run_rejudge(run=run, selection=Selection(Filters(least=4, most=4.5)), user=None)
    run.judgements.filter(position__in=range(0, 28, 4)).update(spread=F("position") % 5)
    needles = run.judgements.filter(position__in=(5, 6, 21, 27)).values("response")
    Response.objects.filter(pk__in=needles).update(raw='{"content": "a needle"}')
    return run.pk


@pytest.fixture
def run(run_pk: int) -> Run:
    return Run.objects.get(pk=run_pk)


@pytest.mark.parametrize("sort", ORDERS)
def test_a_list_shows_everything_once_and_leads_back(run: Run, sort: str) -> None:
    for name, filters, limits in _half(sort):
        listed = partial(selectors.page, run, filters, size=7, limits=limits)
        meant = _meant(run, filters)
        forth = list(_walk(lambda place, listed=listed: listed(after=place), "next"))
        shown = [line.judgement.pk for page in forth for line in page.lines]
        assert sorted(shown) == meant, name
        end = forth[-1]
        back = list(
            _walk(lambda place, listed=listed, end=end: listed(before=place) if place else end, "previous")
        )
        assert {line.judgement.pk for page in back for line in page.lines} == set(meant), name
        if len(forth) > 1 and shown:
            _assert_in_order(back, shown, name)


def _assert_in_order(back: list[selectors.Page], shown: list[int], name: str) -> None:
    """Assert that every page consists of consecutive items of `shown`."""
    for page in back:
        ids = [line.judgement.pk for line in page.lines]
        at = shown.index(ids[0]) if ids else 0
        assert shown[at : at + len(ids)] == ids, name


@pytest.mark.parametrize("sort", ORDERS)
def test_the_grid_shows_every_match(run: Run, sort: str) -> None:
    for name, filters, limits in _half(sort):
        grid = partial(grid_page, run, filters, rows=3, limits=limits)
        pages = list(_walk(grid, "next"))
        shown = [
            pill.judgement.pk
            for page in pages for row in page.rows for cell in row.cells for answer in cell for pill in answer.pills
            if pill.meant
        ]  # fmt: skip
        now = matching(run, filters).filter(current=True)  # the grid shows the current attempts only
        assert sorted(shown) == sorted(now.values_list("pk", flat=True)), name
        lines = {row.line for page in pages for row in page.rows}
        assert lines == set(matching(run, filters).values_list("row__line", flat=True)), name


def _half(sort: str) -> Iterator[tuple[str, Filters, Limits]]:
    """Yield the name, the filters and limits for every second of CHOSEN: each filter and each order meet both limits.
    test_search.py checks every filter in every order."""
    column, descending = divmod(ORDERS.index(sort), 2)
    first = (column + descending) % 2
    for place, (name, chosen) in enumerate(list(CHOSEN.items())[first::2], column):
        yield name, Filters(sort=sort, **chosen), LIMITS[place % 2]  # type: ignore[arg-type]


def _meant(run: Run, filters: Filters) -> list[int]:
    return sorted(matching(run, filters).values_list("pk", flat=True))


def _walk(look: Callable[[ListPosition | None], Page], way: str) -> Iterator[Page]:
    """Yield page after page; fail if a page links to one already visited."""
    place: ListPosition | None = None
    been: set[ListPosition | None] = set()
    while True:
        assert place not in been, f"{place} leads back to itself"
        been.add(place)
        page = look(place)
        yield page
        further: ListPosition | None = getattr(page, way)
        if further is None:
            return
        place = place_from(str(further))
