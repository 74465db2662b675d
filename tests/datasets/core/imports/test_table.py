"""Conversion of table records to rows, answers, fields and scores."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from datasets.core.imports import table
from datasets.core.imports.model import NotUsable, Options, SourceFile
from datasets.core.imports.registry import recognise
from datasets.core.limits import Limits
from datasets.core.own_exports import ROW_COLUMNS
from tests.datasets.core.imports.tabular import parquet, source_file, taken, xlsx


def test_one_column_a_model_gives_each_row_their_answers() -> None:
    found = taken("question;answer_a;answer_b;topic\nq1;x;y;t\nq2;;z;\n")
    assert found.answers == [{"a": ["x"], "b": ["y"]}, {"b": ["z"]}]
    assert found.field("topic") == ["t", None]
    assert found.left_out == [("no_answer", 3, "a")]


def test_a_model_column_gathers_the_answers_to_a_question_wherever_they_are() -> None:
    found = taken("question,model,answer\nq1,a,1\nq2,a,2\nq1,b,3\nq1,a,4\n")
    assert found.questions == ["q1", "q2"]
    assert found.answers == [{"a": ["1", "4"], "b": ["3"]}, {"a": ["2"]}]


def test_a_field_that_differs_between_a_questions_records_is_reported() -> None:
    found = taken("question,model,answer,lang\nq,a,1,en\nq,b,2,de\n")
    assert found.field("lang") == ["en"]
    assert found.left_out == [("field_differs", 3, "lang")]


def test_another_reference_makes_another_row() -> None:
    assert taken("question,model,answer,reference\nq,a,1,r\nq,b,2,s\n").field("ref_answer") == ["r", "s"]


def test_an_answer_without_a_model_and_a_record_without_a_question_are_left_out() -> None:
    found = taken("question,model,answer\nq,,1\n,a,2\n")
    assert found.left_out == [("no_model", 2, "model"), ("no_question", 3, "question")]


def test_scores_name_the_row_the_model_and_which_of_its_answers() -> None:
    found = taken("question,model,answer,score\nq1,a,x,4\nq2,a,y,2.5\nq1,a,z,1\n")
    said = [
        (one["line"], one["model"], one["response"], one["metric"], one["value"]) for one in found.verdicts
    ]
    assert said == [(1, "a", 1, "score", 4), (2, "a", 1, "score", 2.5), (1, "a", 2, "score", 1)]


def test_a_score_that_is_no_number_or_has_no_answer_is_left_out() -> None:
    columns = "question=question,answer:a=a,score:s=s"
    found = taken("question,a,s\nq,x,good\nq,,3\n", columns)
    assert not found.verdicts
    assert [code for code, _line, _detail in found.left_out] == [
        "score_not_number",
        "no_answer",
        "score_without_answer",
        "row_without_answer",
    ]


def test_a_score_is_about_the_answer_of_its_own_record() -> None:
    found = taken("question,model,answer,score\nq,a,x,\nq,a,y,3\n")
    assert [(one["response"], one["value"]) for one in found.verdicts] == [(2, 3.0)]


def test_a_field_that_only_a_later_record_of_the_question_has_is_kept() -> None:
    assert taken("question,model,answer,lang\nq,a,1,\nq,b,2,de\n").field("lang") == ["de"]


def test_a_column_of_messages_keeps_calls_of_tools_and_tells_what_is_no_text() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
    reply = {"role": "Tool", "content": "4", "tool_call_id": "c1"}
    image = {"role": "user", "content": [{"type": "text", "text": "2+2?"}, {"type": "image_url"}]}
    found = taken(json.dumps({"messages": [image, call, reply], "x": 1}) + "\n", "messages=messages")
    assert found.rows[0]["messages"] == [
        {"role": "user", "content": "2+2?"},
        call | {"content": ""},
        reply | {"role": "tool"},
    ]
    assert found.left_out == [("part_dropped", 1, "image_url")]


@pytest.mark.parametrize("given", ["plain text", '[{"role": ', "[]", '[{"role": "nobody", "content": "a"}]'])
def test_what_is_no_conversation_is_not_taken_for_one(given: str) -> None:
    found = taken(json.dumps({"messages": given, "x": 1}) + "\n", "messages=messages")
    assert (found.rows, found.left_out) == ([], [("messages_unreadable", 1, "messages")])


def test_long_work_says_that_it_goes_on() -> None:
    calls: list[int] = []
    given = source_file("question,answer\n" + "".join(f"q{n},a\n" for n in range(300)))
    assert len(list(table.read([given], Options(progress=lambda: calls.append(1))).rows)) == 300
    assert calls == [1]


def test_an_instruction_and_its_input_are_one_question() -> None:
    found = taken(json.dumps([{"instruction": "Add", "input": "1 2", "output": "3"}]))
    assert found.questions == ["Add\n\n1 2"]
    assert found.answers == [{"output": ["3"]}]


def test_a_sharegpt_conversation_becomes_messages() -> None:
    turns = [{"from": "system", "value": "s"}, {"from": "human", "value": "h"}, {"from": "gpt", "value": "g"}]
    (row,) = taken(json.dumps({"conversations": turns, "id": 7}) + "\n").rows
    assert [one["role"] for one in row["messages"]] == ["system", "user", "assistant"]
    assert row["id"] == 7


WHY = {"why": "x", "level": 3}


@pytest.mark.parametrize("beside", [{}, {"response": WHY}, {"model": "answer"}])
def test_an_answer_that_is_an_object_in_each_record_is_its_json(beside: dict[str, Any]) -> None:
    found = taken(json.dumps({"question": "q", "answer": WHY, **beside}))
    assert found.answers == [{"answer": [json.dumps(WHY)]}]
    assert found.left_out == [("text_as_json", 1, "answer")]


def test_a_question_that_is_an_object_in_each_record_is_its_json() -> None:
    found = taken(json.dumps({"question": WHY, "answer": "a"}))
    assert (found.questions, found.answers) == ([json.dumps(WHY)], [{"answer": ["a"]}])
    assert found.left_out == [("text_as_json", 1, "question")]


def test_an_object_is_no_answer_beside_a_text_that_is_one() -> None:
    found = taken(json.dumps({"question": "q", "output": WHY, "prediction": "a"}))
    assert (found.answers, found.field("output")) == ([{"prediction": ["a"]}], [WHY])


def test_an_answer_of_models_names_and_texts_is_the_answers_of_several_models() -> None:
    found = taken(json.dumps({"question": "q", "answer": {"gpt-4.1": "a", "claude": "b"}}))
    assert found.answers == [{"gpt-4.1": ["a"], "claude": ["b"]}]


@pytest.mark.parametrize(
    "response",
    [{"choices": [{"index": 0, "text": "a"}]}, {"message": {"role": "assistant", "content": "a"}, "done": 1}],
)
def test_the_text_inside_a_logged_response_is_the_answer(response: dict[str, Any]) -> None:
    (answers,) = taken(json.dumps({"prompt": "q", "model": "m", "response": response})).answers
    assert answers == {"m": ["a"]}


def test_a_system_column_comes_before_the_question() -> None:
    (row,) = taken("prompt,system,answer\nq,be brief,a\n").rows
    assert row["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "q"},
    ]


def test_batch_output_names_its_model_inside_an_object() -> None:
    body = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "hi"}}]}
    found = taken(json.dumps({"custom_id": "r1", "response": {"body": body}, "error": None}) + "\n")
    assert found.questions == ["r1"]
    assert found.answers == [{"m": ["hi"]}]
    assert ("left_out", "response") in [(one.becomes, one.origin) for one in found.imported.notes]


def test_parquet_keeps_types_and_skips_what_is_no_text() -> None:
    found = taken(parquet(question=["a", "b", "c"], n=[1, None, 2**62], image=[b"\x00", None, None]))
    assert found.field("n") == [1, None, 2**62]
    assert found.left_out == [("binary", 1, "image")]


def test_broken_lines_of_json_are_reported_and_the_others_taken() -> None:
    found = taken('{"prompt": "a", "x": 1}\n{"prompt": \n[1]\n{"prompt": "b", "x": 2}\n')
    assert found.questions == ["a", "b"]
    assert [(code, line) for code, line, _detail in found.left_out] == [
        ("json_broken", 2),
        ("not_an_object", 3),
    ]


def test_a_number_that_is_none_and_a_big_integer() -> None:
    found = taken('{"prompt": "a", "n": 123456789012345678901234567890}\n{"prompt": "b", "n": null}\n')
    assert found.field("n") == [123456789012345678901234567890, None]


def test_a_field_with_a_name_of_ours_gets_another() -> None:
    (row,) = taken('{"prompt": "a", "model_outputs": "x"}\n', "question=prompt").rows
    assert row["model_outputs_"] == "x"


def test_more_answers_than_a_row_may_hold_are_left_out() -> None:
    given = "question,model,answer\n" + "".join(f"q,m{n},{'x' * 100}\n" for n in range(20))
    found = taken(given, limits=Limits(row_bytes=1000))
    assert len(found.answers[0]) == 8
    assert found.imported.left_out_counts == {"too_many_answers": 12}


@pytest.mark.parametrize(
    ("content", "is_table"),
    [
        ("question\nwhy, then?\n", True),
        ("so\nwhy\n", False),
        ("Dear all,\nthis is a text, with commas, here.\nBye\n", False),
        ("a,b\n1,2\n", True),
        ("a\tb\n1\t2\n", True),
        ("prompt,response\na,b\n", False),  # a native format
        ('{"messages": [{"role": "user", "content": "a"}]}\n', False),
        ('[{"messages": [{"role": "user", "content": "a"}]}]', False),
        ('{"prompt": "a"}\n', True),
        ('{"x": "a"}\n', False),
        ("", False),
        (b"%PDF-1.7 ...", False),
        (b"PK\x03\x04 not a workbook", False),
    ],
)
def test_a_table_has_several_columns_and_no_native_format(content: str | bytes, is_table: bool) -> None:
    assert table.recognise([source_file(content)]) is is_table


def test_files_with_other_columns_are_no_table_together() -> None:
    assert table.recognise([source_file("a,b\n1,2\n"), source_file("b,a\n3,4\n")])
    assert not table.recognise([source_file("a,b\n1,2\n"), source_file("a,c\n3,4\n")])


def test_a_table_without_a_question_says_which_columns_there_are() -> None:
    with pytest.raises(NotUsable) as refused:
        taken("a,b\n1,2\n")
    assert (refused.value.code, refused.value.params["columns"]) == ("no_question_column", "a, b")


@pytest.mark.parametrize("content", [b"PAR1 broken", xlsx([["a", "b"], [1, 2]])[:900]])
def test_a_damaged_file_is_not_usable(content: bytes) -> None:
    with pytest.raises(NotUsable) as refused:
        taken(content, "question=a")
    assert refused.value.code in ("unreadable", "other_kind")


class Counting(io.BytesIO):
    """A file that counts the bytes read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        part = super().read(size)
        Counting.taken += len(part)
        return part


@pytest.mark.parametrize("line", [b"question,answer\n", b"prompt,response\n", b'{"prompt": "a", "x": 1}\n'])
def test_a_large_file_is_recognised_by_its_beginning(line: bytes) -> None:
    content = line * (40_000_000 // len(line))
    Counting.taken = 0
    recognise([SourceFile("large", len(content), lambda: Counting(content))])
    assert 0 < Counting.taken < len(content) // 2


def test_our_own_table_is_read_without_the_apostrophes_that_we_wrote() -> None:
    head = ",".join((*ROW_COLUMNS, "note", "bad_rows"))
    found = taken(f"{head}\n1,'=1,,,,,''-a,0\n2,'b,,,,,'c,0\n")
    assert (found.questions, found.field("note")) == (["=1", "'b"], ["'-a", "'c"])


def test_an_apostrophe_in_another_table_belongs_to_the_text() -> None:
    assert taken("question,answer\n'=1,'-a\n").questions == ["'=1"]


def test_a_column_of_lines_is_a_rubric() -> None:
    found = taken('question,rubric\nHow much?,"1. Names an amount\n2. Is brief"\n')
    assert found.field("rubric") == [["Names an amount", "Is brief"]]
