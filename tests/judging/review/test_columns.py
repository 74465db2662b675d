"""Columns of the list: each member chooses them, and their headers sort."""

from __future__ import annotations

import pytest
from django.http import HttpResponse

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run, said
from tests.judging.review.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project)


def shown(page: HttpResponse) -> list[str]:
    return [column.name for column in page.context["columns"] if column.shown]


def test_at_first_the_usual_columns_are_shown(run: Run, bob: User, client_of: ClientOf) -> None:
    usual = ["position", "candidate", "score", "state", "question", "answer", "seconds"]
    assert shown(client_of(bob).get(address(run))) == usual


def test_a_member_sees_the_chosen_columns_and_nobody_else_does(
    run: Run, alice: User, bob: User, client_of: ClientOf
) -> None:
    chosen = {"columns": ["score", "spread"]}
    page = client_of(bob).post(address(run, "choose_columns") + "?sort=-score", chosen, follow=True)
    assert page.redirect_chain == [(address(run) + "?sort=-score", 302)]
    assert shown(page) == ["position", "score", "spread"]
    assert "alpha says" not in text(page)
    assert len(shown(client_of(alice).get(address(run)))) == 7


def test_a_column_that_only_other_runs_have_stays_chosen(run: Run, bob: User, client_of: ClientOf) -> None:
    client_of(bob).post(address(run, "choose_columns"), {"columns": ["score"]})
    assert {"metric", "source"} <= set(bob.list_columns.names)


@pytest.mark.parametrize("chosen", [{}, {"columns": ["password"]}])
def test_without_a_column_the_usual_ones_are_back(
    run: Run, bob: User, client_of: ClientOf, chosen: dict[str, list[str]]
) -> None:
    client_of(bob).post(address(run, "choose_columns"), {"columns": ["score"]})
    client_of(bob).post(address(run, "choose_columns"), chosen)
    assert len(shown(client_of(bob).get(address(run)))) == 7


def test_the_column_that_the_list_is_sorted_by_is_shown(run: Run, bob: User, client_of: ClientOf) -> None:
    assert "changed" in shown(client_of(bob).get(address(run), {"sort": "-changed"}))


def test_a_head_sorts_rising_then_falling(run: Run, bob: User, client_of: ClientOf) -> None:
    for sort, now, then in (
        ("", "", "?sort=score"),
        ("score", "ascending", "?sort=-score"),
        ("-score", "descending", "?sort=score"),
    ):
        columns = client_of(bob).get(address(run), {"sort": sort} if sort else {}).context["columns"]
        score = next(column for column in columns if column.name == "score")
        assert (score.now, score.query) == (now, then)


@pytest.mark.parametrize(
    ("query", "missing"),
    [({"candidate": "beta"}, "candidate"), ({"state": "scored"}, "state")],
)
def test_a_column_that_only_repeats_a_filter_is_hidden_and_stays_chosen(
    run: Run, bob: User, client_of: ClientOf, query: dict[str, str], missing: str
) -> None:
    page = client_of(bob).get(address(run), query)
    assert missing not in shown(page)
    assert missing in [column.name for column in page.context["columns"] if column.chosen]


def test_the_states_column_stays_where_it_says_more_than_the_filter(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda _: said(None))
    page = client_of(bob).get(address(run), {"state": "unparsed"})
    assert "state" in shown(page)
    assert 'class="state"' not in text(page).partition("<tbody>")[2].partition("</tbody>")[0]
