"""Raters, the quota and groups in the API."""

import pytest

from evalsite.accounts.models import Project, User
from judging.people.models import Evaluation
from tests.api import Api, pages_of
from tests.judging.people.make import make_evaluation


@pytest.fixture
def evaluation(project: Project) -> Evaluation:
    return make_evaluation(project, rows=4, draft=True)


def test_members_and_groups_are_added(evaluation: Evaluation, alice: User, rita: User, adam: User) -> None:
    api = Api(alice)
    api.post("projects/physics/rater-groups", {"name": "Lab", "users": ["adam"]})
    path = f"projects/physics/evaluations/{evaluation.run_id}/raters/add"
    added = api.post(path, {"users": ["rita"], "groups": ["Lab"]})
    assert added.json() == {"raters": ["rita", "adam"], "left_out": 0}
    refused = api.post(path, {"users": ["nobody"]})
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (422, ["users"])
    assert api.post(path, {"groups": ["None"]}).status_code == 422


def test_the_quota_says_what_a_rater_is_told(evaluation: Evaluation, alice: User) -> None:
    api, path = Api(alice), f"projects/physics/evaluations/{evaluation.run_id}"
    changed = {"changed": True, "effects": []}
    assert api.post(f"{path}/quota", {"quota": 3}).json() == changed | {"quota": 3, "share": 3}
    assert api.get(path).json()["quota"] == 3
    assert api.post(f"{path}/quota", {"quota": None}).json() == changed | {"quota": None, "share": None}
    assert api.post(f"{path}/quota", {"quota": 0}).status_code == 422


def test_it_is_offered_to_all(evaluation: Evaluation, alice: User) -> None:
    api, path = Api(alice), f"projects/physics/evaluations/{evaluation.run_id}"
    api.post(f"{path}/offer", {"to_all": True})
    assert api.get(path).json()["open_to_all"] is True


def test_a_group_is_replaced_by_name_listed_and_deleted(project: Project, alice: User, rita: User) -> None:
    api = Api(alice)
    first = api.post("projects/physics/rater-groups", {"name": "Lab", "users": []}).json()
    second = api.post("projects/physics/rater-groups", {"name": "Lab", "users": ["rita"]}).json()
    assert second == {"id": first["id"], "name": "Lab", "users": ["rita"]}
    assert api.get("projects/physics/rater-groups").json() == {"items": [second], "next": None}
    assert api.delete(f"projects/physics/rater-groups/{first['id']}").status_code == 204
    assert api.get("projects/physics/rater-groups").json()["items"] == []


def test_groups_come_in_pages(project: Project, alice: User) -> None:
    api = Api(alice)
    for name in ("Lab", "Attic", "Office"):
        api.post("projects/physics/rater-groups", {"name": name, "users": []})
    pages = pages_of(api, "projects/physics/rater-groups", 2)
    assert [[group["name"] for group in page] for page in pages] == [["Attic", "Lab"], ["Office"]]
