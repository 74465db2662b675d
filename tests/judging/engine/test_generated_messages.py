"""Requests to candidate models for rows of every format: upload, start on the page, real run worker over HTTP."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from datasets.importing.worker import import_version
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.endpoints.models import Endpoint
from judging.metrics.services import metric_create
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric

pytestmark = pytest.mark.django_db(transaction=True)

Messages = list[dict[str, Any]]
Sent = Callable[..., list[dict[str, Any]]]


def said(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def jsonl(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def sent(project: Project, alice: User, client_of: ClientOf) -> Sent:
    """Return a function that uploads a file, runs it from the page, and returns the requests the candidate received."""

    def asks(file: bytes, name: str = "rows.jsonl", **asked: object) -> list[dict[str, Any]]:
        made = dataset_upload(project=project, name="rows", file=io.BytesIO(file), file_name=name, user=alice)
        import_version(made.pk)
        version = Version.objects.get(pk=made.pk)
        assert version.valid_rows == version.rows
        with ScriptedJudge(lambda asked: "[[5]]" if judges(asked) else Answer(content="fine")) as server:
            endpoint = Endpoint.objects.create(project=project, name="gamma", url=server.url, model="m")
            metric = metric_create(project=project, definition=a_metric(server.url), user=alice)
            form = {
                "version": version.pk,
                "metrics": [metric.versions.get().pk],
                "name": "run",
                "asked-TOTAL_FORMS": 1,
                "asked-INITIAL_FORMS": 0,
                "asked-0-endpoint": endpoint.pk,
                **{f"asked-0-{key}": value for key, value in asked.items()},
            }
            assert client_of(alice).post("/p/physics/runs/new/", form).status_code == 302
            run = work(Run.objects.get())
            assert run.scored == run.total > 0
            return [one.body for one in server.requests if not judges(one)]

    return asks


def judges(asked: Received) -> bool:
    return asked.prompt.startswith("Q: ")


def only_messages(bodies: list[dict[str, Any]]) -> Messages:
    (body,) = bodies
    found: Messages = body["messages"]
    return found


def test_the_expected_answer_is_left_out(sent: Sent) -> None:
    row = {"messages": [said("user", "2+2?"), said("assistant", "4")], "ref_answer": "4"}
    assert only_messages(sent(jsonl(row))) == [said("user", "2+2?")]


def test_a_conversation_is_sent_in_order_up_to_its_last_question(sent: Sent) -> None:
    turns = [said("user", "Hi"), said("assistant", "Hello"), said("user", "2+2?")]
    row = {"messages": [said("system", "Be brief."), *turns, said("assistant", "4")]}
    assert only_messages(sent(jsonl(row))) == [said("system", "Be brief."), *turns]


def test_tool_calls_and_their_results_are_sent_along(sent: Sent) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    turns = [
        said("user", "2+2?"),
        said("assistant", None, tool_calls=[call]),
        said("tool", "4", tool_call_id="c1"),
    ]
    assert only_messages(sent(jsonl({"messages": [*turns, said("user", "Sure?")]}))) == [
        *turns,
        said("user", "Sure?"),
    ]


def test_a_legacy_conversation_is_asked_without_its_last_response(sent: Sent) -> None:
    row = {
        "system": "Be brief.",
        "conversation": [{"prompt": "Hi", "response": "Hello"}, {"prompt": "2+2?", "response": "4"}],
    }
    assert only_messages(sent(jsonl(row))) == [
        said("system", "Be brief."),
        said("user", "Hi"),
        said("assistant", "Hello"),
        said("user", "2+2?"),
    ]


def test_a_legacy_table_is_asked_with_its_system_text_and_numbers_as_numbers(sent: Sent) -> None:
    table = b"System,Prompt,Response,max_tokens\nBe brief.,2+2?,4,7\n"
    (body,) = sent(table, "rows.csv")
    assert body["messages"] == [said("system", "Be brief."), said("user", "2+2?")]
    assert body["max_tokens"] == 7


def test_a_system_prompt_comes_first_but_not_before_the_rows_own(sent: Sent) -> None:
    rows = jsonl(
        {"messages": [said("user", "2+2?")]}, {"messages": [said("system", "Brief."), said("user", "3+3?")]}
    )
    bodies = sent(rows, system_prompt="You add.")
    assert sorted(body["messages"][0]["content"] for body in bodies) == ["Brief.", "You add."]
    assert sorted(len(body["messages"]) for body in bodies) == [2, 2]


def test_a_rows_parameters_go_before_the_candidates(sent: Sent) -> None:
    row = {"messages": [said("user", "2+2?")], "temperature": 0.1, "stop": ["."], "top_k": 4}
    (body,) = sent(jsonl(row), params='{"temperature": 0.9, "max_tokens": 50}')
    assert [body[name] for name in ("temperature", "stop", "top_k", "max_tokens")] == [0.1, ["."], 4, 50]


def test_each_answer_to_a_row_has_a_seed_of_its_own(sent: Sent) -> None:
    row = {"messages": [said("user", "2+2?")], "seed": 7}
    assert sorted(body["seed"] for body in sent(jsonl(row), n=3)) == [7, 8, 9]
