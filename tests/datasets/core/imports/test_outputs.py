"""Cells with the outputs of several models, and conversations whose last reply is an answer."""

import json
from typing import Any

import pytest

from datasets.core.imports.columns import guess, looks_of
from datasets.core.imports.outputs import outputs_in
from tests.datasets.core.imports.tabular import taken

OURS = [{"model_name": "a", "responses": [{"content": "x"}, {"content": "y"}]}]
SHAREGPT = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (OURS, ["a x", "a y"]),
        (json.dumps(OURS), ["a x", "a y"]),
        ({"a": "x", "b": ["y", {"content": "z"}]}, ["a x", "b y", "b z"]),
        ([{"model": "a", "output": "x"}, {"name": "b", "text": "y"}], ["a x", "b y"]),
        ({"model_name": "a", "responses": ["x"]}, ["a x"]),
        ({"text": "x"}, None),
        ({"a": 1}, None),
        ([{"model": "a"}], None),
        ([OURS[0], "x"], None),
        ([], None),
        ("[1", None),
        ("plain", None),
        (None, None),
    ],
)
def test_outputs_are_read_from_lists_and_objects_only(value: Any, texts: list[str] | None) -> None:
    outputs = outputs_in(value)
    assert texts == (outputs and [f"{model} {response['content']}" for model, response in outputs])


def test_reasoning_and_calls_stay_with_their_answer() -> None:
    entry = {"model": "a", "responses": [{"content": "x", "reasoning_content": "r", "tool_calls": [1]}]}
    assert outputs_in(entry) == [("a", {"content": "x", "reasoning_content": "r", "tool_calls": [1]})]


def test_a_column_of_outputs_gives_each_model_its_answers() -> None:
    rows = {"q": "1", "o": OURS}, {"q": "2", "o": {"b": "z"}}, {"q": "3", "o": 7}, {"q": "4"}
    found = taken(lines(*rows), "question=q,outputs=o")
    assert found.answers == [{"a": ["x", "y"]}, {"b": ["z"]}]
    assert found.left_out[:2] == [("outputs_unreadable", 3, "o"), ("no_answer", 4, "o")]


def test_outputs_are_guessed_by_their_name_if_all_values_are() -> None:
    names = ["question", "model_outputs"]
    assert guess(names, looks_of([{"question": "q", "model_outputs": OURS}])).outputs == "model_outputs"
    mixed = [{"question": "q", "model_outputs": OURS}, {"question": "q", "model_outputs": "x"}]
    assert guess(names, looks_of(mixed)).outputs == ""


def test_the_last_reply_of_a_conversation_may_be_the_answer_of_a_model() -> None:
    rows = {"c": [*SHAREGPT, *SHAREGPT]}, {"c": SHAREGPT[:1]}
    found = taken(lines(*rows), "messages=c,answer:gpt=c")
    assert [len(row["messages"]) for row in found.rows] == [3]
    assert found.answers == [{"gpt": ["a"]}]
    assert found.left_out == [("no_answer", 2, "gpt"), ("row_without_answer", 2, "")]


def test_a_reply_in_an_earlier_turn_is_no_answer() -> None:
    found = taken(lines({"c": [*SHAREGPT, SHAREGPT[0]]}), "messages=c,answer:gpt=c")
    assert (found.answers, len(found.rows[0]["messages"])) == ([{}], 3)


def test_a_column_may_name_the_models_of_conversations() -> None:
    rows = [{"c": SHAREGPT, "m": model} for model in ("a", "b")]
    assert taken(lines(*rows), "messages=c,answer=c,model=m").answers == [{"a": ["a"], "b": ["a"]}]
