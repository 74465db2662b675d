"""Rating: each verdict is stored once, changed and undone ones stay in the history, seats are counted."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion, ValuesRefused
from judging.people import assignments, ratings, selectors
from judging.people.models import Assignment, Evaluation, EvaluationRater, Item, Rating
from judging.people.ratings import DeskRefused
from judging.people.services import evaluation_close
from judging.records.models import Judgement
from tests.judging.people.make import give, make_evaluation, progress_of

pytestmark = pytest.mark.django_db


def one_for(evaluation: Evaluation, user: User) -> Assignment:
    return assignments.claim(evaluation=evaluation, user=user, count=1)[0]


def expire(evaluation: Evaluation) -> None:
    past = timezone.now() - timedelta(minutes=1)
    Assignment.objects.filter(evaluation=evaluation).update(lease_until=past)


def current(evaluation: Evaluation) -> list[str]:
    found = Judgement.objects.filter(run=evaluation.run_id, current=True).order_by("position")
    return [json.loads(one.value or "null") for one in found]


def counters(evaluation: Evaluation) -> tuple[int, int]:
    evaluation.run.refresh_from_db()
    return evaluation.run.scored, evaluation.run.total


def test_a_rater_gets_the_same_items_again_until_they_are_rated(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=5)
    first = assignments.claim(evaluation=evaluation, user=rita, count=2)
    assert assignments.claim(evaluation=evaluation, user=rita, count=2) == first
    assert len(first) == 2


def test_an_item_is_held_by_as_many_raters_as_it_needs(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    assert one_for(evaluation, rita)
    assert assignments.claim(evaluation=evaluation, user=ravi) == []


def test_an_item_goes_to_another_when_its_lease_has_ended(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    held = one_for(evaluation, rita)
    expire(evaluation)
    assert one_for(evaluation, ravi).item == held.item


def test_a_rater_who_comes_back_in_time_keeps_the_item_and_its_draft(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    ratings.draft_save(assignment=one_for(evaluation, rita), values={0: "A>B"}, comment="half way")
    expire(evaluation)
    assert json.loads(one_for(evaluation, rita).draft) == {"values": {"0": "A>B"}, "comment": "half way"}


def test_what_was_taken_over_and_given_back_comes_again_with_its_draft(
    project: Project, rita: User, ravi: User
) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    ratings.draft_save(assignment=one_for(evaluation, rita), values={}, comment="half way")
    expire(evaluation)
    ratings.skip(assignment=one_for(evaluation, ravi), reason="unclear", key=uuid4())
    assert "half way" in one_for(evaluation, rita).draft


def test_a_late_verdict_is_kept_where_the_seat_is_still_free(
    project: Project, rita: User, ravi: User
) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=2)
    late = one_for(evaluation, rita)
    expire(evaluation)
    one_for(evaluation, ravi)
    Item.objects.filter(pk=late.item_id).update(free=1)
    assert give(late, "A>B").extra is False
    assert Item.objects.get(pk=late.item_id).free == 0


def test_a_late_verdict_is_kept_as_an_extra_one_where_the_seat_is_taken(
    project: Project, rita: User, ravi: User
) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    late = one_for(evaluation, rita)
    expire(evaluation)
    give(one_for(evaluation, ravi), "A>B")
    assert give(late, "A=B").extra is True
    assert counters(evaluation) == (2, 2)


def test_a_verdict_is_turned_so_that_a_is_the_response(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    given = {held.shown_first: held for held in assignments.claim(evaluation=evaluation, user=rita)}
    give(given[1], "A>>B")
    give(given[2], "A>>B")
    assert sorted(current(evaluation)) == ["A>>B", "B>>A"]


def test_a_judgement_holds_rater_side_and_how_it_was_drawn(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=4, choice={"sample_size": 1})
    held = one_for(evaluation, rita)
    give(held, "A=B")
    judgement = Judgement.objects.get(run=evaluation.run_id)
    assert (judgement.rater, judgement.shown_first) == (rita, held.shown_first)
    assert judgement.drawn_with == 0.25


def test_the_same_key_sent_twice_makes_one_verdict(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held, key = one_for(evaluation, rita), uuid4()
    first, again = give(held, "A>B", key=key), give(held, "A>B", key=key)
    assert (first.pk, again.repeated, Rating.objects.count()) == (again.pk, True, 1)


def test_a_second_tab_does_not_overwrite_the_first(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    give(held, "A=B")
    assert give(held, "both_bad").repeated is True
    assert json.loads(Assignment.objects.get().draft)["values"] == {"0": "both_bad"}
    assert current(evaluation) == ["A=B"]


def test_the_same_verdict_from_a_second_tab_leaves_no_draft(project: Project, rita: User) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    for _tab in range(2):
        give(held, "A=B", comment="Alike.")
    assert Assignment.objects.get().draft == ""


def test_a_change_that_is_refused_is_kept_as_a_draft(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    give(held, "A=B")
    evaluation_close(evaluation=evaluation, by=alice)
    with pytest.raises(DeskRefused, match="closed"):
        ratings.change(assignment=held, values={0: "A>B"}, comment="On second thought", key=uuid4())
    stored = Assignment.objects.get()
    assert json.loads(stored.draft) == {"values": {"0": "A>B"}, "comment": "On second thought"}
    assert stored.rating is not None
    assert stored.rating.kind == "verdict"


def test_a_draft_of_a_change_is_dropped_once_the_verdict_was_changed(project: Project, rita: User) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    give(held, "A=B")
    ratings.draft_save(assignment=held, values={}, comment="late", attempt=0)
    assert Assignment.objects.get().draft == ""
    ratings.draft_save(assignment=held, values={}, comment="half way", attempt=1)
    assert "half way" in Assignment.objects.get().draft
    ratings.change(assignment=held, values={0: "A>B"}, key=uuid4(), attempt=1)
    assert Assignment.objects.get().draft == ""


def test_a_key_belongs_to_one_item(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    one, other = assignments.claim(evaluation=evaluation, user=rita)
    key = give(one, "A=B").key
    with pytest.raises(DeskRefused, match="key_used"):
        give(other, "A=B", key=key)


def test_a_verdict_for_other_sides_than_were_stored_is_refused(project: Project, rita: User) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    with pytest.raises(DeskRefused, match="sides_differ"):
        give(held, "A>B", shown=3 - (held.shown_first or 0))


def test_what_does_not_fit_is_refused_by_criterion(project: Project, rita: User) -> None:
    criteria = [Criterion(name="a", scale="five"), Criterion(name="b", scale="yes_no")]
    evaluation = make_evaluation(project, [rita], rows=1, side_by_side=False, criteria=criteria)
    with pytest.raises(ValuesRefused) as refused:
        give(one_for(evaluation, rita), 6)
    assert refused.value.codes == {0: "not_on_scale", 1: "missing"}
    assert Rating.objects.count() == 0


def test_each_criterion_makes_a_judgement_and_a_text_is_no_score(project: Project, rita: User) -> None:
    criteria = [Criterion(name="a", scale="ten"), Criterion(name="why", scale="text", required=False)]
    evaluation = make_evaluation(
        project, [rita], rows=1, models=["alpha"], side_by_side=False, criteria=criteria
    )
    give(one_for(evaluation, rita), 10, "thorough")
    found = Judgement.objects.filter(run=evaluation.run_id).order_by("position")
    assert [(one.value, one.state, one.detail) for one in found] == [
        ("10", "scored", ""),
        (None, "no_score", "thorough"),
    ]


def test_a_change_is_a_further_attempt_and_the_earlier_one_stays(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    give(held, "A=B")
    ratings.change(assignment=held, values={0: "both_bad"}, key=uuid4())
    assert current(evaluation) == ["both_bad"]
    assert Judgement.objects.filter(run=evaluation.run_id).count() == 2
    assert counters(evaluation) == (1, 1)


def test_a_change_of_what_was_changed_elsewhere_is_refused(project: Project, rita: User) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    give(held, "A=B")
    sent = {"assignment": held, "attempt": 1}
    ratings.change(values={0: "both_bad"}, key=uuid4(), **sent)
    with pytest.raises(DeskRefused, match="outdated"):
        ratings.change(values={0: "A>B"}, key=uuid4(), **sent)


def test_undo_takes_the_last_verdict_back_and_offers_it_as_a_draft(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    held = one_for(evaluation, rita)
    give(held, "A>>B", comment="hm")
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    assert (current(evaluation), counters(evaluation)) == ([], (0, 2))
    again = one_for(evaluation, rita)
    assert again == held
    assert json.loads(again.draft) == {"values": {"0": "A>>B"}, "comment": "hm"}


def test_undo_of_a_change_brings_the_earlier_verdict_back(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    give(held, "A=B")
    ratings.change(assignment=held, values={0: "both_bad"}, key=uuid4())
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    assert current(evaluation) == ["A=B"]


def test_undo_again_goes_one_further_back_and_ends(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    for held in assignments.claim(evaluation=evaluation, user=rita):
        give(held, "A=B")
    for _ in range(2):
        ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    with pytest.raises(DeskRefused, match="nothing_to_undo"):
        ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    assert counters(evaluation) == (0, 2)


def test_an_undo_sent_twice_undoes_once(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    for held in assignments.claim(evaluation=evaluation, user=rita):
        give(held, "A=B")
    key = uuid4()
    ratings.undo(evaluation=evaluation, user=rita, key=key)
    assert ratings.undo(evaluation=evaluation, user=rita, key=key).repeated
    assert counters(evaluation) == (1, 2)


def test_a_skipped_item_goes_to_another_and_not_to_its_rater_again(
    project: Project, rita: User, ravi: User
) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    held = one_for(evaluation, rita)
    ratings.skip(assignment=held, reason="no_knowledge", comment="physics", key=uuid4())
    assert assignments.claim(evaluation=evaluation, user=rita) == []
    assert one_for(evaluation, ravi).item == held.item


@pytest.mark.parametrize(
    ("reason", "comment"), [("", "why"), ("nonsense", "why"), ("other", ""), ("other", " ")]
)
def test_a_skip_without_a_reason_or_without_the_text_of_another_one_is_refused(
    project: Project, rita: User, reason: str, comment: str
) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    with pytest.raises(DeskRefused, match="skip_unexplained"):
        ratings.skip(assignment=held, reason=reason, comment=comment, key=uuid4())


@pytest.mark.parametrize("state", ["closed", "paused"])
def test_a_refused_skip_keeps_what_was_typed_and_chosen(project: Project, rita: User, state: str) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    Evaluation.objects.update(**{f"{state}_at": timezone.now()})
    with pytest.raises(DeskRefused, match=state):
        ratings.skip(assignment=held, reason="unclear", comment="which year?", values={0: "A>B"}, key=uuid4())
    draft = json.loads(Assignment.objects.get(pk=held.pk).draft)
    assert draft == {"values": {"0": "A>B"}, "comment": "which year?"}


def test_a_refused_skip_with_a_reason_alone_leaves_the_draft_as_it_was(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    ratings.draft_save(assignment=held, values={0: "A>B"}, comment="half way")
    evaluation_close(evaluation=evaluation, by=rita)
    with pytest.raises(DeskRefused, match="closed"):
        ratings.skip(assignment=held, reason="unclear", key=uuid4())
    draft = json.loads(Assignment.objects.get(pk=held.pk).draft)
    assert draft == {"values": {"0": "A>B"}, "comment": "half way"}


def test_a_skip_of_what_another_tab_rated_keeps_its_comment(project: Project, rita: User) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    give(held, "A>B")
    ratings.skip(assignment=held, reason="unclear", comment="which year?", key=uuid4())
    draft = json.loads(Assignment.objects.get(pk=held.pk).draft)
    assert draft == {"values": {"0": "A>B"}, "comment": "which year?"}


def test_a_skip_of_what_another_tab_skipped_keeps_its_comment(project: Project, rita: User) -> None:
    held = one_for(make_evaluation(project, [rita], rows=1), rita)
    ratings.skip(assignment=held, reason="unclear", key=uuid4())
    ratings.skip(assignment=held, reason="broken", comment="which year?", key=uuid4())
    assert json.loads(Assignment.objects.get(pk=held.pk).draft)["comment"] == "which year?"


def test_undo_of_a_skip_gives_the_item_back(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    ratings.skip(assignment=held, reason="unclear", key=uuid4())
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    assert one_for(evaluation, rita) == held
    assert Item.objects.get(pk=held.item_id).free == 0


def test_after_closing_nothing_is_given_but_what_was_typed_stays(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    Evaluation.objects.update(closed_at=timezone.now())
    with pytest.raises(DeskRefused, match="closed"):
        give(held, "A>B", comment="late")
    assert "late" in Assignment.objects.get(pk=held.pk).draft
    assert Rating.objects.count() == 0


def test_who_has_left_gives_nothing_more(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    held = one_for(evaluation, rita)
    EvaluationRater.objects.update(left_at=timezone.now())
    with pytest.raises(DeskRefused, match="left"):
        give(held, "A>B")
    assert assignments.claim(evaluation=evaluation, user=rita) == []


def test_progress_counts_ones_own(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=4, overlap=2)
    one, other = assignments.claim(evaluation=evaluation, user=rita)
    give(one, "A=B", seconds=10)
    ratings.skip(assignment=other, reason="unclear", key=uuid4())
    seen = progress_of(evaluation, rita)
    assert (seen.done, seen.left, seen.total) == (1, 2, 3)
    assert (seen.seconds_each, seen.paced, seen.seconds_left) == (10, 1, 20)


def test_ones_earlier_items_come_in_pages_newest_first(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=3)
    for held in assignments.claim(evaluation=evaluation, user=rita, count=3):
        give(held, "A=B")
    page, before = selectors.mine(evaluation=evaluation, user=rita, limit=2)
    rest, end = selectors.mine(evaluation=evaluation, user=rita, before=before, limit=2)
    assert [one.place for one in (*page, *rest)] == [3, 2, 1]
    assert end is None


def test_raters_of_one_item_see_its_sides_alternate(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1, overlap=2)
    assert {one_for(evaluation, user).shown_first for user in (rita, ravi)} == {1, 2}
