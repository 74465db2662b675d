"""Structured output in a run: sent with the first call, read, and left out for a server that refuses it."""

from __future__ import annotations

import json

import msgspec
import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.working import an_endpoint, work
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def run_with(project: Project, url: str, when: str, **endpoint: object) -> Run:
    judge = an_endpoint(project, url, **endpoint)
    metric = msgspec.structs.replace(a_metric(url, endpoint=judge.pk), structured=when)
    return work(a_run(a_version(project, rows=1, models=["alpha"]), metric))


def as_asked(received: Received) -> Answer:
    """Honours a schema and tools."""
    said = json.dumps({"reasoning": "It is fine.", "verdict": 8})
    if "tools" in received.body:
        return Answer(None, arguments=said)
    return Answer(said if "response_format" in received.body else "Hm.")


def test_on_sends_the_schema_with_the_first_call_and_the_reply_is_read(project: Project) -> None:
    with ScriptedJudge(as_asked) as judge:
        run = run_with(project, judge.url, "on")
    assert (run.judgements.get().score, run.calls) == (8, 1)
    schema = judge.requests[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["verdict"] == {"type": "number", "minimum": 1, "maximum": 10}


def test_a_reply_that_is_only_a_tool_call_is_read(project: Project) -> None:
    with ScriptedJudge(as_asked) as judge:
        run = run_with(project, judge.url, "on", structured="tool")
    judgement = run.judgements.get()
    assert (judgement.score, '"form":"json"' in judgement.verdicts) == (8, True)


def test_a_server_that_refuses_it_is_asked_without_and_this_is_remembered_and_said(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    with ScriptedJudge("[[7]]", refuses=frozenset({"response_format"})) as judge:
        run = run_with(project, judge.url, "on")
    assert (run.judgements.get().score, len(judge.requests)) == (7, 2)
    assert project.endpoints.get().rejected_params == ["response_format"]
    page = client_of(alice).get(reverse("runs:detail", args=(project.slug, run.pk))).content.decode()
    assert "The server refused it, so the judge is asked without it." in page


def test_a_server_that_does_not_say_what_it_refuses_is_asked_without_it(project: Project) -> None:
    with ScriptedJudge("[[7]]", refuses=frozenset({"response_format"}), terse=True) as judge:
        run = run_with(project, judge.url, "on")
    assert run.judgements.get().score == 7
    assert "response_format" in project.endpoints.get().rejected_params


def test_auto_asks_for_none_of_a_server_that_was_not_tested(project: Project) -> None:
    with ScriptedJudge("[[7]]") as judge:
        run_with(project, judge.url, "auto")
    assert "response_format" not in judge.requests[0].body
