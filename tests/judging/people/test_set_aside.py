"""A rater's ratings set aside: kept and shown, counted nowhere; others get their places. Undone as easily."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError

from evalsite.accounts.models import Project, Role, User
from evalsite.models import AuditEntry
from judging.core.results_file.rating_lines import read_lines
from judging.core.results_file.records import RefusedLine
from judging.people import assignments, ratings
from judging.people.adjudication import differing, verdicts
from judging.people.gold import gold_add, gold_of_item
from judging.people.gold_rule import gold_items_right
from judging.people.models import Evaluation, EvaluationRater, Item
from judging.people.outcomes import item_kinds
from judging.people.progress import overall, rated
from judging.people.rater_figures import study_ratings
from judging.people.rating_batch import RatingBatch
from judging.people.ratings import DeskRefused
from judging.people.selectors import rating_tasks, said_of
from judging.people.set_aside import rater_count_again, rater_set_aside
from judging.records.models import Judgement
from judging.reports.frames import run_frame
from tests.api import Api
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, lines_of, make_evaluation, rate_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation(project: Project, rita: User, ravi: User) -> Evaluation:
    """Two raters an item, four items: Rita gives 5, Ravi 1."""
    evaluation = make_evaluation(
        project, [rita, ravi], rows=4, side_by_side=False, models=["alpha"], overlap=2
    )
    rate_all(evaluation, rita, 5)
    rate_all(evaluation, ravi, 1)
    return evaluation


def rater_of(evaluation: Evaluation, user: User) -> EvaluationRater:
    return evaluation.raters.select_related("user").get(user=user)


def set_aside(evaluation: Evaluation, user: User, by: User) -> EvaluationRater:
    rater_set_aside(rater=rater_of(evaluation, user), reason="always one", by=by)
    return rater_of(evaluation, user)


def counts(evaluation: Evaluation) -> tuple[int, ...]:
    run = evaluation.run
    run.refresh_from_db()
    item = Item.objects.filter(evaluation=evaluation, needed__gt=0).first()
    assert item is not None
    return overall(evaluation).ratings, run.scored, run.total, item.rated, item.free


def test_they_count_in_no_figure(evaluation: Evaluation, ravi: User, alice: User) -> None:
    rater = set_aside(evaluation, ravi, alice)
    assert set(run_frame(evaluation.run)["value"]) == {5}
    assert all(rater.pk not in by_rater for by_rater in rated(evaluation).values())
    assert {value.rater for value in study_ratings(evaluation).values} == {rater_of_first(evaluation)}
    item = Item.objects.filter(evaluation=evaluation).first()
    assert item is not None
    assert item_kinds(evaluation)[item.pk] == {0: "single"}
    assert (len(verdicts(item)), len(said_of([item.pk])), differing(evaluation)) == (1, 1, [])


def rater_of_first(evaluation: Evaluation) -> int:
    return evaluation.raters.order_by("pk").values_list("pk", flat=True)[0]


def test_their_gold_counts_for_no_mark(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(
        project, [rita], rows=8, side_by_side=False, models=["alpha"], gold_share=0.5
    )
    items = evaluation.items.order_by("number")[:3]
    gold_add(evaluation=evaluation, gold=[gold_of_item(evaluation, item, {"quality": 5}) for item in items])
    evaluation.refresh_from_db()
    rate_all(evaluation, rita, 5)
    assert gold_items_right(evaluation)
    set_aside(evaluation, rita, alice)
    assert gold_items_right(evaluation) == {}


def test_their_places_return_to_the_queue(
    evaluation: Evaluation, project: Project, ravi: User, alice: User
) -> None:
    set_aside(evaluation, ravi, alice)
    assert counts(evaluation) == (4, 4, 8, 1, 1)
    late = member("late", project, Role.RATER)
    assignments.raters_add(evaluation=evaluation, users=[late])
    rate_all(evaluation, late, 4)
    assert counts(evaluation) == (8, 8, 8, 2, 0)


def test_undone_everything_is_as_before(evaluation: Evaluation, ravi: User, alice: User) -> None:
    before = counts(evaluation)
    rater = set_aside(evaluation, ravi, alice)
    assert rater_count_again(rater=rater, by=alice)
    assert not rater_count_again(rater=rater, by=alice)
    assert counts(evaluation) == before == (8, 8, 8, 2, 0)
    assert not evaluation.raters.exclude(set_aside_reason="").exists()
    assert Judgement.objects.filter(run=evaluation.run, current=True).count() == 8


def test_counted_again_after_others_took_the_places_they_are_extra(
    evaluation: Evaluation, project: Project, ravi: User, alice: User
) -> None:
    rater = set_aside(evaluation, ravi, alice)
    late = member("late", project, Role.RATER)
    assignments.raters_add(evaluation=evaluation, users=[late])
    for held in assignments.claim(evaluation=evaluation, user=late, count=3)[:3]:
        give(held, 4)
    rater_count_again(rater=rater, by=alice)
    assert (overall(evaluation).ratings, overall(evaluation).needed) == (8, 8)
    assert sorted(line["extra"] for line in lines_of(evaluation)) == [False] * 8 + [True] * 3
    evaluation.run.refresh_from_db()
    assert (evaluation.run.scored, evaluation.run.total) == (11, 11)


def test_a_rating_that_was_changed_comes_back_as_changed(
    evaluation: Evaluation, ravi: User, alice: User
) -> None:
    held = evaluation.items.all()[0].assignments.select_related("rating").get(rater__user=ravi)
    ratings.change(assignment=held, values={0: 3}, key=held.token)
    rater_count_again(rater=set_aside(evaluation, ravi, alice), by=alice)
    assert sorted(run_frame(evaluation.run)["value"]) == [1, 1, 1, 3, 5, 5, 5, 5]


def test_the_rater_gets_no_more_items(
    evaluation: Evaluation, project: Project, ravi: User, alice: User
) -> None:
    set_aside(evaluation, ravi, alice)
    held = evaluation.items.all()[0].assignments.get(rater__user=ravi)
    assert assignments.claim(evaluation=evaluation, user=ravi) == []
    with pytest.raises(DeskRefused, match="paused"):
        ratings.change(assignment=held, values={0: 3}, key=held.token)
    [task] = rating_tasks(ravi, Project.objects.filter(pk=project.pk))
    assert (task.rated, task.left) == (4, 0)


def test_items_that_only_they_had_left_need_another_rater(
    evaluation: Evaluation, ravi: User, alice: User
) -> None:
    set_aside(evaluation, ravi, alice)
    assert overall(evaluation).stuck == 4


def test_exports_mark_them_and_an_import_does_not_count_them(
    evaluation: Evaluation, ravi: User, alice: User
) -> None:
    set_aside(evaluation, ravi, alice)
    lines = lines_of(evaluation)
    assert sorted((line["rater"], line["set_aside"]) for line in lines) == [
        *[("R1", False)] * 4,
        *[("R2", True)] * 4,
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    read = [line for line in read_lines(text, []) if not isinstance(line, RefusedLine)]
    assert {line.rater for line in read if line.current} == {"R1"}


def test_an_import_adds_nothing_to_them(evaluation: Evaluation, ravi: User, alice: User) -> None:
    set_aside(evaluation, ravi, alice)
    lines = list(read_lines('{"rater": "R2", "item": 1, "values": {"quality": 2}}', []))
    [bad] = RatingBatch(evaluation, lines).import_lines().wrong
    assert bad.code == "set_aside"


def test_an_organiser_sets_aside_with_a_reason_that_the_audit_log_keeps(
    evaluation: Evaluation, ravi: User, alice: User, client_of: ClientOf
) -> None:
    client, rater = client_of(alice), rater_of(evaluation, ravi)
    address = f"/p/physics/evaluations/{evaluation.run_id}/raters/{rater.pk}/"
    answer = client.post(f"{address}set-aside/", {"reason": " "})
    assert (answer.status_code, "Say why" in answer.text) == (422, True)
    client.post(f"{address}set-aside/", {"reason": "clicks <through>"})
    page = client.get(address).text
    assert "clicks &lt;through&gt;" in page
    assert "set aside" in client.get(f"/p/physics/evaluations/{evaluation.run_id}/").text
    assert "set aside" in client.get(f"/p/physics/evaluations/{evaluation.run_id}/items/1/").text
    client.post(f"{address}count-again/")
    assert "clicks" not in client.get(address).text
    actions = ["rater.set_aside", "rater.counted"]
    entries = AuditEntry.objects.filter(action__in=actions).order_by("pk")
    assert [entry.action for entry in entries] == actions
    assert "clicks <through>" in str(entries[0].detail)


def test_a_reason_has_a_limit(evaluation: Evaluation, ravi: User, alice: User) -> None:
    with pytest.raises(ValidationError):
        rater_set_aside(rater=rater_of(evaluation, ravi), reason="x" * 2001, by=alice)


def test_an_extra_rating_is_no_rating_of_the_item(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    late = assignments.claim(evaluation=evaluation, user=rita)[0]
    assignments.release([late])
    give(assignments.claim(evaluation=evaluation, user=ravi)[0], "A>B")
    assert give(late, "A=B").extra is True
    assert (overall(evaluation).ratings, overall(evaluation).needed) == (1, 1)


def test_the_api_sets_aside_by_pseudonym(evaluation: Evaluation, ravi: User, alice: User) -> None:
    api, address = Api(alice), f"projects/physics/evaluations/{evaluation.run_id}/raters/R2/"
    assert api.post(f"{address}set-aside", {"reason": " "}).status_code == 422
    body = api.post(f"{address}set-aside", {"reason": "bot"}).json()
    assert (body["reason"], rater_of(evaluation, ravi).stopped) == ("bot", True)
    assert api.post(f"{address}count-again").json()["set_aside_at"] is None
