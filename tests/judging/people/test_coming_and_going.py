"""Raters join, leave, lose their leases and come back; seat counters stay correct."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from evalsite.accounts.models import Project, Role, User
from judging.people import assignments, ratings, services
from judging.people.models import Assignment, AssignmentState, Evaluation, Item
from judging.people.ratings import DeskRefused
from judging.people.set_aside import rater_count_again, rater_set_aside
from judging.records.models import Judgement
from tests.conftest import member
from tests.judging.people.make import give, make_evaluation

ACTS = (
    "claim",
    "give",
    "late",
    "skip",
    "undo",
    "expire",
    "leave",
    "join",
    "close",
    "reopen",
    "shut",
    "aside",
    "count",
)
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(ACTS)),
    max_size=40,
)


def step(evaluation: Evaluation, user: User, what: str, by: User) -> None:
    """Perform one action of a rater or organiser, if possible."""
    own = Assignment.objects.filter(rater__evaluation=evaluation, rater__user=user).order_by("pk")
    rater = evaluation.raters.filter(user=user).first()
    if what == "claim":
        assignments.claim(evaluation=evaluation, user=user)
    elif what in ("give", "late", "skip"):
        state = AssignmentState.RELEASED if what == "late" else AssignmentState.LEASED
        held = own.filter(state=state).first()
        if held and what == "skip":
            ratings.skip(assignment=held, reason="unclear", key=uuid4())
        elif held:
            give(held, "A>B")
    elif what == "shut":
        items = list(own.values_list("pk", flat=True))
        assignments.give_back(
            evaluation=evaluation, user=user, items=items, until=timezone.now() + timedelta(days=1)
        )
    elif what == "undo":
        ratings.undo(evaluation=evaluation, user=user, key=uuid4())
    elif what == "expire":
        own.update(lease_until=timezone.now() - timedelta(minutes=1))
    elif what == "leave" and rater:
        assignments.rater_leave(rater=rater, by=by)
    elif what == "aside" and rater:
        rater_set_aside(rater=rater, reason="too quick", by=by)
    elif what == "count" and rater:
        rater_count_again(rater=rater, by=by)
    elif what == "join":
        assignments.raters_add(evaluation=evaluation, users=[user], by=by)
    elif what in ("close", "reopen"):
        (services.evaluation_close if what == "close" else services.evaluation_reopen)(
            evaluation=evaluation, by=by
        )


def differences(evaluation: Evaluation) -> list[tuple[object, ...]]:
    """Wrong counters as (name, actual, expected)."""
    found: list[tuple[object, ...]] = []
    for item in Item.objects.filter(evaluation=evaluation, needed__gt=0):
        there = Assignment.objects.filter(item=item)
        seated = there.filter(state__in=("leased", "rated"), extra=False).count()
        found.append((f"seats of item {item.number}", item.free + seated, item.needed))
        found.append(
            (f"ratings of item {item.number}", item.rated, there.filter(state="rated", extra=False).count())
        )
    given_ = Assignment.objects.counted().filter(evaluation=evaluation, item__needed__gt=0)
    current = Judgement.objects.filter(run=evaluation.run_id, current=True)
    evaluation.run.refresh_from_db()
    extra = given_.filter(extra=True).count()
    found.append(("judgements", current.count(), given_.count()))
    found.append(("scored", evaluation.run.scored, given_.count()))
    found.append(("total", evaluation.run.total, evaluation.items_count * evaluation.overlap + extra))
    return [one for one in found if one[1] != one[2]]


class ComingAndGoing(TestCase):
    """Property test over arbitrary sequences of actions by raters and organisers."""

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(STEPS)
    def test_seats_verdicts_and_counters_always_agree(self, steps: list[tuple[int, str]]) -> None:
        project = Project.objects.create(name="P", slug=f"p{uuid4().hex[:8]}")
        users = [member(f"u{number}{uuid4().hex[:6]}", project, Role.RATER) for number in range(4)]
        evaluation = make_evaluation(project, users[:2], rows=3, overlap=2, repeat_share=0.4)
        for number, what in steps:
            with contextlib.suppress(DeskRefused):
                step(evaluation, users[number], what, users[0])
        assert differences(evaluation) == []


@pytest.mark.django_db
def test_a_verdict_given_after_the_session_was_lost_is_taken_when_signed_in_again(
    project: Project, rita: User
) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held, key = assignments.claim(evaluation=evaluation, user=rita)[0], uuid4()
    give(held, "A>B", key=key)  # stored, but the response was lost
    assert give(Assignment.objects.get(pk=held.pk), "A>B", key=key).repeated
    assert Judgement.objects.count() == 1
