"""Misspelt roles and keys: suggestions for both, corrections for roles."""

import json
from typing import Any

import pytest

from datasets.core.row_repairs import with_roles
from datasets.core.spelling import is_misspelling, misspelt_keys, misspelt_top_keys, role_meant
from tests.datasets.core.helpers import ANSWER, USER, codes, found, jsonl, judged, row, summary, turns


@pytest.mark.parametrize(
    ("role", "meant"),
    [
        ("asistant", "assistant"),
        ("assistnat", "assistant"),
        ("Assistant", "assistant"),
        ("USER", "user"),
        ("usre", "user"),
        ("sytem", "system"),
        ("tools", "tool"),
        ("user ", "user"),
    ],
)
def test_a_role_with_up_to_two_wrong_letters_is_a_misspelling(role: str, meant: str) -> None:
    assert role_meant(role) == meant


@pytest.mark.parametrize(
    "role", ["bot", "human", "model", "ai", "gpt", "function", "developer", "", "a" * 99]
)
def test_other_names_for_roles_are_no_misspellings(role: str) -> None:
    assert role_meant(role) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mesages", "messages"),
        ("message", "messages"),
        ("Messages", "messages"),
        ("model_output", "model_outputs"),
        ("respones", "responses"),
        ("ref_anwser", "ref_answer"),
        ("rol", "role"),
        ("rloe", "role"),
    ],
)
def test_a_key_that_is_nearly_a_known_one_is_a_misspelling(name: str, known: str) -> None:
    assert is_misspelling(name, known)


@pytest.mark.parametrize(
    ("name", "known"), [("note", "role"), ("messages", "messages"), ("answer", "ref_answer")]
)
def test_a_key_that_means_something_else_is_none(name: str, known: str) -> None:
    assert not is_misspelling(name, known)


def said(role: str) -> dict[str, Any]:
    return row(messages=[USER, {"role": role, "content": "Four."}])


def test_a_misspelt_role_names_the_role_that_was_meant_and_its_repair() -> None:
    (one,) = found(jsonl(said("Asistant")), "role.unknown")
    assert (one.params, one.repair) == ({"met": "Asistant", "meant": "assistant"}, "fix_role")


def test_a_role_that_is_like_none_has_no_repair() -> None:
    (one,) = found(jsonl(said("bot")), "role.unknown")
    assert (one.params, one.repair) == ({"met": "bot"}, None)


MISSPELT: list[tuple[Any, str, str, str]] = [
    ({"mesages": [USER]}, "messages.missing", "mesages", "messages"),
    ({"messages": [{"rol": "user", "content": "?"}]}, "role.missing", "rol", "role"),
    ({"messages": [{"role": "user", "contnet": "?"}]}, "content.missing", "contnet", "content"),
    (
        {"messages": [USER], "model_output": [ANSWER]},
        "model_outputs.missing",
        "model_output",
        "model_outputs",
    ),
    (
        judged(model_outputs=[{"model_nam": "a", "responses": [{"content": "4"}]}]),
        "model_name.missing",
        "model_nam",
        "model_name",
    ),
    (
        judged(model_outputs=[{"model_name": "a", "respones": [{"content": "4"}]}]),
        "responses.missing",
        "respones",
        "responses",
    ),
    (
        judged(model_outputs=[{"model_name": "a", "responses": [{"contents": "4"}]}]),
        "response.content_missing",
        "contents",
        "content",
    ),
]


@pytest.mark.parametrize(("wrong", "code", "near", "meant"), MISSPELT)
@pytest.mark.parametrize("filler", ["", "x" * 60_000])
def test_a_missing_key_names_the_misspelt_key(
    wrong: dict[str, Any], code: str, near: str, meant: str, filler: str
) -> None:
    (one,) = found(jsonl(judged(id=1), judged(id=2), wrong | {"filler": filler}), code)
    assert (one.params, one.repair) == ({"near": near, "meant": meant}, "rename_key")


def test_a_missing_half_of_a_turn_does_too() -> None:
    source = jsonl(turns(), {"conversation": [{"promt": "?", "Response": "4"}]})
    assert [one.params["near"] for one in summary(source).findings if "near" in one.params] == [
        "promt",
        "Response",
    ]


def test_a_known_key_is_no_misspelling_of_another() -> None:
    (one,) = found(
        jsonl(judged(), judged(model_outputs=[{"model_name": "a", "messages": []}])), "responses.missing"
    )
    assert one.params == {}


@pytest.mark.parametrize(
    ("source", "near", "meant"),
    [
        (jsonl({"mesages": [USER]}, {"mesages": [USER]}), "mesages", "messages"),
        (jsonl({"conversations": []}), "conversations", "conversation"),
        (b"promt,respons\na,b\n", "promt", "prompt"),
    ],
)
def test_a_file_of_no_format_names_the_key_that_was_meant(source: bytes, near: str, meant: str) -> None:
    (one,) = found(source, "file.unknown_format")
    assert (one.params["near"], one.params["meant"]) == (near, meant)


@pytest.mark.parametrize(
    ("wrong", "repair"),
    [
        ({"mesages": [USER], "ref_anwser": "4"}, "rename_key"),
        ({"mesages": "How many?"}, "rename_key"),
        ({"conversatoin": [{"promt": "?", "response": "4"}]}, "rename_key"),
        ({"conversations": [{"from": "human", "value": "?"}]}, None),
        ({"mesages": [1, 2]}, None),
        ({"question": "?", "ref_anwser": "4"}, None),
    ],
)
def test_a_key_that_every_row_misspells_is_renamed_if_its_value_fits(
    wrong: dict[str, Any], repair: str | None
) -> None:
    (one,) = found(jsonl(wrong, wrong), "file.unknown_format")
    assert one.repair == repair


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({"mesages": [USER], "messages": [USER]}, {}),
        ({"messages": [USER], "model_output": "a text"}, {}),
        ({"messages": [USER], "model_output": {"lark": "4"}}, {"model_output": "model_outputs"}),
        ({"messages": [USER], "sytem": "Be kind."}, {}),
        (turns(sytem="Be kind.", ref_answr=None), {"sytem": "system", "ref_answr": "ref_answer"}),
        ({"ref_anwser": "4"}, {}),
    ],
)
def test_only_keys_of_a_rows_own_family_are_misspelt(row: dict[str, Any], keys: dict[str, str]) -> None:
    assert misspelt_top_keys(row) == keys


def test_keys_inside_lists_are_found_with_their_place() -> None:
    wrong = {
        "mesages": [{"rol": "user", "contnet": "?"}],
        "model_outputs": [{"respones": [{"contents": "4"}]}],
    }
    assert list(misspelt_keys(wrong)) == [
        ((), "mesages", "messages"),
        (("mesages", 0), "rol", "role"),
        (("mesages", 0), "contnet", "content"),
        (("model_outputs", 0), "respones", "responses"),
        (("model_outputs", 0, "respones", 0), "contents", "content"),
    ]


def test_a_message_that_calls_tools_needs_no_content() -> None:
    calls = {"role": "assistant", "tool_calls": [{}], "contents": "?"}
    assert list(misspelt_keys({"messages": [USER, calls]})) == []


def test_a_csvs_missing_column_names_the_one_that_was_meant() -> None:
    (one,) = found(b"prompt,Respones\na,b\n", "csv.header")
    assert (one.line, one.params["near"], one.params["meant"]) == (1, "Respones", "response")


def test_a_misspelt_reference_is_named_where_some_rows_have_one() -> None:
    (one,) = found(jsonl(row(ref_answer="4"), row(ref_anwser="4")), "ref_answer.some_missing")
    assert (one.params["near"], one.params["meant"], one.repair) == ("ref_anwser", "ref_answer", "rename_key")


@pytest.mark.parametrize(
    ("fields", "meant"),
    [({"ref_anwser": 4}, "ref_answer"), ({"model_output": [ANSWER]}, "model_outputs")],
)
def test_an_optional_key_that_every_row_misspells_is_a_warning(fields: dict[str, Any], meant: str) -> None:
    (one,) = summary(jsonl(row(**fields))).findings
    assert (one.code, one.severity, one.line, one.path) == (
        "field.misspelt",
        "warning",
        None,
        next(iter(fields)),
    )
    assert one.params == {"near": next(iter(fields)), "meant": meant, "rows": 1}
    assert one.repair == "rename_key"


def test_a_field_that_no_row_can_rename_is_offered_no_repair() -> None:
    (one,) = found(jsonl(row(model_output="x"), row(id=1, model_output=["x"])), "field.misspelt")
    assert one.repair is None


def test_an_optional_key_that_is_there_makes_others_fields() -> None:
    assert codes(jsonl(row(ref_answer=1, ref_answers=[1]))) == {}


def test_correcting_roles_leaves_everything_else_as_it_is() -> None:
    text = '{ "messages":[{"role" : "Usre","content":"\\u0061"} , {"role":"bot"}, 7], "role": "usre"}'
    assert with_roles(text) == text.replace('"Usre"', '"user"')
    assert json.loads(with_roles(text))["messages"][1]["role"] == "bot"
