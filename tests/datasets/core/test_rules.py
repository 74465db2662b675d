"""One faulty row at a time: the code and path of its only finding."""

import json
from typing import Any

import pytest

from datasets.core.findings import CODES
from tests.datasets.core.helpers import ANSWER, USER, codes, found, jsonl, judged, row, summary, turns

BOT = {"role": "assistant", "content": "Four."}
SYSTEM = {"role": "system", "content": "Be brief."}
CALL = [{"id": "1", "type": "function", "function": {"name": "count", "arguments": "{}"}}]
OTHER = {"role": "user", "content": "How few?"}


def message(**fields: Any) -> dict[str, Any]:
    return row(messages=[OTHER, BOT, fields])


def output(**fields: Any) -> dict[str, Any]:
    return judged(messages=[OTHER], model_outputs=[ANSWER, fields])


def response(value: Any) -> dict[str, Any]:
    return judged(messages=[OTHER], model_outputs=[{"model_name": "lark", "responses": [value]}])


def turn(value: Any) -> dict[str, Any]:
    return {"conversation": [value]}


MESSAGES = [
    ({"id": 7}, "messages.missing", "messages"),
    (row(messages={}), "messages.not_list", "messages"),
    (row(messages=[]), "messages.empty", "messages"),
    (row(messages=[OTHER, "hi"]), "message.not_object", "messages[1]"),
    (message(content="hi"), "role.missing", "messages[2].role"),
    (message(role="bot", content="hi"), "role.unknown", "messages[2].role"),
    (message(role=1, content="hi"), "role.unknown", "messages[2].role"),
    (message(role="user"), "content.missing", "messages[2].content"),
    (message(role="user", content=None), "content.not_text", "messages[2].content"),
    (message(role="user", content=[{"type": "image_url"}]), "content.not_text", "messages[2].content"),
    (message(role="user", content=" \n"), "content.blank", "messages[2].content"),
    (message(role="user", tool_calls=CALL), "content.missing", "messages[2].content"),
    (row(messages=[SYSTEM, BOT]), "messages.no_user", "messages"),
    (row(messages=[OTHER, SYSTEM]), "messages.system_not_first", "messages[1].role"),
    (row(messages=[OTHER, USER]), "messages.same_role_twice", "messages[1].role"),
    (judged(messages=[OTHER]), "file.mixed_formats", "model_outputs"),
    (turns(), "file.mixed_formats", "conversation"),
]
OUTPUTS = [
    (row(messages=[OTHER]), "model_outputs.missing", "model_outputs"),
    (judged(messages=[OTHER], model_outputs=None), "model_outputs.not_list", "model_outputs"),
    (judged(messages=[OTHER], model_outputs=[]), "model_outputs.empty", "model_outputs"),
    (judged(messages=[OTHER], model_outputs=[ANSWER, 1]), "model_output.not_object", "model_outputs[1]"),
    (output(responses=[{"content": "4"}]), "model_name.missing", "model_outputs[1].model_name"),
    (
        output(model_name=4, responses=[{"content": "4"}]),
        "model_name.not_text",
        "model_outputs[1].model_name",
    ),
    (output(model_name=" ", responses=[{"content": "4"}]), "model_name.blank", "model_outputs[1].model_name"),
    (output(**ANSWER), "model_name.twice_in_row", "model_outputs[1].model_name"),
    (output(model_name="wren"), "responses.missing", "model_outputs[1].responses"),
    (output(model_name="wren", responses="4"), "responses.not_list", "model_outputs[1].responses"),
    (output(model_name="wren", responses=[]), "responses.empty", "model_outputs[1].responses"),
    (response("4"), "response.not_object", "model_outputs[0].responses[0]"),
    (response({}), "response.content_missing", "model_outputs[0].responses[0].content"),
    (response({"content": None}), "response.content_not_text", "model_outputs[0].responses[0].content"),
    (response({"content": ""}), "response.blank", "model_outputs[0].responses[0].content"),
    (
        response({"content": "4", "reasoning_content": ["hm"]}),
        "response.reasoning_not_text",
        "model_outputs[0].responses[0].reasoning_content",
    ),
]
GUESS = {"criterion": "Names a dose", "points": 2}
RUBRICS = [
    (row(messages=[OTHER], rubric="Be brief"), "rubric.not_list", "rubric"),
    (
        row(messages=[OTHER], rubric=[GUESS, {"criterion": " "}]),
        "rubric.criterion_blank",
        "rubric[1].criterion",
    ),
    (row(messages=[OTHER], rubric=[GUESS, {"points": 1}]), "rubric.criterion_blank", "rubric[1]"),
    (
        row(messages=[OTHER], rubric=[GUESS, {"criterion": "b", "points": "3"}]),
        "rubric.points_not_number",
        "rubric[1].points",
    ),
    (row(messages=[OTHER], rubric=[GUESS, GUESS]), "rubric.duplicate", "rubric[1]"),
    (row(messages=[OTHER], rubric=[{"criterion": "a", "points": -1}]), "rubric.nothing_positive", "rubric"),
    (row(messages=[OTHER], rubric=[]), "rubric.nothing_positive", "rubric"),
    (
        row(
            messages=[OTHER],
            rubric=[GUESS, {"criterion": "g", "children": [{"criterion": "b", "weight": 0}]}],
        ),
        "rubric.nothing_positive",
        "rubric[1].children",
    ),
]
LEGACY = [
    ({"system": "x"}, "conversation.missing", "conversation"),
    ({"conversation": "x"}, "conversation.not_list", "conversation"),
    ({"conversation": []}, "conversation.empty", "conversation"),
    (turn("x"), "turn.not_object", "conversation[0]"),
    (turn({"response": "4"}), "prompt.missing", "conversation[0].prompt"),
    (turn({"prompt": 1, "response": "4"}), "prompt.not_text", "conversation[0].prompt"),
    (turn({"prompt": "", "response": "4"}), "prompt.blank", "conversation[0].prompt"),
    (turn({"prompt": "?"}), "turn.response_missing", "conversation[0].response"),
    (turn({"prompt": "?", "response": None}), "turn.response_not_text", "conversation[0].response"),
    (turn({"prompt": "?", "response": " "}), "response.blank", "conversation[0].response"),
    ({"conversation": [{"prompt": "?", "response": "4"}], "system": 1}, "system.not_text", "system"),
]


@pytest.mark.parametrize(
    ("good", "bad", "code", "path"),
    [(row(), *case) for case in MESSAGES + RUBRICS]
    + [(judged(), *case) for case in OUTPUTS]
    + [(turns(), *case) for case in LEGACY],
)
def test_a_fault_is_named_where_it_is(good: Any, bad: Any, code: str, path: str) -> None:
    # Ten good rows determine the format. Findings about duplicates or missing fields belong to the version.
    source = jsonl(*[good] * 10, bad)
    here = [(one.code, one.path) for one in summary(source).findings if one.line == 11]
    assert here == [(code, path)]
    assert summary(source).valid_rows == (11 if CODES[code].severity == "warning" else 10)


@pytest.mark.parametrize(
    "fine",
    [
        row(messages=[USER, {"role": "assistant", "content": None, "tool_calls": CALL}]),
        row(messages=[USER, {"role": "assistant", "tool_calls": CALL}]),
        row(
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "How"}, {"type": "text", "text": "?"}]}
            ]
        ),
        judged(model_outputs=[{"model_name": "lark", "responses": [{"content": None, "tool_calls": CALL}]}]),
        judged(
            model_outputs=[{"model_name": "lark", "responses": [{"content": "4", "reasoning_content": None}]}]
        ),
        turns(system=""),
        row(rubric=["Names a dose", {"criterion": "Is brief", "points": -0.5, "tags": ["style"], "id": "b"}]),
        row(rubric=None),
    ],
)
def test_what_the_formats_allow_is_not_reported(fine: Any) -> None:
    assert codes(jsonl(fine)) == {}


def test_all_findings_of_a_row_are_reported() -> None:
    bad = row(messages=[{"role": "bot"}, {"content": 1}], a=1)
    assert list(codes(jsonl(bad))) == ["role.unknown", "content.missing", "role.missing", "content.not_text"]


def test_counts_are_complete_when_the_list_is_cut() -> None:
    result = summary(jsonl(*[row(messages=[])] * 30), kept_per_code=4)
    kept = [one for one in result.findings if one.code == "messages.empty"]
    assert (result.counts["messages.empty"], len(kept)) == (30, 4)


def test_blank_lines_count_as_lines_but_not_as_rows() -> None:
    source = b"\n" + jsonl(row()) + b"  \r\n" + jsonl(row(messages=[]))
    assert summary(source).rows == 2
    assert found(source, "messages.empty")[0].line == 4


def test_the_column_counts_characters_of_the_line() -> None:
    text = '{"名": "值", "messages": []}'
    assert found(jsonl(text), "messages.empty")[0].column == text.index("[]") + 1


@pytest.mark.parametrize(
    ("member", "code", "path"),
    [
        ('"a": 1, "a": 2', "json.duplicate_key", "a"),
        ('"a": {"b c": {"x": 1, "x": 2}}', "json.duplicate_key", 'a["b c"].x'),
        ('"a": [0, "\\ud800"]', "json.lone_surrogate", "a[1]"),
        ('"a": "\\u0000"', "json.nul", "a"),
        ('"\\u0000": 1', "json.nul", '["\\u0000"]'),
    ],
)
def test_json_that_cannot_be_used_is_an_error_of_its_own(member: str, code: str, path: str) -> None:
    text = '{"messages": [{"role": "user", "content": "?"}], ' + member + "}"
    assert [(one.code, one.path) for one in summary(jsonl(text)).findings] == [(code, path)]
    assert summary(jsonl(text)).valid_rows == 0


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert codes(jsonl(json.dumps(row(face="😀"), ensure_ascii=True))) == {}


def test_texts_that_look_like_keys_are_none() -> None:
    tricky = row(a='{"a": 1, "a": 2}', b=':"x":', c="\\", **{'k"': 1, "k\\": 2})
    assert codes(jsonl(tricky)) == {}
