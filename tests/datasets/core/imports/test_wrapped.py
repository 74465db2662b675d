"""A list of records in one JSON object, beside other keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasets.core.imports import table
from datasets.core.imports.model import NotUsable
from tests.datasets.core.imports.tabular import source_file, taken

ROWS = [{"question": "a", "answer": "1"}, {"question": "b", "answer": "2"}]


@pytest.mark.parametrize("indent", [None, 2])
def test_the_records_of_the_list_are_read_and_other_keys_told(indent: int | None) -> None:
    found = taken(json.dumps({"version": 1, "data": ROWS, "notes": [], "license": "mit"}, indent=indent))
    assert found.questions == ["a", "b"]
    assert found.left_out == [("key_unread", None, "version × 1"), ("key_unread", None, "license × 1")]


def test_records_without_a_known_question_are_found_by_the_name_of_their_list() -> None:
    found = taken(json.dumps({"rows": [{"ask": "a", "say": "b"}]}), columns="question=ask,answer=say")
    assert found.questions == ["a"]


def test_a_lone_list_of_records_is_a_table() -> None:
    assert table.recognise([source_file(json.dumps({"anything": ROWS}), "a.json")])


def test_an_item_that_is_no_object_is_told_with_its_number() -> None:
    found = taken(json.dumps({"data": [ROWS[0], 7, ROWS[1]]}))
    assert (found.questions, found.left_out) == (["a", "b"], [("not_an_object", 2, "")])


@pytest.mark.parametrize(
    "record",
    [
        {"question": "a", "data": ROWS},
        {"messages": [{"role": "user", "content": "a"}], "data": ROWS},
    ],
)
def test_a_record_that_asks_itself_is_one_record(record: dict[str, Any]) -> None:
    assert taken(json.dumps(record)).questions == ["a"]


def test_objects_with_lists_one_after_another_are_records() -> None:
    lines = [json.dumps({"task": text, "data": ROWS}) for text in "cd"]
    assert taken("\n".join(lines)).questions == ["c", "d"]


def test_messages_in_the_list_are_the_rows_messages() -> None:
    rows = [{"messages": [{"role": "user", "content": "a"}]}]
    assert taken(json.dumps({"version": 1, "data": rows})).questions == ["a"]


def test_a_question_that_is_another_object_is_told() -> None:
    assert taken('{"question": {"a": 1}, "answer": "x"}\n').left_out == [("text_as_json", 1, "question")]


def test_lists_of_one_kind_are_read_one_after_the_other_and_name_themselves() -> None:
    found = taken(
        json.dumps({"version": 1, "train": ROWS, "test": [{"question": "c", "answer": "3", "level": 3}]})
    )
    assert (found.questions, found.field("split")) == (["a", "b", "c"], ["train", "train", "test"])
    assert found.field("level") == [None, None, 3]
    assert found.left_out[0] == ("several_lists", None, "train × 2, test × 1")
    assert ("key_unread", None, "version × 1") in found.left_out


def test_the_numbers_of_records_go_on_from_list_to_list() -> None:
    found = taken(json.dumps({"train": ROWS, "test": [{"question": "", "answer": "c"}]}))
    assert ("no_question", 3, "question") in found.left_out


def test_a_field_split_of_the_records_stays_theirs() -> None:
    found = taken(json.dumps({"easy": [{"question": "a", "split": 1}], "hard": [{"question": "b"}]}))
    assert (found.field("split"), found.field("split_")) == ([1, None], ["easy", "hard"])


def test_parts_of_a_benchmark_need_name_no_question() -> None:
    given = json.dumps({"train": [{"ask": "a"}], "test": [{"ask": "b"}]})
    assert taken(given, columns="question=ask").field("split") == ["train", "test"]


def test_lists_of_messages_are_no_lists_of_records() -> None:
    chats = {name: [{"role": "user", "content": name}] for name in ("before", "after")}
    assert taken(json.dumps(chats), columns="messages=before").questions == ["before"]


def test_nan_in_one_of_several_lists_is_read_as_null() -> None:
    found = taken('{"train": [{"question": "a", "x": NaN}], "test": [{"question": "b"}]}')
    assert found.field("split") == ["train", "test"]
    assert ("nan", 1, "NaN") in found.left_out


@pytest.mark.parametrize(
    "document",
    [
        {"questions": ROWS, "documents": [{"text": "d"}]},
        {"data": ROWS, "shots": [{"question": "x", "answer": "y"}]},
    ],
)
def test_a_list_of_questions_beside_another_kind_is_read_alone(document: dict[str, Any]) -> None:
    found = taken(json.dumps(document))
    assert (found.questions, found.field("split")) == (["a", "b"], [None, None])


def test_lists_of_different_kinds_are_named() -> None:
    with pytest.raises(NotUsable) as refused:
        taken(json.dumps({"pairs": ROWS, "documents": [{"text": "d"}], "n": 1}))
    assert (refused.value.code, refused.value.params["lists"]) == ("lists_differ", "pairs, documents")
