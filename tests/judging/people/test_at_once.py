"""Concurrent raters, tabs and retries on separate connections: nothing is lost or stored twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from evalsite.accounts.models import Project, Role, User
from judging.people import assignments, ratings
from judging.people.models import Assignment, Item, Rating
from judging.records.models import Judgement, Run
from tests.conftest import member
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(work: Callable[[Any], Any], over: list[Any]) -> list[Any]:
    """Call `work` for each element of `over` in separate threads, all started together."""
    begun = Barrier(len(over))

    def one(what: Any) -> Any:
        try:
            begun.wait()
            return work(what)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(over)) as pool:
        return list(pool.map(one, over))


@pytest.fixture
def eight(project: Project) -> list[User]:
    return [member(f"rater{number}", project, Role.RATER) for number in range(8)]


def test_eight_raters_at_once_give_exactly_what_is_needed(project: Project, eight: list[User]) -> None:
    evaluation = make_evaluation(project, eight, rows=12, overlap=2)

    def rate_all(user: User) -> None:
        while held := assignments.claim(evaluation=evaluation, user=user):
            give(held[0], "A>B")

    at_once(rate_all, eight)
    assert set(Item.objects.values_list("free", "rated")) == {(0, 2)}
    assert Judgement.objects.filter(run=evaluation.run_id, current=True).count() == 24
    assert Rating.objects.filter(extra=True).count() == 0


def test_nobody_gets_an_item_twice_however_often_the_page_is_loaded(
    project: Project, eight: list[User]
) -> None:
    evaluation = make_evaluation(project, eight[:2], rows=6, overlap=1)
    at_once(lambda user: assignments.claim(evaluation=evaluation, user=user, count=2), eight[:2] * 4)
    assert Assignment.objects.count() == 4
    assert max(Counter(Assignment.objects.values_list("item", "rater")).values()) == 1


def test_a_verdict_sent_six_times_at_once_is_one(project: Project, eight: list[User]) -> None:
    evaluation = make_evaluation(project, eight[:1], rows=1)
    held, key = assignments.claim(evaluation=evaluation, user=eight[0])[0], uuid4()
    made = at_once(lambda _: give(held, "A>B", key=key).pk, list(range(6)))
    assert (len(set(made)), Rating.objects.count(), Judgement.objects.count()) == (1, 1, 1)


def test_two_tabs_at_once_make_one_verdict(project: Project, eight: list[User]) -> None:
    evaluation = make_evaluation(project, eight[:1], rows=1)
    held = assignments.claim(evaluation=evaluation, user=eight[0])[0]
    made = at_once(lambda value: give(held, value).repeated, ["A>B", "both_bad"])
    assert sorted(made) == [False, True]
    assert Item.objects.get().rated == 1


def test_a_lease_that_ends_while_its_verdict_comes_loses_and_doubles_nothing(
    project: Project, eight: list[User]
) -> None:
    evaluation = make_evaluation(project, eight[:2], rows=1, overlap=1)
    late = assignments.claim(evaluation=evaluation, user=eight[0])[0]
    Assignment.objects.update(lease_until=timezone.now() - timedelta(minutes=1))

    def work(user: User) -> Rating | None:
        if user == eight[0]:
            return give(late, "A>B")
        taken_over = assignments.claim(evaluation=evaluation, user=user)
        return give(taken_over[0], "B>A") if taken_over else None

    given = [rating for rating in at_once(work, eight[:2]) if rating]
    item, run = Item.objects.get(), Run.objects.get(pk=evaluation.run_id)
    assert (item.free, item.rated, run.scored, run.total) == (0, 1, len(given), len(given))
    assert sorted(rating.extra for rating in given) == [False, True][: len(given)]


def test_undo_in_two_tabs_at_once_takes_back_two(project: Project, eight: list[User]) -> None:
    evaluation = make_evaluation(project, eight[:1], rows=3)
    for held in assignments.claim(evaluation=evaluation, user=eight[0], count=3):
        give(held, "A>B")
    at_once(lambda _: ratings.undo(evaluation=evaluation, user=eight[0], key=uuid4()), [1, 2])
    assert Judgement.objects.filter(run=evaluation.run_id, current=True).count() == 1
