"""Access to every address of the API. An address missing from the table fails the test, and so does another answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from datasets.models import Attachment, Version
from evalsite import clock
from evalsite.accounts.models import ApiToken, Project, User
from evalsite.api import replies, uploads
from evalsite.api.replies import Answer
from evalsite.api.site import schema
from evalsite.webhooks.services import webhook_create
from judging.endpoints.models import Endpoint
from judging.look.models import Look
from judging.metrics.models import Metric, MetricVersion
from judging.people.import_models import RatingsImport
from judging.people.inviting.models import RaterGroup
from judging.people.qualification.models import QualificationTry
from judging.people.questions.models import Question
from judging.transfer.results_import.models import ResultsImport
from tests.api import READ, Api
from tests.conftest import person
from tests.datasets.conftest import Upload, answers, jsonl, question, upload
from tests.judging.judged import a_judged_run
from tests.judging.people.make import make_evaluation
from tests.make import a_metric

__all__ = ["upload"]  # a fixture
MEMBERS, LOOK, WORK = "alice rita bob adam", "alice bob adam", "alice adam"
MANAGE, REVIEW, SITE = "adam", "bob adam", ""
EVERYBODY = ("alice", "rita", "bob", "adam", "olga", "charlie", "nobody")
VERSION = "projects/{slug}/datasets/{dataset}/versions/{number}"
RUN = "projects/{slug}/runs/{run}"
TABLE = {
    "get projects": "everybody",
    "get log": SITE,
    "get projects/{slug}/log": MANAGE,
    "get projects/{slug}/datasets": LOOK,
    "post projects/{slug}/datasets": WORK,
    "get projects/{slug}/datasets/{dataset}": LOOK,
    f"get {VERSION}": LOOK,
    f"get {VERSION}/findings": LOOK,
    f"get {VERSION}/rows": LOOK,
    f"get {VERSION}/download": LOOK,
    f"post {VERSION}/repairs": WORK,
    f"post {VERSION}/answers": WORK,
    f"get {VERSION}/answers/{{attachment}}": WORK,
    "get projects/{slug}/endpoints": WORK,
    "post projects/{slug}/endpoints": MANAGE,
    "get projects/{slug}/endpoints/{endpoint}": WORK,
    "get projects/{slug}/metrics": WORK,
    "post projects/{slug}/metrics": WORK,
    "get projects/{slug}/metrics/{metric}": WORK,
    "post projects/{slug}/metrics/{metric}/preview": WORK,
    "get projects/{slug}/judges": LOOK,
    "get projects/{slug}/webhooks": MANAGE,
    "post projects/{slug}/webhooks": MANAGE,
    "delete projects/{slug}/webhooks/{webhook}": MANAGE,
    "get projects/{slug}/runs": LOOK,
    "post projects/{slug}/runs": WORK,
    f"get {RUN}": LOOK,
    **{f"post {RUN}/{action}": WORK for action in ("pause", "resume", "cancel", "retry", "judge-again")},
    "post projects/{slug}/runs/import": WORK,
    "get projects/{slug}/runs/import/{results_import}": WORK,
    "post projects/{slug}/runs/import/{results_import}/confirm": WORK,
    "get projects/{slug}/runs/{a}/compare/{b}": LOOK,
    f"get {RUN}/disagreements": LOOK,
    f"post {RUN}/judgements/{{judgement}}/override": REVIEW,
    f"get {RUN}/judgements/{{judgement}}/comments": LOOK,
    f"post {RUN}/judgements/{{judgement}}/comments": REVIEW,
    "get projects/{slug}/evaluations": LOOK,
    "post projects/{slug}/evaluations": WORK,
    "get projects/{slug}/evaluations/{evaluation}": LOOK,
    "post projects/{slug}/evaluations/{evaluation}/state": WORK,
    "post projects/{slug}/evaluations/{evaluation}/schedule": WORK,
    "post projects/{slug}/evaluations/{evaluation}/end-pilot": WORK,
    "get projects/{slug}/evaluations/{evaluation}/gold": WORK,
    "post projects/{slug}/evaluations/{evaluation}/gold": WORK,
    "post projects/{slug}/evaluations/{evaluation}/gold/{item}": WORK,
    "delete projects/{slug}/evaluations/{evaluation}/gold/{item}": WORK,
    "post projects/{slug}/evaluations/{evaluation}/gold-rule": WORK,
    "get projects/{slug}/evaluations/{evaluation}/raters": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/add": WORK,
    "post projects/{slug}/evaluations/{evaluation}/quota": WORK,
    "post projects/{slug}/evaluations/{evaluation}/offer": WORK,
    "get projects/{slug}/rater-groups": WORK,
    "post projects/{slug}/rater-groups": WORK,
    "delete projects/{slug}/rater-groups/{group}": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/pause": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/resume": WORK,
    "get projects/{slug}/evaluations/{evaluation}/payment": WORK,
    "get projects/{slug}/evaluations/{evaluation}/progress": LOOK,
    "get projects/{slug}/evaluations/{evaluation}/figures": WORK,
    "get projects/{slug}/evaluations/{evaluation}/thresholds": WORK,
    "post projects/{slug}/evaluations/{evaluation}/thresholds": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/set-aside": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/count-again": WORK,
    "get projects/{slug}/evaluations/{evaluation}/guideline": WORK,
    "post projects/{slug}/evaluations/{evaluation}/guideline": WORK,
    "get projects/{slug}/evaluations/{evaluation}/qualification": WORK,
    "post projects/{slug}/evaluations/{evaluation}/qualification": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/let-in": WORK,
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/try-again": WORK,
    "get projects/{slug}/evaluations/{evaluation}/questions": WORK,
    "post projects/{slug}/evaluations/{evaluation}/questions/{question}/answer": WORK,
    "post projects/{slug}/evaluations/{evaluation}/change": WORK,
    "get projects/{slug}/evaluations/{evaluation}/ratings": LOOK,
    "post projects/{slug}/evaluations/{evaluation}/ratings": WORK,
    "get projects/{slug}/evaluations/{evaluation}/ratings/imports/{ratings_import}": WORK,
    f"get {RUN}/judgements": LOOK,
    f"get {RUN}/incomplete": LOOK,
    f"get {RUN}/judgements/{{judgement}}": LOOK,
    f"get {RUN}/export": LOOK,
    f"get {RUN}/report": LOOK,
    f"get {RUN}/report/{{name}}": LOOK,
    "get projects/{slug}/looks/{look}/notes": LOOK,
    f"get {RUN}/ci": LOOK,
}
SCRIPT = "def postprocess(**kw): return 1"
BODIES: dict[str, Any] = {
    "post projects/{slug}/webhooks": {"url": "https://hooks.example/x", "events": ["run.finished"]},
    "post projects/{slug}/metrics": {
        "metrics": [{"name": "short", "pipeline": [{"type": "POSTPROCESS", "file_content": SCRIPT}]}]
    },
    "post projects/{slug}/metrics/{metric}/preview": {"version": None, "line": 1, "model": "alpha"},
    "post projects/{slug}/runs": {"version": None, "candidates": ["alpha"], "metrics": ["quality"]},
    f"post {VERSION}/repairs": {"repairs": ["strip_comments"]},
    "post projects/{slug}/endpoints": {"url": "http://127.0.0.1:9/v1", "model": "m"},
    f"post {RUN}/judgements/{{judgement}}/override": {"value": 5, "reason": "x"},
    f"post {RUN}/judgements/{{judgement}}/comments": {"text": "x"},
    "post projects/{slug}/evaluations/{evaluation}/state": {"state": "paused"},
    "post projects/{slug}/evaluations/{evaluation}/raters/{rater}/set-aside": {"reason": "too quick"},
    "post projects/{slug}/evaluations/{evaluation}/gold": {
        "row": 2,
        "a": "alpha",
        "b": "beta",
        "values": {"preference": "A=B"},
    },
    "post projects/{slug}/evaluations/{evaluation}/gold/{item}": {"values": {"preference": "A>B"}},
    "post projects/{slug}/evaluations/{evaluation}/gold-rule": {"mark": 80, "rule": "tell"},
    "post projects/{slug}/evaluations/{evaluation}/quota": {"quota": 5},
    "post projects/{slug}/evaluations/{evaluation}/offer": {"to_all": True},
    "post projects/{slug}/evaluations/{evaluation}/guideline": {"guideline": "New.", "seen": 1},
    "post projects/{slug}/evaluations/{evaluation}/qualification": {"items": 1, "mark": 80},
    "post projects/{slug}/evaluations/{evaluation}/questions/{question}/answer": {"answer": "Yes."},
    "post projects/{slug}/evaluations/{evaluation}/change": {"overlap": 2, "confirmed": True},
    "post projects/{slug}/rater-groups": {"name": "x", "users": ["rita"]},
    "post projects/{slug}/evaluations": {"version": None, "name": "x", "criteria": [{"name": "quality"}]},
}
"""`version`: that of `places`."""


def body_of(address: str, places: dict[str, Any]) -> dict[str, Any]:
    body = BODIES.get(address, {})
    return body | ({"version": places["version"]} if "version" in body else {})


@pytest.fixture
def places(settings: LazySettings, cast: dict[str, User], project: Project, upload: Upload) -> dict[str, Any]:
    """Path parameters of existing objects."""
    settings.LOCAL_MODE = False
    rows = jsonl(question("1+1?", model_outputs=answers(alpha="2"))) + b"// a note\n"
    version: Version = upload(rows, read=True, user=cast["alice"])
    metric = Metric.objects.create(project=project, name="other")
    MetricVersion.objects.create(metric=metric, number=1, definition=a_metric("").to_json())
    run = a_judged_run(project)
    run.version.candidates.update(responses=3)
    judgement = run.judgements.order_by("position")[0]
    endpoint = Endpoint.objects.create(project=project, name="Judge", url="http://127.0.0.1:9/v1", model="m")
    evaluation = make_evaluation(project, [cast["rita"]])
    gold = evaluation.items.order_by("number")[0]
    evaluation.items.filter(pk=gold.pk).update(gold='{"0": "A=B"}', needed=0, free=0)
    rater = evaluation.raters.get()
    asked = Question.objects.create(rater=rater, item=gold, key=uuid4(), text="May I?")
    QualificationTry.objects.create(rater=rater, number=1, items=1, mark=1.0, ended_at=clock.now())
    results = ResultsImport.objects.create(
        project=project, version=version, name="x", file_name="x", stored_as="x", size=1
    )
    ratings = RatingsImport.objects.create(
        evaluation=evaluation, file_name="x", stored_as="x", size=1, created_by=cast["alice"]
    )
    attachment = Attachment.objects.create(version=version, file_name="x", stored_as="x")
    webhook, _secret = webhook_create(project=project, url="https://hooks.example/", events=["mention"])
    look = Look.objects.create(project=project, version=version, seed=1, size=1, population=1)
    return {
        **{"endpoint": endpoint.pk, "evaluation": evaluation.run_id, "attachment": attachment.pk},
        "group": RaterGroup.objects.create(project=project, name="Lab").pk,
        **{"item": gold.number, "rater": "R1", "look": look.pk, "name": "report.html", "webhook": webhook.pk},
        "question": asked.pk,
        **{"results_import": results.pk, "ratings_import": ratings.pk, "a": run.pk, "b": run.pk},
        **{"slug": "physics", "dataset": version.dataset_id, "number": version.number, "metric": metric.pk},
        **{"run": run.pk, "judgement": judgement.pk, "version": run.version_id},
    }


def test_every_address_lets_in_who_may_and_nobody_else(cast: dict[str, User], places: dict[str, Any]) -> None:
    people = {**cast, "nobody": person("nobody")}
    tokens = {name: Api(people[name]) for name in EVERYBODY}
    wrong = [
        f"{address} as {name}: {status}, not {expected(may, name)}"
        for address, may in TABLE.items()
        for name in EVERYBODY
        if (status := outcome(tokens[name], address, places)) != expected(may, name)
    ]
    assert wrong == []


def expected(may: str, name: str) -> str:
    if may == "everybody" or name == "olga" or name in may.split():
        return "in"
    if may == SITE:
        return "403"
    return "403" if name in MEMBERS.split() else "404"


def outcome(api: Api, address: str, places: dict[str, Any]) -> str:
    """`in`, or how the request was refused; its changes are rolled back."""
    method, _space, path = address.partition(" ")
    with transaction.atomic():
        sent = (path.format(**places), *([body_of(address, places)] if method == "post" else []))
        response = getattr(api, method)(*sent)
        if response.streaming:
            list(response)
        transaction.set_rollback(True)
    status = response.status_code
    return str(status) if status in (401, 403, 404, 405) or status >= 500 else "in"


def test_a_token_that_may_only_read_changes_nothing(cast: dict[str, User], places: dict[str, Any]) -> None:
    api = Api(cast["olga"], scope=READ)
    refused = {address for address in TABLE if outcome(api, address, places) == "403"}
    assert refused == {address for address in TABLE if not address.startswith("get ")} - {
        "post projects/{slug}/metrics/{metric}/preview"  # stores nothing
    }


def test_the_table_has_every_address() -> None:
    paths = {
        f"{method} {path.removeprefix('/api/v1/')}"
        for path, methods in schema()["paths"].items()
        for method in methods
    }
    assert paths == TABLE.keys()


def without_secret(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply as it is stored."""
    return {name: None if name == "secret" else value for name, value in reply.items()}


UPLOADS = ("/datasets", "/answers", "/import", "/ratings")


@pytest.mark.parametrize("address", [address for address in TABLE if address.startswith("post ")])
def test_every_post_that_is_sent_twice_is_done_once(
    cast: dict[str, User], places: dict[str, Any], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, path = Api(cast["olga"]), address.removeprefix("post ").format(**places)
    meanwhile: list[Any] = []

    def send() -> Any:
        if address.endswith(UPLOADS):
            file = SimpleUploadedFile("x.jsonl", b"{}\n")
            return api.upload(path, key="k", file=file, name="x", version=places["version"])
        return api.post(path, body_of(address, places), key="k")

    def once_for(request: HttpRequest, token: ApiToken, digest: str, answer: Answer) -> HttpResponseBase:
        def answer_and_send(request: HttpRequest) -> HttpResponseBase:
            meanwhile.append(send())  # at the same moment: the first is not answered yet
            return answer(request)

        return replies_once_for(request, token, digest, answer_and_send)

    replies_once_for = replies.once_for
    for module in (replies, uploads):
        monkeypatch.setattr(module, "once_for", once_for)
    first, second = send(), send()
    assert first.status_code < 400, first.text
    assert [(reply.status_code, "Retry-After" in reply.headers) for reply in meanwhile] == [(409, True)]
    assert (second.status_code, second.json()) == (first.status_code, without_secret(first.json()))
    assert second.headers["Idempotency-Replayed"] == "true"
