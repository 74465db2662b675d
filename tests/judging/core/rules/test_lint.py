from functools import partial
from typing import Any

import pytest

from judging.core.rules.lint import ReferenceLint, References
from judging.core.rules.python_blocks import run_code
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.rules.programs import program, with_lines

TEXT = with_lines("a:精确匹配", "b:字数限制:3", "c:常量等于:x", "a:模糊匹配")


def complaints(text: str, reference: Any) -> list[tuple[str, int, str]]:
    looked = References(program(text))
    looked.add([(1, reference)])
    return [(one.code, one.line, one.reason.code) for one in looked.result().complaints]


@pytest.mark.parametrize(
    "reference", ['{"a": 1, "b": "xyz", "c": "x"}', {"a": [1], "b": 100, "c": "x", "d": 0}]
)
def test_a_good_reference_has_no_complaints(reference: Any) -> None:
    assert complaints(TEXT, reference) == []


def test_a_reference_that_is_forgiven_has_no_complaints() -> None:
    assert complaints(TEXT, '{"a": 1, "b": "xyz", "c": "x",} // done') == []


@pytest.mark.parametrize("reference", ["no JSON", "[]", 3, [[1]], '{"a": 1, "a": 1}'])
def test_a_reference_that_does_not_parse(reference: Any) -> None:
    (complaint,) = complaints(TEXT, reference)
    assert complaint[:2] == ("reference.format", 2)


def test_a_reference_that_lacks_a_field() -> None:
    found = complaints(TEXT, {"b": "x", "c": "x"})
    assert found == [("reference.field_missing", line, "reference.field_missing") for line in (2, 5)]


def test_a_reference_that_would_not_score_5_itself() -> None:
    assert complaints(TEXT, {"a": 1, "b": "long"}) == [
        ("reference.breaks_rule", 3, "length_beyond"),
        ("reference.field_missing", 4, "reference.field_missing"),
    ]


@pytest.mark.parametrize("reference", [None, "no JSON", 3])
def test_a_program_that_looks_at_no_reference_minds_none(reference: Any) -> None:
    assert complaints(with_lines("a:常量等于:x"), reference) == []


def test_a_missing_reference_is_reported_at_the_first_line_that_needs_it() -> None:
    assert complaints(with_lines("a:常量等于:x", "@all:字数限制:3"), None) == [
        ("reference.field_missing", 3, "reference.field_missing")
    ]


def test_too_deep_a_reference_does_not_parse() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert complaints(TEXT, deep) == [("reference.format", 2, "reference.format")]


def lint_of(text: str, *references: Any, sandbox: Sandbox | None = None) -> ReferenceLint:
    looking = References(program(text), partial(run_code, sandbox) if sandbox else None)
    looking.add(list(enumerate(references, 1)))
    return looking.result()


def test_equal_complaints_are_counted_and_their_rows_named() -> None:
    found = lint_of(TEXT, None, {"a": 1, "b": "x", "c": "x"}, None)
    (minded,) = found.complaints
    assert (found.rows, found.faulty, minded.rows, minded.first) == (3, 2, 2, [1, 3])


def test_a_field_of_another_type_than_in_most_references_is_minded() -> None:
    found = lint_of(with_lines("a:精确匹配"), {"a": "x"}, {"a": 1}, {"a": "y"}, {"a": None})
    assert [(one.code, one.line, one.first, one.reason.params["met"]) for one in found.complaints] == [
        ("reference.other_type", 2, [2], "number"),
        ("reference.other_type", 2, [4], "null"),
    ]
    assert found.faulty == 2


def test_types_are_looked_at_in_the_fields_that_all_means_too() -> None:
    found = lint_of(with_lines("b:字数限制:9", "@all:精确匹配"), {"z": [1]}, {"z": [2]}, {"z": True})
    assert [
        (one.line, one.name, one.reason.params["usual"]) for one in found.complaints if "z" in one.name
    ] == [(3, "z", "list")]


def test_a_row_is_reported_once_whatever_is_wrong_in_it() -> None:
    found = lint_of(with_lines("a:字数限制:1", "a:精确匹配"), {"a": "x"}, {"a": "y"}, {"a": 1000})
    assert (found.faulty, len(found.complaints)) == (1, 2)


def test_repeated_elements_are_another_type_than_a_single_one() -> None:
    found = lint_of(with_lines("a:精确匹配", form="XML"), "<a>1</a>", "<a>2</a>", "<a>1</a><a>2</a>")
    assert found.complaints[0].reason.params == {"name": "a", "met": "list", "usual": "text"}


def test_python_blocks_score_the_reference_against_itself(sandbox: Sandbox) -> None:
    block = "\n<代码1>\ndef f(ref_answer, model_answer):\n    return 5 if ref_answer else 1 / 0\n</代码1>"
    text = with_lines("a:Python代码:代码1") + block
    (minded,) = lint_of(text, {"a": 1}, {"a": 0}, sandbox=sandbox).complaints
    assert (minded.code, minded.reason.code, minded.first) == ("reference.breaks_rule", "code.failed", [2])
    assert lint_of(text, {"a": 0}).complaints == []
