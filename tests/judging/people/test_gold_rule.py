"""A rater who misses the pass mark of gold: the organiser is told, or the rater is paused, and may be let in again."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.people import assignments
from judging.people.gold import gold_add, gold_of_item
from judging.people.gold_rule import gold_rule_change, rater_pause, rater_resume
from judging.people.models import Evaluation, EvaluationRater
from judging.people.ratings import DeskRefused
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    """Eight of 24 items are gold, on which 5 is right."""
    evaluation = make_evaluation(
        project, [rita], rows=24, side_by_side=False, models=["alpha"], gold_share=0.5
    )
    items = evaluation.items.order_by("number")[:8]
    gold_add(evaluation=evaluation, gold=[gold_of_item(evaluation, item, {"quality": 5}) for item in items])
    evaluation.refresh_from_db()
    return evaluation


def rate_while_possible(evaluation: Evaluation, user: User, value: int) -> int:
    """Rate one item after the other; returns how many gold items are rated then."""
    while held := assignments.claim(evaluation=evaluation, user=user, count=1):
        give(held[0], value)
    gold = evaluation.items.exclude(gold="")
    return gold.filter(assignments__state="rated", assignments__rater__user=user).count()


def rater_of(evaluation: Evaluation) -> EvaluationRater:
    return evaluation.raters.select_related("user").get()


def test_the_organiser_is_told_once(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    assert rate_while_possible(evaluation, rita, 1) > 5
    rater = rater_of(evaluation)
    assert (rater.gold_failed_at is not None, rater.paused_at) == (True, None)
    assert AuditEntry.objects.filter(action="gold.missed").count() == 1
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/"
    assert "R1 misses the pass mark of 80" in client.get(address).text
    client.post(f"{address}raters/{rater.pk}/resume/")
    assert "misses the pass mark" not in client.get(address).text


def test_a_rater_is_paused_at_the_fifth_gold_item_and_let_in_again(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/"
    client.post(f"{address}gold/rule/", {"mark": 70, "rule": "pause"})
    assert rate_while_possible(evaluation, rita, 1) == 5
    desk = client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").text
    assert 'data-state="paused"' in desk
    assert "The rater is paused." in client.get(address).text
    assert rater_resume(rater=rater_of(evaluation), by=alice)
    assert not rater_resume(rater=rater_of(evaluation), by=alice)
    assert rate_while_possible(evaluation, rita, 1) > 5  # counted anew: the remaining gold is too little


def test_who_is_right_often_enough_goes_on(evaluation: Evaluation, rita: User, alice: User) -> None:
    gold_rule_change(evaluation=evaluation, mark=0.8, rule="pause", by=alice)
    rate_while_possible(evaluation, rita, 5)
    assert rater_of(evaluation).gold_failed_at is None


def test_a_paused_rater_keeps_what_was_typed(evaluation: Evaluation, rita: User, alice: User) -> None:
    held = assignments.claim(evaluation=evaluation, user=rita, count=1)[0]
    assert rater_pause(rater=rater_of(evaluation), by=alice)
    assert not rater_pause(rater=rater_of(evaluation), by=alice)
    with pytest.raises(DeskRefused) as refused:
        give(held, 3)
    held.refresh_from_db()
    assert (refused.value.code, held.state, bool(held.draft)) == ("paused", "released", True)


def test_the_rule_and_raters_are_kept_by_the_api(evaluation: Evaluation, rita: User, alice: User) -> None:
    api, path = Api(alice), f"projects/physics/evaluations/{evaluation.run_id}"
    assert api.post(f"{path}/gold-rule", {"mark": 0, "rule": "tell"}).status_code == 422
    assert api.post(f"{path}/gold-rule", {"mark": 60, "rule": "pause"}).json()["mark"] == 60
    rate_while_possible(evaluation, rita, 1)
    missed = {"rater": "R1", "paused": True, "missed": True, "right": 0, "gold": 5}
    assert api.get(f"{path}/raters").json()["items"] == [missed]
    assert api.post(f"{path}/raters/R1/resume").json()["paused"] is False
    assert api.post(f"{path}/raters/R1/pause").json()["paused"] is True
    assert api.post(f"{path}/raters/R9/pause").status_code == 404
