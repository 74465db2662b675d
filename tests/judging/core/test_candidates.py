"""The request sent to a candidate model for a row, and how its reply is stored."""

from __future__ import annotations

from typing import Any

import pytest

from datasets.core.variables import row_data
from judging.core.candidates import CandidateModel, answer_of, build_request, flags_of
from judging.core.judges.reply import Reply, Usage
from judging.core.judges.settings import JudgeSettings, Request

SETTINGS = JudgeSettings(url="http://127.0.0.1:9/v1", model="qwen")


def sent(row: str, number: int = 1, form: Any = "infer_and_judge", **candidate: Any) -> Request:
    model = CandidateModel(name="qwen", url=SETTINGS.url, model="qwen", **candidate)
    return build_request(SETTINGS, model, row_data(row, form), number)


def found(row: str, **more: Any) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in sent(row, **more)["messages"]]


def reply(content: str = "", **more: Any) -> Reply:
    found = {"reasoning_content": None, "tool_calls": None, "finish_reason": "stop", "model": None, **more}
    return Reply(
        content, usage=Usage(), seconds=1, first_token_seconds=None, status=200, streamed=True, **found
    )


TURNS = (
    '{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},'
    '{"role":"user","content":[{"type":"text","text":"3"},{"type":"text","text":"4"}]}%s]}'
)


def test_all_turns_are_sent_in_order_with_parts_joined() -> None:
    assert found(TURNS % "") == [("user", "1"), ("assistant", "2"), ("user", "34")]


def test_the_expected_answer_is_left_out() -> None:
    assert found(TURNS % ',{"role":"assistant","content":"gt"}') == found(TURNS % "")


def test_a_legacy_conversation_is_asked_up_to_its_last_response() -> None:
    row = (
        '{"system":"Be brief.","conversation":[{"prompt":"a","response":"b"},{"prompt":"c","response":"d"}]}'
    )
    asked = [("system", "Be brief."), ("user", "a"), ("assistant", "b"), ("user", "c")]
    assert found(row, form="legacy_jsonl") == asked


def test_the_candidates_system_prompt_comes_first() -> None:
    assert found(TURNS % "", system_prompt="Be kind.")[0] == ("system", "Be kind.")


def test_a_rows_own_system_message_goes_before_the_candidates() -> None:
    row = '{"messages":[{"role":"system","content":"row"},{"role":"user","content":"q"}]}'
    assert found(row, system_prompt="all") == [("system", "row"), ("user", "q")]


def test_tool_calls_are_sent_as_they_are_and_unknown_keys_are_not() -> None:
    row = (
        '{"messages":[{"role":"user","content":"q","id":9},{"role":"assistant","content":null,"tool_calls":[{"id":"x"}]},'
        '{"role":"tool","content":"42","tool_call_id":"x"}]}'
    )
    assert sent(row)["messages"] == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
        {"role": "tool", "content": "42", "tool_call_id": "x"},
    ]


def test_a_rows_generation_parameters_override_the_candidates() -> None:
    row = '{"messages":[{"role":"user","content":"q"}],"temperature":0.9,"stop":["x"],"top_p":null,"level":3}'
    request = sent(row, params={"temperature": 0.1, "top_p": 0.5})
    assert (request["temperature"], request["stop"], request["top_p"]) == (0.9, ["x"], 0.5)
    assert "level" not in request


def test_numbers_in_a_csv_are_sent_as_numbers() -> None:
    request = sent('{"prompt":"q","response":"","temperature":"0.5","max_tokens":""}', form="legacy_csv")
    assert request["temperature"] == 0.5
    assert "max_tokens" not in request


@pytest.mark.parametrize("cell", ["NaN", "Infinity", "true", "null", "hot"])
def test_a_cell_of_a_csv_that_is_no_number_is_sent_as_it_is(cell: str) -> None:
    row = f'{{"prompt":"q","response":"","temperature":"{cell}"}}'
    assert sent(row, form="legacy_csv")["temperature"] == cell


def test_a_parameter_replaces_neither_model_nor_messages() -> None:
    request = sent(TURNS % "", params={"model": "other", "messages": []})
    assert (request["model"], len(request["messages"])) == ("qwen", 3)


def test_each_of_several_answers_has_a_seed_of_its_own() -> None:
    assert [sent(TURNS % "", number=n, params={"seed": 7})["seed"] for n in (1, 2, 3)] == [7, 8, 9]
    assert "seed" not in sent(TURNS % "", number=2)


def test_it_is_asked_to_stream() -> None:
    assert sent(TURNS % "")["stream"] is True


def test_an_answer_is_kept_like_an_uploaded_one() -> None:
    assert answer_of(reply("Yes.", reasoning_content="Hm.")) == {
        "content": "Yes.",
        "reasoning_content": "Hm.",
    }


def test_an_answer_of_tool_calls_alone_has_no_content() -> None:
    calls = [{"function": {"name": "f"}}]
    assert answer_of(reply(tool_calls=calls)) == {"content": None, "tool_calls": calls}


@pytest.mark.parametrize(
    ("kept", "flags"),
    [
        (reply("Yes."), ()),
        (reply(" "), ("answer_empty",)),
        (reply("Ye", finish_reason="length"), ("answer_truncated",)),
        (reply("", finish_reason="length"), ("answer_empty", "answer_truncated")),
        (reply("", tool_calls=[{"id": "x"}]), ()),
    ],
)
def test_empty_and_truncated_answers_are_answers_with_a_flag(kept: Reply, flags: tuple[str, ...]) -> None:
    assert flags_of(answer_of(kept)) == flags


def test_a_candidate_reads_back_as_it_was_written() -> None:
    model = CandidateModel(name="a", endpoint=3, params={"seed": 1}, n=4)
    assert CandidateModel.from_json(model.to_json()) == model
