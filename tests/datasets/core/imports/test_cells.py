"""What a table's mapping leaves out: columns, parts of objects, and keys inside cells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasets.core.imports.cells import unused_columns
from tests.datasets.core.imports.tabular import Taken, taken

MESSAGE = {"role": "assistant", "content": "A", "refusal": "none"}
LOG = {
    "request": {"messages": [{"role": "user", "content": "Q", "weight": 1}], "seed": 7},
    "response": {"choices": [{"index": 1, "message": MESSAGE}], "id": "r"},
}


def unread(found: Taken) -> list[str]:
    return sorted(detail for code, _line, detail in found.left_out if code == "key_unread")


def record(**values: Any) -> str:
    return json.dumps({"question": "Q", **values})


@pytest.mark.parametrize(
    ("used", "unused"),
    [
        (["a", "b"], []),
        (["a.b", "b"], ["a.c"]),
        (["a.c.d"], ["b", "a.b", "a.c.e"]),
        ([], ["a", "b"]),
    ],
)
def test_the_parts_beside_a_used_part_are_unused(used: list[str], unused: list[str]) -> None:
    names = ["a", "b", "a.b", "a.c", "a.c.d", "a.c.e"]
    assert unused_columns(names, used) == unused


def test_a_dot_in_a_name_of_its_own_is_no_part() -> None:
    assert unused_columns(["a.b", "c"], ["c"]) == ["a.b"]


def test_a_column_that_is_no_field_is_listed_with_its_number_of_cells() -> None:
    found = taken("question,topic,note\nq,t,x\nr,,x\n", columns="question=question,field:note=note")
    assert found.left_out == [("key_unread", 2, "topic × 1")]


def test_the_other_parts_of_an_object_are_listed() -> None:
    found = taken(json.dumps(LOG))
    assert found.answers == [{"response.choices.message.content": ["A"]}]
    assert unread(found) == [
        "request.messages[].weight × 1",
        "request.seed × 1",
        "response.choices.index × 1",
        "response.choices.message.refusal × 1",
        "response.choices.message.role × 1",
        "response.id × 1",
    ]


def test_each_choice_of_a_response_is_an_answer() -> None:
    choices = [{"message": {"content": text}} for text in ("A", "B")]
    found = taken(record(response={"choices": choices}))
    assert found.answers == [{"response.choices.message.content": ["A", "B"]}]


def test_what_is_beside_the_text_of_an_answer_is_taken_or_listed() -> None:
    found = taken(record(answer={"content": "A", "reasoning_content": "R", "tokens": 3}))
    (response,) = found.rows[0]["model_outputs"][0]["responses"]
    assert (response, unread(found)) == ({"content": "A", "reasoning_content": "R"}, ["answer.tokens × 1"])


def test_what_is_beside_the_text_of_outputs_is_listed() -> None:
    found = taken(record(outputs=[{"model": "a", "answer": "A", "cost": 1}]))
    assert (found.answers, unread(found)) == ([{"a": ["A"]}], ["outputs[].cost × 1"])


def test_the_last_reply_keeps_its_calls_and_reasoning() -> None:
    calls = [{"id": "1", "function": {"name": "f"}}]
    reply = {"role": "assistant", "content": None, "reasoning_content": "R", "tool_calls": calls}
    given = json.dumps({"chat": [{"role": "user", "content": "Q"}, reply], "n": 1})
    found = taken(given, columns="messages=chat,answer:m=chat")
    (response,) = found.rows[0]["model_outputs"][0]["responses"]
    assert response == {"content": "", "reasoning_content": "R", "tool_calls": calls}
    assert unread(found) == []


def test_an_object_that_becomes_a_field_is_whole() -> None:
    found = taken(record(answer="A", about={"level": {"of": "school"}}))
    assert (found.field("about"), unread(found)) == ([{"level": {"of": "school"}}], [])
