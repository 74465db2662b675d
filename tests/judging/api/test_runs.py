"""Runs in the API: judging again, results from elsewhere, comparing."""

from __future__ import annotations

import io
from typing import Any

import pytest

from evalsite.accounts.models import Project, User
from judging.endpoints.models import Endpoint
from judging.metrics.services import metric_create
from judging.records.models import Judgement, Run
from judging.teamwork.comments import comment_add
from tests.api import Api, code_of
from tests.datasets.conftest import jsonl
from tests.judging.judged import JUDGE_URL, a_judged_run
from tests.judging.working import an_endpoint
from tests.make import a_metric, a_version

RUNS = "projects/physics/runs"


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project)


def test_judging_again_keeps_the_first_attempts(alice: User, run: Run) -> None:
    reply = Api(alice).post(f"{RUNS}/{run.pk}/judge-again?candidate=alpha", {}).json()
    assert (reply["changed"], reply["judgements"]) == (True, 3)
    assert Judgement.objects.filter(run=run, attempt=2).count() == 3


def test_judging_one_again_with_an_unknown_version_changes_nothing(alice: User, run: Run) -> None:
    body = {"judgement": run.judgements.all()[0].pk, "version": 9}
    assert code_of(Api(alice).post(f"{RUNS}/{run.pk}/judge-again", body)) == (422, "invalid")
    assert not Judgement.objects.filter(attempt=2).exists()


def test_comments_are_a_list_with_pages(alice: User, run: Run) -> None:
    judgement = run.judgements.all()[0]
    path = f"{RUNS}/{run.pk}/judgements/{judgement.pk}/comments"
    first, second = (comment_add(judgement=judgement, text=text, by=alice).pk for text in ("one", "two"))
    page = Api(alice).get(f"{path}?limit=1").json()
    assert [comment["id"] for comment in page["items"]] == [first]
    rest = Api(alice).get(f"{path}?cursor={page['next']}").json()
    assert ([comment["id"] for comment in rest["items"]], rest["next"]) == ([second], None)


def sent(alice: User, project: Project, *lines: Any, query: str = "") -> Any:
    """The reply to a results file about a new version."""
    file = io.BytesIO(jsonl(*lines))
    file.name = "results.jsonl"
    version = str(a_version(project).pk)
    return Api(alice).upload(f"{RUNS}/import{query}", file=file, version=version, name="theirs")


LINES = [
    {"line": 1, "model": "alpha", "judge": "gpt", "value": 3},
    {"line": 99, "model": "alpha", "judge": "gpt", "value": 3},
]


def test_results_become_a_run_and_lines_that_do_not_fit_are_told(alice: User, project: Project) -> None:
    document = sent(alice, project, *LINES).json()
    assert (document["state"], document["new"], document["refused"]) == ("done", 1, 1)
    assert document["lines"][0]["line"] == 2
    assert Run.objects.get(pk=document["run"]).name == "theirs"


def test_all_or_nothing_is_imported_if_it_is_asked_for(alice: User, project: Project) -> None:
    document = sent(alice, project, *LINES, query="?strict=1").json()
    assert (document["state"], document["run"], document["refused"]) == ("failed", None, 1)
    assert (document["lines"][0]["line"], "all or nothing" in document["problem"]) == (2, True)
    assert not Run.objects.exists()
    document = sent(alice, project, LINES[0], query="?strict=1").json()
    assert (document["state"], document["new"]) == ("done", 1)


def sample(line: int, score: float | None) -> dict[str, Any]:
    """A line of Every Eval Ever about the row."""
    return {
        **{"model_id": "alpha", "evaluation_name": "sums", "sample_id": str(line)},
        **{"interaction_type": "single_turn", "input": {"raw": f"question {line}", "reference": []}},
        **{"output": {"raw": [f"alpha says {line}.1"]}, "evaluation": {"score": score}},
    }


def test_verdicts_of_another_tool_become_a_run_and_what_is_left_out_is_told(
    alice: User, project: Project
) -> None:
    document = sent(alice, project, sample(1, 1.0), sample(2, None)).json()
    assert (document["state"], document["new"], document["refused"]) == ("done", 1, 1), document
    assert [(line["line"], line["code"]) for line in document["lines"]] == [(2, "no_value")]
    judgement = Judgement.objects.get(run=document["run"])
    assert (judgement.row.line, judgement.run_metric.name, judgement.score) == (1, "sums", 1.0)


def test_a_dry_import_stores_nothing_until_it_is_confirmed(alice: User, project: Project) -> None:
    document = sent(alice, project, *LINES, query="?dry=1").json()
    assert (document["state"], document["run"]) == ("checked", None)
    confirmed = Api(alice).post(f"{RUNS}/import/{document['id']}/confirm", {}).json()
    assert (confirmed["state"], confirmed["new"]) == ("done", 1)


def test_two_runs_are_compared_as_the_command_does(alice: User, project: Project, run: Run) -> None:
    other = a_judged_run(project)
    document = Api(alice).get(f"{RUNS}/{run.pk}/compare/{other.pk}").json()
    assert document["state"] == "ready"
    assert set(document["metrics"]["quality"]) == {"alpha", "beta"}


def test_a_run_in_batches_is_started_or_its_refusal_foreseen(alice: User, project: Project) -> None:
    endpoint = an_endpoint(project, JUDGE_URL, probe={"ok": True, "batches": True})
    metric_create(project=project, definition=a_metric("", endpoint=endpoint.pk), user=alice)
    version = a_version(project)
    version.candidates.update(responses=3)
    body = {
        "version": version.pk,
        "candidates": ["alpha"],
        "metrics": ["quality"],
        "batched": True,
    }
    assert Api(alice).post(f"{RUNS}?dry=1", body).json()["warnings"] == []
    started = Run.objects.get(pk=Api(alice).post(RUNS, body | {"plain_if_expired": True}).json()["id"])
    assert (started.batched, started.plain_if_expired) == (True, True)
    Endpoint.objects.update(probe={"ok": True})
    (warning,) = Api(alice).post(f"{RUNS}?dry=1", body).json()["warnings"]
    assert "no batches" in warning
