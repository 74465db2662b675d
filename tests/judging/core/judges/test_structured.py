"""Structured output: the schema of each kind, what is sent in each form, and the proof that a server honours it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from judging.core.judges.probe import probe
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.core.judges.settings import JudgeSettings, build_request
from judging.core.judges.structured import described, parameters, schema_of
from judging.core.metric_definition import JudgeModel, MetricDefinition, Structured
from judging.core.reading.gives import Gives
from judging.core.structured_output import structure_for
from tests.make import with_scripts

SCORE = Gives("score", min_score=1, max_score=5)
TEAL = json.dumps({"colour": "teal"})


@pytest.mark.parametrize(
    ("gives", "verdict"),
    [
        (SCORE, {"type": "number", "minimum": 1, "maximum": 5}),
        (Gives("score", whole=True), {"type": "integer", "minimum": 1, "maximum": 10}),
        (Gives("pass_fail"), {"type": "string", "enum": ["PASS", "FAIL"]}),
        (Gives("category", labels=("a", "b")), {"type": "string", "enum": ["a", "b"]}),
        (Gives("comparison"), {"type": "string", "enum": ["A>>B", "A>B", "A=B", "B>A", "B>>A"]}),
    ],
)
def test_the_schema_has_the_reasoning_before_a_verdict_of_the_kind(gives: Gives, verdict: object) -> None:
    properties = schema_of(gives)["properties"]
    assert list(properties) == ["reasoning", "verdict"]
    assert properties["verdict"] == verdict


def test_only_a_server_without_schemas_is_told_the_keys_in_the_prompt() -> None:
    schema = schema_of(SCORE)
    assert described("p", "json_schema", schema) == described("p", "tool", schema) == "p"
    assert '"verdict": 1 … 5' in described("p", "json_object", schema)


def test_the_users_own_response_format_is_kept() -> None:
    own = JudgeSettings("http://x", "m", params={"response_format": {"type": "text"}})
    request = build_request(own, "p", parameters("json_schema", schema_of(SCORE)))
    assert request["response_format"] == {"type": "text"}


def test_a_server_that_refuses_tools_is_sent_no_choice_of_one() -> None:
    settings = JudgeSettings("http://x", "m", refuses=frozenset({"tools"}))
    request = build_request(settings, "p", parameters("tool", schema_of(SCORE)))
    assert not {"tools", "tool_choice"} & request.keys()


def found_form(reply: object, **server: object) -> str:
    with ScriptedJudge(reply, **server) as judge:  # type: ignore[arg-type]
        return asyncio.run(probe(JudgeSettings(judge.url, "m"))).structured


def honouring(mode: str) -> object:
    """A server that honours one form and ignores the others."""

    def reply(received: Received) -> Answer:
        form = received.body.get("response_format", {}).get("type")
        if mode == "tool" and "tools" in received.body:
            return Answer(None, arguments=TEAL)
        if form == mode:
            return Answer(TEAL if mode == "json_schema" else '{"answer": "OK"}')
        return Answer("OK")

    return reply


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "tool"])
def test_the_test_finds_the_form_that_the_server_honours(mode: str) -> None:
    assert found_form(honouring(mode)) == mode


def test_a_server_that_accepts_a_schema_and_ignores_it_honours_none() -> None:
    assert found_form("OK") == "none"


def test_a_server_that_refuses_schemas_is_still_asked_for_a_tool_call() -> None:
    assert found_form(honouring("tool"), refuses=frozenset({"response_format"})) == "tool"


def test_a_server_that_fails_meanwhile_was_not_tested() -> None:
    answers = ["OK", Answer(status=500, body=b"down")]
    assert found_form(answers) == ""


def metric(structured: Structured, template: str = "{{ answer_format }}", **more: Any) -> MetricDefinition:
    judge = JudgeModel(
        name="j", template=template, **{key: more.pop(key) for key in ("parse",) if key in more}
    )
    return MetricDefinition(name="m", structured=structured, judges=(judge,), **with_scripts(more))


@pytest.mark.parametrize(
    ("definition", "honoured", "mode"),
    [
        (metric("off"), "json_schema", None),
        (metric("auto"), "json_schema", "json_schema"),
        (metric("auto"), "tool", "tool"),
        (metric("auto"), "", None),
        (metric("auto"), "none", None),
        (metric("auto", "End with [[n]]."), "json_schema", None),
        (metric("auto", postprocess="def postprocess(): ..."), "json_schema", None),
        (metric("auto", parse={"regex": "(.)"}), "json_schema", None),
        (metric("on", "End with [[n]]."), "", "json_schema"),
        (metric("on"), "json_object", "json_object"),
        (metric("on"), "none", None),
        (metric("on", rules="x"), "json_schema", None),
    ],
)
def test_when_a_judge_is_asked_for_structured_output(
    definition: MetricDefinition, honoured: str, mode: str | None
) -> None:
    structure = structure_for(definition, definition.judges[0], honoured)
    assert (structure.mode if structure else None) == mode
