from typing import Any

import pytest

from judging.core.rules.lint import check_reference
from tests.judging.core.rules.programs import program, with_lines

TEXT = with_lines("a:精确匹配", "b:字数限制:3", "c:常量等于:x", "a:模糊匹配")


def complaints(text: str, reference: Any) -> list[tuple[str, int, str]]:
    return [(one.code, one.line, one.reason.code) for one in check_reference(program(text), reference)]


@pytest.mark.parametrize(
    "reference", ['{"a": 1, "b": "xyz", "c": "x"}', {"a": [1], "b": 100, "c": "x", "d": 0}]
)
def test_a_good_reference_has_no_complaints(reference: Any) -> None:
    assert complaints(TEXT, reference) == []


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
        ("reference.breaks_rule", 4, "field_missing"),
    ]


@pytest.mark.parametrize("reference", [None, "no JSON", 3])
def test_a_program_that_looks_at_no_reference_minds_none(reference: Any) -> None:
    assert complaints(with_lines("a:常量等于:x"), reference) == []


def test_a_missing_reference_is_told_at_the_first_line_that_needs_it() -> None:
    assert complaints(with_lines("a:常量等于:x", "@all:字数限制:3"), None) == [
        ("reference.field_missing", 3, "reference.field_missing")
    ]


def test_too_deep_a_reference_does_not_parse() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert complaints(TEXT, deep) == [("reference.format", 2, "reference.format")]
