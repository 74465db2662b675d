"""Row and response variables available to templates and scripts."""

import json
from typing import Any

import pytest

from datasets.core.formats import Format
from datasets.core.variables import reference_data, reference_in, response_data, row_and_response, row_data
from tests.datasets.core.helpers import rows, turns


def data(*messages: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    listed = [{"role": role, "content": content} for role, content in messages]
    return row_data(json.dumps({"messages": listed, **fields}), "infer_and_judge")


@pytest.mark.parametrize(
    ("messages", "question", "gt", "history"),
    [
        ([("user", "q")], "q", None, None),
        ([("user", "q"), ("assistant", "a")], "q", "a", None),
        ([("system", "s"), ("user", "q")], "q", None, "[SYSTEM] s"),
        (
            [("user", "q1"), ("assistant", "a1"), ("user", "q2"), ("assistant", "a2")],
            *("q2", "a2", "[USER] q1\n[BOT] a1"),
        ),
        ([("user", "q"), ("assistant", "a"), ("tool", "t")], "q", None, "[BOT] a\n[TOOL] t"),
    ],
)
def test_question_reference_and_history_are_computed(
    messages: list[tuple[str, str]], question: str, gt: str | None, history: str | None
) -> None:
    seen = data(*messages)
    assert (seen["question"], seen["gt"], seen["history"]) == (question, gt, history)


def test_a_computed_value_wins_over_a_field_of_its_name() -> None:
    assert data(("user", "q"), gt="mine", history=1)["gt"] is None


def test_custom_fields_are_kept_exactly_and_in_order() -> None:
    text = '{"z": 12345678901234567890123, "messages": [{"role": "user", "content": "q"}], "a": {"y": 1, "b": 2}}'
    seen = row_data(text, "infer_and_judge")
    assert seen["z"] == 12345678901234567890123
    assert [key for key in seen if key in "za"] == ["z", "a"]
    assert list(seen["a"]) == ["y", "b"]


def test_the_reference_is_none_when_absent_and_any_value_when_there() -> None:
    assert data(("user", "q"))["ref_answer"] is None
    assert data(("user", "q"), ref_answer={"a": [1]})["ref_answer"] == {"a": [1]}


def test_parts_are_joined_and_null_is_read_as_nothing() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    text = json.dumps({"messages": [{"role": "user", "content": parts}, call]})
    seen = row_data(text, "infer_and_judge")
    assert [message["content"] for message in seen["messages"]] == ["ab", ""]
    assert (seen["question"], seen["gt"]) == ("ab", "")


def test_answers_of_candidates_are_no_part_of_the_data() -> None:
    assert "model_outputs" not in data(("user", "q"), model_outputs=[1])


LEGACY_ROW = turns(system="s", id=1)
LEGACY_CSV = b"id,prompt,response,system\n1,How many?,Four.,s\n"


@pytest.mark.parametrize(
    ("source", "fmt"), [(json.dumps(LEGACY_ROW).encode(), "legacy_jsonl"), (LEGACY_CSV, "legacy_csv")]
)
def test_a_legacy_row_becomes_messages(source: bytes, fmt: Format) -> None:
    (only,) = rows(source)
    seen = row_data(only.data, fmt)
    assert (seen["question"], seen["gt"], seen["history"]) == ("How many?", "Four.", "[SYSTEM] s")
    assert set(seen) == {"messages", "id", "ref_answer", "question", "gt", "history"}


def test_a_blank_system_text_is_no_message() -> None:
    assert row_data(json.dumps(turns(system=" ")), "legacy_jsonl")["history"] is None


def test_a_response_has_its_three_names_always() -> None:
    assert response_data('{"content": null, "x": 1}') == {
        "content": "",
        "reasoning_content": None,
        "tool_calls": None,
        "x": 1,
    }


@pytest.mark.parametrize(
    "fields", [{}, {"ref_answer": None}, {"ref_answer": ""}, {"ref_answer": 0}, {"ref_answer": {"a": 1}}]
)
def test_the_reference_alone_is_that_of_the_data(fields: dict[str, object]) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "g"}]
    text = json.dumps({"messages": messages, **fields})
    seen, alone = row_data(text, "judge_only"), reference_data(text, "judge_only", json.loads)
    assert reference_in(alone) == reference_in(seen)


OWN = [{"role": "user", "content": "q1"}, {"role": "assistant", "content": "mine"}]


def test_messages_and_history_are_those_of_the_response_and_the_rest_is_the_rows() -> None:
    turns = [{"prompt": "q1", "response": "theirs"}, {"prompt": "q2", "response": "reference"}]
    row = row_data(json.dumps({"conversation": turns, "ref_answer": 7}), "legacy_jsonl")
    data, _ = row_and_response(row, json.dumps({"content": "a", "earlier_messages": OWN}))
    assert data["messages"] == [*OWN, *row["messages"][2:]]
    assert data["history"] == "[USER] q1\n[BOT] mine"
    assert (data["question"], data["gt"], data["ref_answer"]) == ("q2", "reference", 7)
    assert row["history"] == "[USER] q1\n[BOT] theirs"


@pytest.mark.parametrize("own", [None, "x", [1], [{"role": [], "content": "x"}], [{"role": "user"}]])
def test_a_response_without_readable_earlier_turns_has_the_rows_conversation(own: object) -> None:
    row = row_data(json.dumps({"messages": [{"role": "user", "content": "q"}]}), "judge_only")
    data, _ = row_and_response(row, json.dumps({"content": "a", "earlier_messages": own}))
    assert data is row


@pytest.mark.parametrize("given", [0, 0.0, False, "0", [], {}, {"a": None}])
def test_zero_false_and_empty_values_are_references(given: object) -> None:
    assert reference_in({"ref_answer": given, "gt": "b"}) is given


@pytest.mark.parametrize("none", [{}, {"ref_answer": None}, {"ref_answer": ""}, {"ref_answer": " \n\u3000"}])
def test_an_absent_or_blank_reference_is_none_and_gt_takes_its_place(none: dict[str, object]) -> None:
    assert reference_in(none | {"gt": "b"}) == "b"
    assert reference_in(none | {"gt": " "}) is None
