"""Filters by reviewers' actions in lists, exports and bulk actions."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Project, User
from judging.filters.conditions import matching
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.people import assignments
from judging.records.models import Judgement, Run
from judging.teamwork.batches import change_many
from judging.teamwork.comments import comment_add
from judging.teamwork.marks import Change, Kind, change_one
from judging.teamwork.models import FLAG
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run, first_of, said
from tests.judging.people.make import give, make_evaluation
from tests.judging.review.pages import address, pages, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project, bob: User) -> Run:
    """Three rows. The first is tagged and flagged; its first answer is also assigned, excluded and commented on."""
    run = a_judged_run(project, lambda place: said(place % 10 + 1))
    for name in ("odd", FLAG):
        change_many(run=run, filters=Filters(line=1), change=Change(Kind.TAG, name), by=bob)
    change_one(judgement=first_of(run), change=Change(Kind.ASSIGN, user=bob), by=bob)
    change_one(judgement=first_of(run), change=Change(Kind.EXCLUDE, reason="x"), by=bob)
    comment_add(judgement=first_of(run), text="hm", by=bob)
    return run


@pytest.mark.parametrize(
    ("name", "value", "positions"),
    [
        ("tag", "odd", [0, 1]),
        ("tag", "never", []),
        ("flagged", "yes", [0, 1]),
        ("assigned", "bob", [0]),
        ("assigned", "nobody", []),
        ("excluded", "yes", [0]),
        ("commented", "yes", [0]),
    ],
)
def test_each_filter_finds_what_it_means(run: Run, name: str, value: str, positions: list[int]) -> None:
    assert [one for page in pages(run, Filters(further={name: value})) for one in page] == positions


def test_marks_of_another_run_of_the_same_answers_do_not_count(run: Run, project: Project) -> None:
    other = a_judged_run(project)
    assert not matching(other, Filters(further={"tag": "odd"})).exists()


def test_an_action_may_be_about_what_another_has_marked(run: Run, adam: User) -> None:
    tagged = Filters(further={"tag": "odd"})
    action = change_many(run=run, filters=tagged, change=Change(Kind.UNTAG, "odd"), by=adam)
    assert (action.removed, action.query) == (2, "?tag=odd")


def test_what_people_rated_is_found_too(project: Project, rita: User, bob: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    give(assignments.claim(evaluation=evaluation, user=rita, count=1)[0], "A>B")
    one = Judgement.objects.get(run=evaluation.run)
    change_one(judgement=one, change=Change(Kind.TAG, "odd"), by=bob)
    assert list(matching(evaluation.run, Filters(further={"tag": "odd"}))) == [one]


def test_the_menu_offers_what_there_is(run: Run, alice: User, client_of: ClientOf) -> None:
    page = text(client_of(alice).get(address(run, "filter_menu")))
    for field in ("tag", "flagged", "assigned", "excluded", "commented"):
        assert f'name="{field}"' in page


def test_a_run_without_review_has_no_such_fields(project: Project, alice: User, client_of: ClientOf) -> None:
    page = text(client_of(alice).get(address(a_judged_run(project), "filter_menu")))
    assert 'name="tag"' not in page


def test_the_queries_of_a_list_do_not_grow_with_the_marks(run: Run, bob: User, client_of: ClientOf) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            client.get(address(run), {"tag": "odd"})
        return len(asked)

    client = client_of(bob)
    client.get(address(run))
    few = queries()
    change_many(run=run, filters=ANYTHING, change=Change(Kind.TAG, "odd"), by=bob)
    assert queries() == few
