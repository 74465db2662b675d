"""Human evaluations and endpoints in the API."""

from __future__ import annotations

import io
import json
from typing import Any

from evalsite.accounts.models import Project, User
from judging.endpoints.models import Endpoint
from judging.people.models import Evaluation, Rating
from tests.api import Api, code_of
from tests.judging.judged import a_judged_run
from tests.judging.people.make import make_evaluation, rate_all
from tests.make import a_version

PATH = "projects/physics/evaluations"
CRITERIA = [{"name": "quality", "scale": "five"}]


def body(project: Project, **more: Any) -> dict[str, Any]:
    version = a_version(project)
    version.candidates.update(responses=3)
    return {"name": "Round one", "version": version.pk, "kind": "single", "criteria": CRITERIA, **more}


def test_an_evaluation_is_started_with_its_raters(alice: User, rita: User, project: Project) -> None:
    api = Api(alice)
    reply = api.post(PATH, body(project, candidates=["alpha"], raters=["rita"], sample_size=2))
    assert reply.status_code == 201, reply.text
    document = reply.json()
    assert (document["items"], document["needed"], document["open"]) == (2, 2, True)
    assert [rater.user for rater in Evaluation.objects.get().raters.all()] == [rita]
    assert api.get(PATH).json()["items"] == [api.get(f"{PATH}/{document['id']}").json()]


def test_answers_of_a_run_are_rated_on_its_scale(alice: User, rita: User, project: Project) -> None:
    run = a_judged_run(project)
    criteria = [{"name": "quality", "scale": "ten"}]
    sent = {"name": "About it", "run": run.pk, "sample_size": 2, "criteria": criteria, "filter": "least=2"}
    reply = Api(alice).post(PATH, sent)
    assert reply.status_code == 201, reply.text
    assert reply.json()["about_run"] == run.pk


def test_what_the_page_refuses_is_refused_by_field(alice: User, project: Project) -> None:
    api = Api(alice)
    for more, field in (
        ({"candidates": ["nobody"]}, "candidates"),
        ({"raters": ["nobody"]}, "raters"),
        ({"overlap": 0}, "overlap"),
        ({"name": "alpha wins"}, "name"),
        ({"criteria": [{"name": "kind", "scale": "categories"}]}, "criteria.categories"),
    ):
        reply = api.post(PATH, body(project, **more))
        assert (reply.status_code, [*reply.json()["error"]["fields"]]) == (422, [field])
    assert not Evaluation.objects.exists()


def test_a_name_that_is_taken_is_a_conflict(alice: User, project: Project) -> None:
    make_evaluation(project, name="Round one")
    assert code_of(Api(alice).post(PATH, body(project))) == (409, "name_taken")


def test_ratings_are_read_in_pages_and_go_in_again(alice: User, rita: User, project: Project) -> None:
    evaluation = make_evaluation(project, [rita])
    rate_all(evaluation, rita, "A>B")
    api, path = Api(alice), f"{PATH}/{evaluation.run_id}/ratings"
    first = api.get(path, limit=2).json()
    rest = api.get(path, limit=2, cursor=first["next"]).json()
    ratings = first["items"] + rest["items"]
    assert (len(ratings), rest["next"]) == (3, None)
    again = make_evaluation(project, version=evaluation.run.version)
    file = io.BytesIO(b"\n".join(json.dumps(rating).encode() for rating in ratings))
    file.name = "ratings.jsonl"
    document = api.upload(f"{PATH}/{again.run_id}/ratings", file=file).json()
    assert document["state"] == "done"
    assert Rating.objects.filter(assignment__evaluation=again).count() == document["new"]
    kept = api.get(f"{PATH}/{again.run_id}/ratings/imports/{document['id']}").json()
    assert kept == document


def test_secrets_of_endpoints_go_in_and_never_out(adam: User, project: Project) -> None:
    secrets = {"key": "sk-1", "headers": {"X-Team": "blue"}, "proxy": "http://u:pw@proxy.example:8080"}
    sent = {"name": "Judge", "url": "http://127.0.0.1:9/v1", "model": "m", **secrets}
    api = Api(adam)
    replies = [api.post("projects/physics/endpoints", sent), api.get("projects/physics/endpoints")]
    assert replies[0].status_code == 201, replies[0].text
    assert replies[0].json()["has_key"]
    for text in ("sk-1", "blue", "pw@"):
        assert not any(text in reply.text for reply in replies)
    assert Endpoint.objects.get().headers_encrypted


def test_an_endpoint_is_refused_by_field(adam: User, project: Project) -> None:
    reply = Api(adam).post("projects/physics/endpoints", {"url": "ftp://x", "model": "m", "ca_pem": "é"})
    assert set(reply.json()["error"]["fields"]) == {"url", "ca_pem"}


def test_states_dates_and_the_pilot_of_a_study(alice: User, rita: User, project: Project) -> None:
    evaluation, api = make_evaluation(project, [rita], rows=3, draft=True), Api(alice)
    path = f"{PATH}/{evaluation.run_id}"

    def state_after(reply: Any) -> str:
        assert reply.status_code == 200, reply.text
        return str(reply.json()["state"])

    assert api.post(f"{path}/state", {"state": "paused"}).status_code == 409
    pilot = {"ends_at": "2031-01-01T10:00:00+08:00", "pilot_items": 1, "pilot_raters": ["rita"]}
    assert state_after(api.post(f"{path}/schedule", pilot)) == "draft"
    refused = api.post(f"{path}/schedule", {"pilot_items": 9, "pilot_raters": ["rita"]})
    assert (refused.status_code, [*refused.json()["error"]["fields"]]) == (422, ["pilot_items"])
    for state in ("open", "paused", "open", "closed", "open"):
        assert state_after(api.post(f"{path}/state", {"state": state})) == state
    assert api.get(path).json()["pilot"] == 1
    assert api.post(f"{path}/end-pilot", {}).json()["pilot"] is None
