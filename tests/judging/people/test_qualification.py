"""Training and qualification stand before the real queue and count nowhere."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError

from evalsite.accounts.models import Project, User
from judging.people import ratings
from judging.people.gold import gold_add, gold_of_item, gold_remove
from judging.people.gold_rule import gold_items_right
from judging.people.models import Assignment, Evaluation, EvaluationRater, Rating
from judging.people.progress import gold_hits
from judging.people.qualification import queue
from judging.people.qualification.models import QualificationTry
from judging.people.qualification.services import (
    qualification_change,
    rater_let_in,
    rater_try_again,
)
from judging.records.models import Judgement
from tests.conftest import ClientOf
from tests.judging.people.make import QUALITY, give, lines_of, make_evaluation

pytestmark = pytest.mark.django_db
RIGHT, WRONG = 4, 1


@pytest.fixture
def evaluation(project: Project, rita: User, alice: User) -> Evaluation:
    """Twelve answers, of which six are gold (4 is right): two for training; the qualification takes two, both right."""
    evaluation = make_evaluation(project, [rita], rows=6, side_by_side=False, criteria=[QUALITY])
    items = list(evaluation.items.order_by("number")[:6])
    gold = [gold_of_item(evaluation, item, {"quality": RIGHT}, f"Because {item.number}.") for item in items]
    gold_add(evaluation=evaluation, gold=gold)
    training = [item.pk for item in items[:2]]
    qualification_change(evaluation=evaluation, training=training, items=2, mark=1.0, by=alice)
    return Evaluation.objects.get(pk=evaluation.pk)


def part_of(evaluation: Evaluation, user: User) -> EvaluationRater:
    return EvaluationRater.objects.select_related("evaluation__run").get(evaluation=evaluation, user=user)


def claim(evaluation: Evaluation, user: User) -> list[Assignment]:
    return queue.claim(rater=part_of(evaluation, user), count=50)[0]


def stage(evaluation: Evaluation, user: User) -> str:
    entry = queue.entry_for(part_of(evaluation, user))
    return entry.stage if entry else "through"


def rate(evaluation: Evaluation, user: User, value: int) -> list[Assignment]:
    """Rate all that the desk holds in this stage."""
    held = claim(evaluation, user)
    for assignment in held:
        give(assignment, value)
    return held


def rater_of(evaluation: Evaluation) -> EvaluationRater:
    return evaluation.raters.select_related("user").get()


def test_training_then_qualification_then_the_real_queue(evaluation: Evaluation, rita: User) -> None:
    assert stage(evaluation, rita) == "training"
    training = rate(evaluation, rita, WRONG)
    assert [held.item.number for held in training] == [1, 2]
    assert stage(evaluation, rita) == "qualification"
    qualification = rate(evaluation, rita, RIGHT)
    assert len(qualification) == 2
    assert not {held.item_id for held in qualification} & {held.item_id for held in training}
    assert stage(evaluation, rita) == "through"
    assert not any(held.item.gold for held in claim(evaluation, rita))


def test_they_count_nowhere(evaluation: Evaluation, rita: User) -> None:
    rate(evaluation, rita, WRONG)
    rate(evaluation, rita, RIGHT)
    assert (gold_hits(evaluation), gold_items_right(evaluation)) == ({}, {})
    assert not Judgement.objects.filter(run=evaluation.run).exists()
    Assignment.objects.update(seconds=9)
    rater = part_of(evaluation, rita)
    progress = queue.desk_progress(rater, queue.entry_for(rater))
    assert (progress.done, progress.left, progress.seconds_each) == (0, 6, None)
    assert [line["stage"] for line in lines_of(evaluation)] == ["training"] * 2 + ["qualification"] * 2


def test_who_fails_gets_nothing_until_let_in(evaluation: Evaluation, rita: User, alice: User) -> None:
    rate(evaluation, rita, RIGHT)
    rate(evaluation, rita, WRONG)
    assert (stage(evaluation, rita), claim(evaluation, rita)) == ("failed", [])
    rater_let_in(rater=rater_of(evaluation), by=alice)
    assert stage(evaluation, rita) == "through"
    with pytest.raises(ValidationError, match="not waiting"):
        rater_let_in(rater=rater_of(evaluation), by=alice)


def test_a_second_try_takes_other_gold_and_too_few_are_said(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    rate(evaluation, rita, RIGHT)
    first = rate(evaluation, rita, WRONG)
    rater_try_again(rater=rater_of(evaluation), by=alice)
    second = rate(evaluation, rita, WRONG)
    assert len(second) == 2
    assert not {held.item_id for held in first} & {held.item_id for held in second}
    with pytest.raises(ValidationError, match="needs 2 gold items that R1 has not had; there are 0"):
        rater_try_again(rater=rater_of(evaluation), by=alice)


def test_a_skip_is_not_right_and_ends_the_try_too(evaluation: Evaluation, rita: User) -> None:
    rate(evaluation, rita, RIGHT)
    first, last = claim(evaluation, rita)
    give(first, RIGHT)
    ratings.skip(assignment=last, reason="unclear", key=uuid4())
    tried = QualificationTry.objects.get()
    assert (tried.right, tried.items, tried.passed) == (1, 2, False)


def test_nothing_is_changed_after_the_last_item(evaluation: Evaluation, rita: User) -> None:
    rate(evaluation, rita, RIGHT)
    rate(evaluation, rita, WRONG)
    with pytest.raises(ratings.DeskRefused, match="qualification_over"):
        ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    with pytest.raises(ratings.DeskRefused, match="qualification_over"):
        ratings.change(assignment=Rating.objects.latest("pk").assignment, values={0: 4}, key=uuid4())


def test_removed_gold_is_replaced_in_a_try(evaluation: Evaluation, rita: User, alice: User) -> None:
    rate(evaluation, rita, RIGHT)
    first, _last = claim(evaluation, rita)
    gold_remove(item=first.item, by=alice)
    assert len(rate(evaluation, rita, RIGHT)) == 2
    assert QualificationTry.objects.get().passed


def test_with_too_little_gold_the_rater_waits_and_the_organiser_is_told(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    qualification_change(evaluation=evaluation, training=[], items=9, mark=0.8, by=alice)
    assert stage(evaluation, rita) == "waiting"
    desk = client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").text
    assert 'data-state="not_ready"' in desk
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/").text
    assert "fewer gold items than the qualification needs" in page


def test_who_has_rated_already_needs_neither(
    project: Project, rita: User, alice: User, evaluation: Evaluation
) -> None:
    qualification_change(evaluation=evaluation, training=[], items=0, mark=0.8, by=alice)
    give(claim(evaluation, rita)[0], 2)
    qualification_change(evaluation=evaluation, training=[], items=2, mark=0.8, by=alice)
    assert stage(evaluation, rita) == "through"


def test_training_answers_with_what_was_expected_and_why(
    evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client, json_please = client_of(rita), {"Accept": "application/json"}
    base = f"/p/physics/desk/{evaluation.run_id}/"
    assert "Training: this rating doesn" in client.get(base).text
    held = claim(evaluation, rita)[0]
    told = client.post(f"{base}{held.token}/verdict/", {"v0": "0"}, headers=json_please).json()
    assert "Because 1." in told["feedback"]
    assert "<strong>4</strong>" in told["feedback"]


def test_a_qualification_tells_nothing_about_its_items(
    evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    rate(evaluation, rita, RIGHT)
    client, json_please = client_of(rita), {"Accept": "application/json"}
    base = f"/p/physics/desk/{evaluation.run_id}/"
    held = claim(evaluation, rita)
    told = [
        client.post(f"{base}{one.token}/verdict/", {"v0": "0"}, headers=json_please).json() for one in held
    ]
    assert not any("feedback" in answer for answer in told)
    assert (told[-1]["state"], told[-1]["open"]) == ("not_passed", False)
    page = client.get(base).text
    assert "Thank you for taking part" in page
    assert "Because" not in page


def test_the_page_sets_it_up_says_whom_it_lets_through_and_decides(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/"
    gold = evaluation.items.exclude(gold="").order_by("number")[0]
    client.post(f"{address}qualification/", {"items": 5, "mark": 80, "training": [gold.pk]})
    page = client.get(f"{address}qualification/").text
    assert "right 9 times in 10: 92; 7 times in 10: 53" in page
    client.post(f"{address}qualification/", {"items": 2, "mark": 100, "training": [gold.pk]})
    rate(evaluation, rita, RIGHT)
    rate(evaluation, rita, WRONG)
    assert "R1 has not passed the qualification: 0 of 2 right" in client.get(address).text
    client.post(f"{address}raters/{rater_of(evaluation).pk}/try-again/")
    assert stage(evaluation, rita) == "qualification"
    rate(evaluation, rita, WRONG)
    client.post(f"{address}raters/{rater_of(evaluation).pk}/let-in/")
    assert stage(evaluation, rita) == "through"


@pytest.mark.parametrize(("items", "mark"), [(101, 80), (-1, 80), (2, 0), (2, 101)])
def test_impossible_settings_are_refused(
    items: int, mark: int, evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/qualification/"
    assert client_of(alice).post(address, {"items": items, "mark": mark}).status_code == 422
