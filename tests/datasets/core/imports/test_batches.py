"""Import of OpenAI batch requests and outputs, from several files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from datasets.core.imports.key_use import UNREAD
from datasets.core.imports.model import Options
from datasets.core.imports.registry import recognise
from datasets.core.imports.table import open_tables
from tests.datasets.core.imports.reading import files, lines, taken


def request(number: int, model: str = "gpt-4o-mini", **body: Any) -> dict[str, Any]:
    asked = {"messages": [{"role": "system", "content": "Brief."}, {"role": "user", "content": f"Q{number}"}]}
    whole = {"model": model, **(body or asked), "max_tokens": 1000}
    return {"custom_id": f"r-{number}", "method": "POST", "url": "/v1/chat/completions", "body": whole}


def answered(number: int, *texts: str, model: str = "gpt-4o-mini-2024-07-18") -> dict[str, Any]:
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for index, text in enumerate(texts)
    ]
    return response(number, {"object": "chat.completion", "model": model, "choices": choices, "usage": {}})


def response(number: int, body: dict[str, Any]) -> dict[str, Any]:
    whole = {"status_code": 200, "request_id": "req", "body": body}
    return {"id": "batch_req", "custom_id": f"r-{number}", "response": whole, "error": None}


def test_answers_are_with_what_was_asked_whatever_their_order(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        output__jsonl=lines(answered(2, "B"), answered(1, "A")),
        input__jsonl=lines(request(1), request(2)),
    )
    assert found.source == "table"
    assert [row["messages"][-1]["content"] for row in found.rows] == ["Q2", "Q1"]
    assert (found.rows[0]["custom_id"], found.rows[0]["messages"][0]["role"]) == ("r-2", "system")
    assert found.answers == {"gpt-4o-mini-2024-07-18": ["B", "A"]}


def test_two_models_that_were_asked_the_same_answer_one_row(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        a_in__jsonl=lines(request(1)),
        a_out__jsonl=lines(answered(1, "A")),
        b_in__jsonl=lines(request(1, "o3")),
        b_out__jsonl=lines(answered(1, "B", model="o3-2025")),
    )
    assert (len(found.rows), found.answers) == (1, {"gpt-4o-mini-2024-07-18": ["A"], "o3-2025": ["B"]})


def test_of_requests_with_one_id_that_to_the_model_counts(tmp_path: Path) -> None:
    other = request(1, "o3", messages=[{"role": "user", "content": "Another question"}])
    found = taken(
        tmp_path,
        a__jsonl=lines(request(1)),
        b__jsonl=lines(other),
        out__jsonl=lines(answered(1, "B", model="o3-2025")),
    )
    assert [row["messages"][-1]["content"] for row in found.rows] == ["Another question"]


def test_what_has_no_partner_and_what_failed_is_named_once(tmp_path: Path) -> None:
    expired = {"id": "x", "custom_id": "r-2", "response": None, "error": {"code": "batch_expired"}}
    given = files(
        tmp_path,
        input__jsonl=lines(request(1), request(2), request(3)),
        output__jsonl=lines(answered(1, "A"), answered(9, "lost")) + "{broken\n",
        errors__jsonl=lines(expired),
    )
    source = recognise(given)
    assert source is not None
    imported = source.read(given, Options())
    assert len(list(imported.rows)) == 1
    left_out = [one for one in imported.left_out if one.code != UNREAD]
    assert [(one.place.file, one.place.line, one.code, one.detail) for one in left_out] == [
        ("output.jsonl", 2, "answer_without_row", "r-9"),
        ("output.jsonl", 3, "json_broken", ""),
        ("errors.jsonl", 1, "no_answer", "r-2: batch_expired"),
        ("input.jsonl", 3, "row_without_answer", "r-3"),
    ]


@pytest.mark.parametrize(
    ("asked", "body"),
    [
        ({"input": "Q", "instructions": "Brief."}, {"output": [{"type": "message", "content": [
            {"type": "output_text", "text": "A"}]}], "status": "completed"}),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "Q"}]}]}, {"output": [
            {"type": "reasoning", "summary": []}, {"type": "message", "content": "A"}]}),
        ({"prompt": "Q"}, {"choices": [{"text": "A", "finish_reason": "stop"}]}),
    ],
)  # fmt: skip
def test_other_endpoints_are_read_too(tmp_path: Path, asked: dict[str, Any], body: dict[str, Any]) -> None:
    found = taken(tmp_path, input__jsonl=lines(request(1, **asked)), output__jsonl=lines(response(1, body)))
    assert found.rows[0]["messages"][-1] == {"role": "user", "content": "Q"}
    assert found.answers == {"gpt-4o-mini": ["A"]}


def test_several_choices_are_several_answers(tmp_path: Path) -> None:
    found = taken(tmp_path, i__jsonl=lines(request(1)), o__jsonl=lines(answered(1, "A", "B")))
    assert found.answers == {"gpt-4o-mini-2024-07-18": ["A", "B"]}


def test_a_look_at_the_first_answers_names_no_request_as_unanswered(tmp_path: Path) -> None:
    given = files(
        tmp_path,
        input__jsonl=lines(request(1), request(2)),
        output__jsonl=lines(answered(1, "A"), answered(2, "B")),
    )
    (_name, answers), (_other, rest) = open_tables(given, Options())
    assert len(answers.first(1)) == 1
    assert list(rest.records()) == []


def test_keys_of_requests_and_responses_that_are_not_imported_are_listed(tmp_path: Path) -> None:
    found = taken(tmp_path, input__jsonl=lines(request(1)), output__jsonl=lines(answered(1, "A")))
    assert {"url × 1", "response.request_id × 1", "response.body.choices[].message.role × 1"} <= {*found.keys}
    assert not [key for key in found.keys if key.startswith(("custom_id", "body"))]
