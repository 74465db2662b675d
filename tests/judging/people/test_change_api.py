"""What changes while a study runs, in the API: guideline, qualification, questions, raters per item and rows."""

from __future__ import annotations

from uuid import uuid4

import pytest

from evalsite.accounts.models import Project, User
from judging.people import assignments
from judging.people.gold import gold_add, gold_of_item
from judging.people.models import Assignment, Evaluation
from judging.people.qualification.models import QualificationTry
from judging.people.questions.services import question_ask
from tests.api import Api
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    """Ten of twelve rows; two of them are gold, and a rater per item."""
    evaluation = make_evaluation(project, [rita], rows=12, choice={"sample_size": 10}, guideline="Old.")
    items = evaluation.items.order_by("number")[:2]
    gold = [gold_of_item(evaluation, item, {"preference": "A>B"}, "") for item in items]
    gold_add(evaluation=evaluation, gold=gold)
    return Evaluation.objects.get(pk=evaluation.pk)


@pytest.fixture
def path(evaluation: Evaluation) -> str:
    return f"projects/physics/evaluations/{evaluation.run_id}"


def held(evaluation: Evaluation, user: User) -> Assignment:
    return assignments.claim(evaluation=evaluation, user=user, count=1)[0]


def test_a_changed_guideline_is_a_version_with_its_ratings(
    evaluation: Evaluation, path: str, alice: User, rita: User
) -> None:
    give(held(evaluation, rita), "A>B")
    api, texts = Api(alice), {"guideline": "New.", "criteria": {"preference": "Which one?"}, "seen": 1}
    asked = api.post(f"{path}/guideline", texts).json()
    assert (asked["changed"], asked["version"]) == (False, 1)
    assert "This begins version 2." in asked["effects"][0]
    texts["confirmed"] = True
    changed = api.post(f"{path}/guideline", texts).json()
    assert changed.pop("effects") == asked["effects"]
    assert changed.pop("changed")
    assert (changed["version"], changed["criteria"]) == (2, {"preference": "Which one?"})
    assert [(version["version"], version["ratings"]) for version in changed["versions"]] == [(2, 0), (1, 1)]
    assert changed["versions"][0]["repeats"] == 1
    assert api.get(f"{path}/guideline").json() == changed
    late = api.post(f"{path}/guideline", texts)
    assert (late.status_code, "in the meantime" in late.json()["error"]["message"]) == (422, True)
    strange = api.post(f"{path}/guideline", {**texts, "seen": 2, "criteria": {"tone": ""}})
    assert strange.json()["error"]["fields"].keys() == {"criteria"}


def test_training_and_qualification_are_set_and_decided(
    evaluation: Evaluation, path: str, alice: User
) -> None:
    api = Api(alice)
    numbers = list(evaluation.items.exclude(gold="").order_by("number").values_list("number", flat=True))
    entry = api.post(f"{path}/qualification", {"items": 1, "mark": 100, "training": numbers[:1]}).json()
    assert (entry["items"], entry["mark"], entry["training"]) == (1, 100, numbers[:1])
    assert [(stage["rater"], stage["stage"]) for stage in entry["raters"]] == [("R1", "training")]
    assert api.post(f"{path}/qualification", {"items": 0, "training": [99]}).status_code == 422
    assert api.post(f"{path}/raters/R1/let-in").status_code == 422
    api.post(f"{path}/qualification", {"items": 1, "mark": 100})
    rater = evaluation.raters.get()
    QualificationTry.objects.create(rater=rater, number=1, items=1, mark=1.0, ended_at=rater.joined_at)
    assert api.get(f"{path}/qualification").json()["raters"][0]["stage"] == "failed"
    assert api.post(f"{path}/raters/R1/try-again").json()["stage"] == "qualification"


def test_a_question_is_answered(evaluation: Evaluation, path: str, alice: User, rita: User) -> None:
    question_ask(assignment=held(evaluation, rita), text="Is it law?", key=uuid4())
    api = Api(alice)
    (asked,) = api.get(f"{path}/questions?open=1").json()["items"]
    assert (asked["rater"], asked["text"], asked["answered_at"]) == ("R1", "Is it law?", None)
    answer = f"{path}/questions/{asked['id']}/answer"
    assert api.post(answer, {"answer": "As alpha says."}).status_code == 422
    assert api.post(answer, {"answer": "Yes.", "to_all": True}).json()["to_all"] is True
    assert api.get(f"{path}/questions?open=1").json()["items"] == []


def test_a_change_says_what_it_does_before_it_is_confirmed(
    evaluation: Evaluation, path: str, alice: User
) -> None:
    api, wanted = Api(alice), {"overlap": 2, "rows": 1}
    asked = api.post(f"{path}/change", wanted).json()
    assert (asked["changed"], asked["overlap"], asked["items"]) == (False, 1, evaluation.items_count)
    assert "1 row is drawn" in asked["effects"][0]
    done = api.post(f"{path}/change", {**wanted, "confirmed": True}).json()
    assert (done["changed"], done["overlap"], done["items"]) == (True, 2, evaluation.items_count + 1)
    assert done["effects"] == asked["effects"]
    refused = api.post(f"{path}/change", {"rows": 99}).json()["error"]
    assert refused["fields"].keys() == {"rows"}


def test_another_end_of_a_running_study_waits_for_a_confirmation(path: str, alice: User) -> None:
    api, wanted = Api(alice), {"ends_at": "2031-01-01T10:00:00Z"}
    asked = api.post(f"{path}/schedule", wanted).json()
    assert (asked["changed"], asked["ends_at"]) == (False, None)
    assert asked["effects"] == [
        "It closes by itself at 2031-01-01 10:00 UTC.",
        "0 ratings so far are kept and count as before.",
    ]
    done = api.post(f"{path}/schedule", {**wanted, "confirmed": True}).json()
    assert (done["changed"], done["ends_at"]) == (True, "2031-01-01T10:00:00Z")
    same = api.post(f"{path}/schedule", wanted).json()
    assert (same["changed"], same["effects"]) == (False, [])


def test_another_quota_of_a_running_study_waits_for_a_confirmation(path: str, alice: User) -> None:
    api = Api(alice)
    asked = api.post(f"{path}/quota", {"quota": 3}).json()
    assert (asked["changed"], asked["quota"], len(asked["effects"])) == (False, None, 3)
    done = api.post(f"{path}/quota", {"quota": 3, "confirmed": True}).json()
    assert (done["changed"], done["quota"], done["share"]) == (True, 3, 3)


def test_a_draft_is_changed_at_once(project: Project, alice: User) -> None:
    draft, api = make_evaluation(project, rows=4, draft=True), Api(alice)
    path = f"projects/physics/evaluations/{draft.run_id}"
    bodies = {
        "guideline": {"guideline": "New.", "seen": 1},
        "quota": {"quota": 2},
        "schedule": {"ends_at": "2031-01-01T10:00:00Z"},
    }
    answers = [api.post(f"{path}/{name}", body).json() for name, body in bodies.items()]
    assert [(answer["changed"], answer["effects"]) for answer in answers] == [(True, [])] * 3
