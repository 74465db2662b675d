"""Paging through the list or the grid, forwards and backwards, terminates and shows every item exactly once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from django.db.models import F

from datasets.models import Response
from evalsite.accounts.models import Role
from judging.review import grid, places, selectors
from judging.review.grid import grid_page
from judging.review.orders import ListPosition, place_from
from judging.runs.filters import SORTS, Filters, matching
from judging.runs.models import Run
from judging.runs.overrides import override_add
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from tests.conftest import member
from tests.judging.judged import a_judged_run, failed, said
from tests.make import a_project

pytestmark = pytest.mark.django_db

Page = TypeVar("Page")

ORDERS = [sign + sort for sort in SORTS for sign in ("", "-")]
LOOKS = (8, 20)  # values of places.MOST_LOOKED_AT
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
    """40 judgements, some queued for re-judging."""
    project = a_project()
    bob = member("bob", project, Role.REVIEWER)
    run = a_judged_run(
        project,
        lambda place: failed() if place % 7 == 3 else said(
            place * 5 % 11 / 2, seconds=place * 3 % 5, flags=("truncated",) if place % 9 == 1 else ()
        ),
        rows=20,
    )  # fmt: skip
    for place in (3, 10, 20, 38):
        override_add(judgement=run.judgements.get(position=place), value=place / 8, reason="so", by=bob)
    run_rejudge(run=run, selection=Selection(Filters(least=4, most=4.5)), user=None)
    run.judgements.filter(position__in=range(0, 40, 4)).update(spread=F("position") % 5)
    needles = run.judgements.filter(position__in=(5, 6, 21, 39)).values("response")
    Response.objects.filter(pk__in=needles).update(raw='{"content": "a needle"}')
    return run.pk


@pytest.fixture
def run(run_pk: int, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Queried like a large run: small windows, and no result counts as few."""
    monkeypatch.setattr(places, "FEW", -1)
    monkeypatch.setattr(places, "WINDOW", 4)
    monkeypatch.setattr(selectors, "PER_PAGE", 7)
    monkeypatch.setattr(grid, "ROWS", 3)
    return Run.objects.get(pk=run_pk)


@pytest.mark.parametrize("sort", ORDERS)
def test_a_list_shows_everything_once_and_leads_back(
    run: Run, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, filters, look in _half(sort):
        monkeypatch.setattr(places, "MOST_LOOKED_AT", look)
        meant = _meant(run, filters)
        forth = list(_walk(lambda place, filters=filters: selectors.page(run, filters, after=place), "next"))
        shown = [line.judgement.pk for page in forth for line in page.lines]
        assert sorted(shown) == meant, name
        end = forth[-1]
        back = list(
            _walk(lambda place, filters=filters, end=end: _before(run, filters, place, end), "previous")
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


def _before(run: Run, filters: Filters, place: ListPosition | None, end: selectors.Page) -> selectors.Page:
    return end if place is None else selectors.page(run, filters, before=place)


@pytest.mark.parametrize("sort", ORDERS)
def test_the_grid_shows_every_judgement_that_is_meant(
    run: Run, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_LOOKED_AT", LOOKS[0])
    for name, filters, _look in _half(sort):
        pages = list(_walk(lambda place, filters=filters: grid_page(run, filters, place), "next"))
        shown = [
            pill.judgement.pk
            for page in pages for row in page.rows for cell in row.cells for answer in cell for pill in answer.pills
            if pill.meant
        ]  # fmt: skip
        now = matching(run, filters).filter(current=True)  # the grid shows the current attempts only
        assert sorted(shown) == sorted(now.values_list("pk", flat=True)), name
        lines = {row.line for page in pages for row in page.rows}
        assert lines == set(matching(run, filters).values_list("row__line", flat=True)), name


def _half(sort: str) -> Iterator[tuple[str, Filters, int]]:
    """Yield the name, the filters and a value of MOST_LOOKED_AT for every second of CHOSEN: each filter and each order
    meet both values. test_places.py checks every filter in every order."""
    column, descending = divmod(ORDERS.index(sort), 2)
    first = (column + descending) % 2
    for place, (name, chosen) in enumerate(list(CHOSEN.items())[first::2], column):
        yield name, _filters(chosen, sort), LOOKS[place % 2]


def _filters(chosen: dict[str, object], sort: str) -> Filters:
    found = Filters(sort=sort, **chosen)  # type: ignore[arg-type]
    if found.sorted_by == "spread" and found.spread is None:
        found = dataclasses.replace(found, spread=0.0)  # as the form does
    return found


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
