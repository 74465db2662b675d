"""Findings state what is wrong and what to do, like a good compiler."""

from __future__ import annotations

import json

import pytest
from django.utils import translation

from datasets.messages import message
from tests.datasets.core.helpers import jsonl, row, summary

GOOD = json.dumps(row())


def result(source: bytes, code: str) -> list[str]:
    with translation.override("en"):
        return [message(found) for found in summary(source).findings if found.code == code]


@pytest.mark.parametrize(
    ("line", "met", "wanted"),
    [
        ('{"a": True}', "True is not JSON", "Use true"),
        ('{"a": None}', "None is not JSON", "Use null"),
        ('{"a": undefined}', "undefined is not JSON", "Use null"),
        ('{"a": ...}', "unexpected ...", "a value"),
        ('{"a": .5}', "invalid number .5", "a plain number"),
        ('{"a" 1}', "unexpected 1", "a colon"),
        ('{a: 1}', "unexpected a", "a key in double quotes"),
        ('{"a": 1 "b": 2}', 'unexpected "', "a comma or a closing brace"),
        ('[1, 2', "unexpected end of line", "a comma or a closing bracket"),
        ('{"a": 1}}', "unexpected }", "the end of the line"),
    ],
)  # fmt: skip
def test_broken_json_names_what_was_found_and_what_is_expected(line: str, met: str, wanted: str) -> None:
    (sentence,) = result(jsonl(GOOD, line, GOOD), "json.invalid")
    assert met in sentence
    assert wanted in sentence


def test_an_object_over_many_lines_says_where_it_breaks_and_what_is_expected() -> None:
    broken = '{\n "messages": []\n "x": 1\n}'
    (sentence,) = result(f"{json.dumps(row(), indent=1)}\n{broken}\n".encode(), "json.invalid")
    assert sentence.endswith('" in an object that spans several lines. Expected a comma or a closing brace.')


def test_an_object_over_many_lines_that_is_cut_ends_with_the_file() -> None:
    (sentence,) = result(f'{json.dumps(row(), indent=1)}\n{{\n "x": 1,\n'.encode(), "json.invalid")
    assert sentence.endswith("is not closed at the end of the file. Add }.")


@pytest.mark.parametrize(
    ("source", "met"),
    [
        (b"question,answer\n1,2\n", "“question,answer”"),
        (b"query;answer\n1;2\n", "“query;answer”"),
        (jsonl({"data": 1}), '“{"data": 1}”'),
        (b"\x00\x01\xff\n", r"“\x00\x01\xff”"),
    ],
)
def test_a_file_of_no_format_is_recognised_by_its_beginning(source: bytes, met: str) -> None:
    (sentence,) = result(source, "file.unknown_format")
    assert f"begins with {met}." in sentence


def test_a_wrong_header_says_which_columns_it_has() -> None:
    (sentence,) = result(b"prompt,answer\na,b\n", "csv.header")
    assert "(prompt, answer): the column “response” is missing" in sentence


def test_a_column_without_a_name_is_named_by_its_number() -> None:
    assert result(b"prompt,response,\na,b,c\n", "csv.extra_column")[0].startswith("Column 3 has no name")


@pytest.mark.parametrize("source", [b"prompt,response\na,\xff\n", GOOD.encode() + b'\n{"a": "\xff"}\n'])
def test_a_byte_that_is_no_utf8_is_named(source: bytes) -> None:
    assert result(source, "file.encoding")[0].startswith("Invalid UTF-8: byte 0xFF.")


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (b"prompt,response\na\n", "csv.columns", "has 1 field,"),
        (b"prompt,response\na,b,c\n", "csv.columns", "has 3 fields,"),
        (jsonl(row(gt=1)), "field.shadowed", "in 1 row is"),
        (jsonl(row(ref_answer=1), row()), "ref_answer.some_missing", "1 of 2 rows has"),
    ],
)
def test_one_is_no_plural(source: bytes, code: str, words: str) -> None:
    assert words in result(source, code)[0]


@pytest.mark.parametrize(("role", "met"), [("bot", "The role is “bot”:"), (4, "The role is a number:")])
def test_a_role_that_is_no_text_is_reported_by_its_type(role: object, met: str) -> None:
    bad = {"messages": [{"role": role, "content": "a"}, {"role": "user", "content": "b"}]}
    assert result(jsonl(GOOD, bad), "role.unknown")[0].startswith(met)


def test_counts_have_their_thousands() -> None:
    rows = b"".join(
        jsonl({**row(), **({"ref_answer": "x"} if number < 1100 else {})}) for number in range(2300)
    )
    assert result(rows, "ref_answer.some_missing") == ["1,200 of 2,300 rows have no “ref_answer”."]
