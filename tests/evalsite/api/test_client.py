"""The client for programs, against this process's site, and against a server that is busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from django.test import Client as Visitor

from datasets.models import Version as StoredVersion
from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create
from evalsite.api import evalsite_client
from evalsite.api.evalsite_client import Client, EvalsiteError, Run
from evalsite.api.same_process import same_process
from tests.datasets.conftest import answers, jsonl, question
from tests.judging.judged import a_judged_run, said
from tests.judging.people.make import about, rate_each

FILE = Path(evalsite_client.__file__)


@pytest.fixture
def site(cast: dict[str, User], project: Project) -> Client:
    _token, secret = token_create(user=cast["alice"], name="notebook", days=None)
    return Client("http://testserver", secret, transport=same_process())


def client_of(answer: Callable[[httpx.Request], httpx.Response], **options: float) -> Client:
    transport = httpx.MockTransport(answer)
    return Client("https://evalsite.example", "t", project="physics", transport=transport, **options)  # type: ignore[arg-type]


def test_the_only_project_of_a_token_needs_no_name(site: Client) -> None:
    assert site.project == "physics"


def test_a_file_is_uploaded(site: Client, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(jsonl(question("1+1?", model_outputs=answers(alpha="2"))))
    version = site.upload(path, name="sums", wait=False)
    assert StoredVersion.objects.get(pk=version.id).dataset.name == "sums"
    assert version.state()["state"] == "waiting"


def test_judgements_of_all_pages_are_a_table(
    site: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evalsite_client, "PAGE", 2)
    run = site.get_run(a_judged_run(project, lambda place: said(place + 1), rows=5).pk)
    table = run.judgements(metric="quality")
    assert sorted(table["value"]) == sorted(run.judgements(sort="score")["value"])
    assert len(table) == run.state["total"]


def test_ratings_of_a_run_are_those_of_its_evaluations(
    site: Client, project: Project, rita: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evalsite_client, "PAGE", 2)
    run, other = (a_judged_run(project, lambda place: said(2)) for _ in range(2))
    evaluation = about(run, [rita])
    rate_each(evaluation, rita, lambda item: 9)
    table = site.get_run(run.pk).ratings(names=True)
    assert {*zip(table["evaluation"], table["rater"], strict=True)} == {(evaluation.run_id, "rita")}
    assert [values["quality"] for values in table["values"]] == [9] * evaluation.items.count()
    assert len(site.get_run(evaluation.run_id).ratings()) == len(table)
    assert len(site.get_run(other.pk).ratings()) == 0


def test_a_table_is_a_list_without_pandas(
    site: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # cannot be imported
    run = site.get_run(a_judged_run(project).pk)
    assert {row["metric"] for row in run.judgements()} == {"quality"}


def test_a_refusal_says_which_field_is_wrong(site: Client) -> None:
    with pytest.raises(EvalsiteError, match="version") as refused:
        site.run(77, candidates=["alpha"], metrics=["quality"])
    assert (refused.value.status, list(refused.value.fields)) == (422, ["version"])


def test_a_busy_site_is_asked_again_with_the_same_key() -> None:
    keys = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        busy = len(keys) < 3
        return httpx.Response(503 if busy else 200, headers={"Retry-After": "0"}, json={"state": "paused"})

    assert client_of(answer).post("projects/physics/runs/1/pause") == {"state": "paused"}
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_site_that_stays_busy_is_given_up() -> None:
    refusal = {"error": {"code": "too_many_requests", "message": "Too many requests."}}
    site = client_of(
        lambda _request: httpx.Response(429, headers={"Retry-After": "9"}, json=refusal), patience=1.0
    )
    with pytest.raises(EvalsiteError, match="Too many") as refused:
        site.get("projects")
    assert refused.value.code == "too_many_requests"


def test_a_run_that_needs_too_long_is_not_waited_for() -> None:
    state = {"id": 1, "state": "running", "done": 3, "total": 9, "errors": 0, "url": "/"}
    run = Run(client_of(lambda _request: httpx.Response(200, json=state)), state)
    with pytest.raises(TimeoutError, match="running"):
        run.wait(timeout=0.5)


def test_the_site_gives_the_client_without_a_token(db: None) -> None:
    assert Visitor().get("/api/v1/client.py").content == FILE.read_bytes()


def test_the_client_needs_nothing_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "evalsite_client.py").write_bytes(FILE.read_bytes())
    code = "import sys, evalsite_client; print([n for n in sys.modules if n.split('.')[0] in ('django', 'evalsite')])"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
