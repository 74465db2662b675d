"""Tags, assignments and exclusions: of one judgement or of all that match a filter, and how to undo them."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.filters.page_limits import LIMITS, Limits
from judging.records.models import Run
from judging.runs.rerun.rejudge import Selection, run_rejudge
from judging.teamwork import batches
from judging.teamwork.batches import change_many, undo
from judging.teamwork.marks import Change, Kind, MarkConflict, change_one, current_marks
from judging.teamwork.models import FLAG, Mark, Notice, ReviewAction
from tests.judging.judged import a_judged_run, first_of, judge, said
from tests.working import do_jobs

pytestmark = pytest.mark.django_db
ITEMS = 6


@pytest.fixture
def run(project: Project) -> Run:
    """Three rows, two answers each."""
    return a_judged_run(project, lambda place: said(place % 2 + 1))


def tags(run: Run) -> list[tuple[int, str]]:
    """Sorted (row, tag) pairs of the run."""
    found = Mark.objects.current().filter(run=run, kind="tag")
    return sorted(found.values_list("response__row__line", "name"))


def many(
    run: Run, kind: str, by: User, filters: Filters = ANYTHING, limits: Limits = LIMITS, **more: object
) -> ReviewAction:
    return change_many(run=run, filters=filters, change=Change(kind, **more), by=by, limits=limits)


def test_a_tag_is_put_on_once_and_belongs_to_the_answer_over_later_attempts(run: Run, bob: User) -> None:
    one = first_of(run)
    change_one(judgement=one, change=Change(Kind.TAG, "unclear"), by=bob)
    change_one(judgement=one, change=Change(Kind.TAG, "unclear"), by=bob)
    run_rejudge(run=run, selection=Selection(ANYTHING), user=None)
    judge(run, lambda _: said(9))
    newest = run.judgements.get(response=one.response_id, current=True)
    assert [(mark.name, mark.action.by) for mark in current_marks(newest)] == [("unclear", bob)]


def test_an_action_that_changes_nothing_is_not_listed(run: Run, bob: User) -> None:
    change_one(judgement=first_of(run), change=Change(Kind.UNTAG, "never there"), by=bob)
    assert not ReviewAction.objects.exists()


def test_a_filter_is_tagged_where_it_is_not_yet_and_undo_takes_off_only_what_the_action_put_on(
    run: Run, bob: User
) -> None:
    change_one(judgement=first_of(run), change=Change(Kind.TAG, "odd"), by=bob)
    action = many(run, Kind.TAG, bob, name="odd")
    assert (action.added, len(tags(run))) == (ITEMS - 1, ITEMS)
    assert undo(action=action, by=bob)
    assert tags(run) == [(1, "odd")]


def test_undo_of_untagging_puts_the_tags_back_that_were_there(run: Run, bob: User) -> None:
    many(run, Kind.TAG, bob, Filters(line=2), name="odd")
    action = many(run, Kind.UNTAG, bob, name="odd")
    assert (action.removed, tags(run)) == (2, [])
    change_one(judgement=run.judgements.filter(row__line=2)[0], change=Change(Kind.TAG, "odd"), by=bob)
    undo(action=action, by=bob)
    assert tags(run) == [(2, "odd"), (2, "odd")]


def test_an_action_is_undone_once(run: Run, bob: User) -> None:
    action = many(run, Kind.TAG, bob)
    assert [undo(action=action, by=bob), undo(action=action, by=bob)] == [True, False]


def test_assigning_to_another_replaces_and_undo_gives_back(run: Run, bob: User, adam: User) -> None:
    many(run, Kind.ASSIGN, adam, Filters(line=1), user=bob)
    action = many(run, Kind.ASSIGN, bob, user=adam)
    assert (action.added, action.removed) == (ITEMS, 2)
    undo(action=action, by=bob)
    assert [mark.user for mark in Mark.objects.current()] == [bob, bob]


def test_undo_leaves_alone_what_was_finished_since(run: Run, bob: User, adam: User) -> None:
    many(run, Kind.ASSIGN, adam, user=bob)
    action = many(run, Kind.ASSIGN, bob, user=adam)
    change_one(judgement=first_of(run), change=Change(Kind.FINISH), by=adam)
    undo(action=action, by=bob)
    assert Mark.objects.current().filter(user=bob).count() == ITEMS - 1
    assert not current_marks(first_of(run))


def test_one_notice_tells_of_all_that_was_assigned_and_none_tells_oneself(
    run: Run, bob: User, adam: User
) -> None:
    many(run, Kind.ASSIGN, adam, user=adam)
    action = many(run, Kind.ASSIGN, adam, user=bob)
    assert [(one.user, one.action) for one in Notice.objects.all()] == [(bob, action)]
    undo(action=action, by=adam)
    assert not Notice.objects.exists()


def test_two_reviewers_who_assign_at_once_do_not_overwrite_each_other(
    run: Run, bob: User, adam: User
) -> None:
    one = first_of(run)
    change_one(judgement=one, change=Change(Kind.ASSIGN, user=bob), by=bob, seen=0)
    with pytest.raises(MarkConflict):
        change_one(judgement=one, change=Change(Kind.ASSIGN, user=adam), by=adam, seen=0)
    (mark,) = current_marks(one)
    change_one(judgement=one, change=Change(Kind.ASSIGN, user=adam), by=adam, seen=mark.pk)
    assert [mark.user for mark in current_marks(one)] == [adam]


LARGE = Limits(counted=3)
"""Limits with which a run of six judgements counts as large."""


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 2)


def test_many_are_worked_off_in_batches_by_a_worker_and_undone_by_one(
    few_at_once: None, run: Run, bob: User
) -> None:
    change_one(judgement=first_of(run), change=Change(Kind.EXCLUDE, reason="seen"), by=bob)
    action = many(run, Kind.EXCLUDE, bob, limits=LARGE, reason="bad data")
    assert (action.state, Mark.objects.count()) == ("waiting", 1)
    do_jobs("apply_action")
    action.refresh_from_db()
    assert (action.state, action.added, Mark.objects.current().count()) == ("done", ITEMS - 1, ITEMS)
    undo(action=action, by=bob, limits=LARGE)
    do_jobs("apply_action")
    action.refresh_from_db()
    assert (action.state, Mark.objects.current().count()) == ("undone", 1)


def test_texts_are_looked_for_by_a_worker_alone(few_at_once: None, run: Run, bob: User) -> None:
    filters = Filters(q="alpha says 2")
    assert batches.first_pairs(run, filters, LARGE) is None
    action = many(run, Kind.TAG, bob, filters, limits=LARGE, name="odd")
    assert (action.state, tags(run)) == ("waiting", [])
    do_jobs("apply_action")
    action.refresh_from_db()
    assert (action.state, action.percent, len(tags(run))) == ("done", 100, 1)


def test_an_action_that_fails_stops_no_other_and_can_be_undone(
    few_at_once: None, run: Run, bob: User
) -> None:
    failing, _other = (many(run, Kind.TAG, bob, limits=LARGE, name=name) for name in ("odd", "other"))
    ReviewAction.objects.filter(pk=failing.pk).update(query="?weather=fine")
    do_jobs("apply_action")
    states = ReviewAction.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["failed", "done"]
    assert {name for _row, name in tags(run)} == {"other"}


def test_a_large_reassignment_is_undone_in_batches(
    few_at_once: None, run: Run, bob: User, adam: User
) -> None:
    for assignee in (bob, adam):
        action = many(run, Kind.ASSIGN, bob, limits=LARGE, user=assignee)
        do_jobs("apply_action")
    action.refresh_from_db()
    undo(action=action, by=bob, limits=LARGE)
    do_jobs("apply_action")
    assert [mark.user for mark in Mark.objects.current()] == [bob] * ITEMS


def test_the_filter_of_an_action_is_kept_with_it(few_at_once: None, run: Run, bob: User) -> None:
    action = many(run, Kind.TAG, bob, Filters(most=1.5), limits=LARGE, name=FLAG)
    do_jobs("apply_action")
    action.refresh_from_db()
    assert (action.query, action.added) == ("?most=1.5", 3)


def test_every_action_is_in_the_log(run: Run, bob: User) -> None:
    undo(action=many(run, Kind.TAG, bob, name="odd"), by=bob)
    entries = AuditEntry.objects.filter(action__startswith="review.").order_by("pk")
    assert [(one.action, one.actor_name, one.detail["judgements"]) for one in entries] == [
        ("review.tag", "bob", ITEMS),
        ("review.undone", "bob", ITEMS),
    ]
