"""Gold items with several accepted values, a tolerance and a reason; changed and removed while people rate."""

from __future__ import annotations

import json

import pytest

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.people import assignments
from judging.people.gold import gold_add, gold_change, gold_of_item, gold_read, gold_remove
from judging.people.models import Evaluation, Item
from judging.people.progress import Hits, gold_counts, gold_hits
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    """One answer at a time, on 1 to 5, with half of the items gold."""
    return make_evaluation(project, [rita], rows=4, side_by_side=False, models=["alpha"], gold_share=0.5)


def line(row: int, known: object, **more: object) -> str:
    return json.dumps({"row": row, "a": "alpha", "values": {"quality": known}, **more})


def gold_at(evaluation: Evaluation, row: int, known: object) -> Item:
    items, wrong = gold_read(evaluation, line(row, known, reason="The fact is wrong."))
    assert not wrong
    gold_add(evaluation=evaluation, gold=items)
    return Item.objects.get(evaluation=evaluation, row__line=row)


@pytest.mark.parametrize(
    ("known", "stored"),
    [
        (4, 4),
        ([4], 4),
        ([4, 5, 4], [4, 5]),
        ({"value": 4, "within": 1}, [4, 3, 5]),
        ({"value": 4}, 4),
    ],
)
def test_a_file_gives_accepted_values_or_a_tolerance(
    evaluation: Evaluation, known: object, stored: object
) -> None:
    item = gold_at(evaluation, 1, known)
    assert json.loads(item.gold) == {"0": stored}
    assert item.gold_reason == "The fact is wrong."


@pytest.mark.parametrize(
    "text",
    [
        line(1, 9),
        line(1, [4, 9]),
        line(1, []),
        line(1, {"value": 4, "within": -1}),
        line(1, {"value": 4, "width": 1}),
        line(1, {"value": 4, "within": True}),
        line(1, {"value": [4], "within": 1}),
        line(1, 4, reason=3),
    ],
)
def test_a_line_that_cannot_be_read_says_why(evaluation: Evaluation, text: str) -> None:
    items, wrong = gold_read(evaluation, text)
    assert items == []
    assert wrong[0].why


def rate_gold(evaluation: Evaluation, user: User, value: int) -> None:
    """Rate everything that Rita gets; only gold is counted."""
    while held := assignments.claim(evaluation=evaluation, user=user, count=50):
        for assignment in held:
            give(assignment, value)


def test_hits_follow_the_known_answers_as_they_are_now(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(
        project, [rita], rows=24, side_by_side=False, models=["alpha"], gold_share=0.5
    )  # so many that some gold is among them, whatever the draw
    items = [gold_at(evaluation, row, {"value": 4, "within": 1}) for row in (1, 2)]
    rate_gold(evaluation, rita, 3)
    rater = evaluation.raters.get().pk
    seen = gold_hits(evaluation)[rater].of
    assert seen
    assert gold_hits(evaluation) == {rater: Hits(seen, seen)}
    for item in items:
        gold = gold_of_item(evaluation, Item.objects.get(pk=item.pk), {"quality": 5}, "A better one.")
        gold_change(item=item, gold=gold, by=alice)
    assert gold_hits(evaluation) == {rater: Hits(0, seen)}
    assert gold_counts(evaluation) == {"in_use": 2, "removed": 0}
    for item in items:
        gold_remove(item=item, by=alice)
    assert gold_hits(evaluation) == {}
    assert gold_counts(evaluation) == {"in_use": 0, "removed": 2}


@pytest.mark.parametrize(("quota", "needed"), [(None, "4"), (4, "2")])
def test_the_page_says_how_many_gold_items_each_rater_needs(
    quota: int | None, needed: str, evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    Evaluation.objects.update(quota=quota)
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/gold/").text
    assert f"At 50 % gold each rater needs {needed} gold items; beside training and" in page
    assert "When these are used up" in page


def test_removed_gold_is_given_to_nobody(evaluation: Evaluation, rita: User, alice: User) -> None:
    items = [gold_at(evaluation, row, 4) for row in (1, 2)]
    assignments.claim(evaluation=evaluation, user=rita, count=50)
    for item in items:
        gold_remove(item=item, by=alice)
        gold_remove(item=item, by=alice)
    assert AuditEntry.objects.filter(action="gold.removed").count() == 2
    again = assignments.claim(evaluation=evaluation, user=rita, count=50)
    gold = {item.pk for item in items}
    assert not gold.intersection(assignment.item_id for assignment in again)


def test_gold_is_changed_and_removed_on_its_pages(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    item, client = gold_at(evaluation, 1, [4, 5]), client_of(alice)
    address = f"/p/physics/evaluations/{evaluation.run_id}/items/{item.number}/"
    assert "4 (also accepted: 5)" in client.get(address).text
    form = client.get(f"{address}gold/change/").text
    assert "The fact is wrong." in form
    assert form.count(" checked") == 1
    wrong = client.post(f"{address}gold/change/", {"value_0": "", "reason": "Kept text"})
    assert wrong.status_code == 422
    assert "Kept text" in wrong.text
    client.post(f"{address}gold/change/", {"value_0": "2", "also_0": ["1"], "reason": "Better"})
    assert json.loads(Item.objects.get(pk=item.pk).gold) == {"0": [3, 2]}
    client.post(f"{address}gold/remove/")
    assert "was removed" in client.get(address).text
    assert "removed</span>" in client.get(f"/p/physics/evaluations/{evaluation.run_id}/gold/").text
    ordinary = evaluation.items.get(row__line=3).number
    missing = client.get(f"/p/physics/evaluations/{evaluation.run_id}/items/{ordinary}/gold/change/")
    assert missing.status_code == 404


def test_gold_is_kept_by_the_api(evaluation: Evaluation, alice: User) -> None:
    api, path = Api(alice), f"projects/physics/evaluations/{evaluation.run_id}/gold"
    sent = {"row": 1, "a": "alpha", "values": {"quality": {"value": 4, "within": 1}}, "reason": "So it is."}
    added = api.post(path, sent)
    assert added.status_code == 201, added.text
    assert (added.json()["values"], added.json()["removed"]) == ({"quality": [4, 3, 5]}, False)
    one = f"{path}/{added.json()['item']}"
    assert api.post(path, sent | {"row": 2, "values": {"quality": 9}}).status_code == 422
    assert api.post(one, {"values": {"quality": 2}}).json()["values"] == {"quality": 2}
    assert api.client.delete(f"/api/v1/{one}", headers=api.headers).status_code == 204
    assert [entry["removed"] for entry in api.get(path).json()["items"]] == [True]


def test_a_reason_that_names_a_candidate_is_refused(evaluation: Evaluation) -> None:
    items, wrong = gold_read(evaluation, line(1, 4, reason="Alpha left out a fact."))
    assert not items
    assert "alpha" in wrong[0].why
