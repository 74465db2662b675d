"""Errors of malformed JSON: what was found, at which character, and whether it can be repaired."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.json_errors import JsonProblem, parse
from tests.datasets.core.helpers import found, jsonl, row, summary

CASES = [
    ('{"a": 1, // note', 10, "comment", "strip_comments"),
    ('{"a": 1} # note', 10, "comment", "strip_comments"),
    ("# note", 1, "comment", "strip_comments"),
    ('{"a": [1, 2,]}', 12, "trailing_comma", "strip_trailing_commas"),
    ('{"a": 1, }', 8, "trailing_comma", "strip_trailing_commas"),
    ('{"a": 1},', 9, "trailing_comma", "strip_trailing_commas"),
    ("{'a': 1}", 2, "single_quote", "python_literal"),
    ("{'a': b}", 2, "single_quote", None),
    ('{"a": NaN}', 7, "constant", "nan_to_null"),
    ('{"a": -Infinity}', 7, "constant", "nan_to_null"),
    ('{"a": 1e999}', 7, "number_range", None),
    ('{"a": [1%s]}' % ("0" * 400), 8, "number_range", None),
    ("{“a”: 1}", 2, "full_width_quote", None),
    ('{"a": 1，"b": 2}', 8, "full_width_comma", None),
    ('{"a"： 1}', 5, "full_width", None),
    ('{"a": "b', 7, "unterminated_string", None),
    ('{"a": "b\tc"}', 9, "control_character", None),
    ('{"a": "\\x"}', 8, "bad_escape", None),
    ('{"a": 1}, // x', 9, "trailing_comma", "strip_trailing_commas"),
    ('{"a": /* x */ 1}', 7, "comment", "strip_comments"),
    ('{"a": /* x 1}', 7, "unexpected", None),
    ('{"a": 01}', 7, "bad_number", None),
    ('{"a": [1 2]}', 10, "unexpected", None),
    ('{"名": "值" "b": 1}', 11, "unexpected", None),
    ('{"a": True}', 7, "literal", "python_literal"),
    ('{"a": TRUE}', 7, "literal", None),
    ('{"a": 1', 8, "end", None),
    ('{"a": 1}{"b": 2}', 9, "unexpected", None),
]


@pytest.mark.parametrize(("text", "column", "reason", "repair"), CASES)
def test_the_first_thing_that_is_no_json_is_named(
    text: str, column: int, reason: str, repair: str | None
) -> None:
    (problem,) = found(jsonl(row(), text), "json.invalid")
    assert (problem.line, problem.column, problem.params["reason"], problem.repair) == (
        2,
        column,
        reason,
        repair,
    )


def test_nesting_without_end_is_refused_not_followed() -> None:
    deep = '{"messages": %s}' % ("[" * 5000 + "]" * 5000)
    (problem,) = found(jsonl(row(), deep), "json.invalid")
    assert problem.params["reason"] == "too_deep"


@pytest.mark.parametrize("text", ["1", '"x"', "null", "[1]"])
def test_json_that_is_no_object_is_reported(text: str) -> None:
    assert [one.line for one in found(jsonl(row(), text), "json.not_object")] == [2]


def test_big_integers_are_fine() -> None:
    assert summary(jsonl(row(n=12345678901234567890123456789))).valid_rows == 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.booleans())
def test_what_json_writes_is_read_back_equal(value: object, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only)).plain() == value


@given(values, st.randoms(use_true_random=False))
def test_it_agrees_with_pythons_json_about_damaged_texts(value: object, rng: random.Random) -> None:
    text = json.dumps(value)
    at = rng.randrange(len(text))
    damaged = text[:at] + rng.choice(['"', ",", "}", "]", ":", "0", "\\", ""]) + text[at + 1 :]
    assert _accepts(parse, damaged) == _accepts(_strict, damaged)


def _accepts(read: object, text: str) -> bool:
    try:
        read(text)  # type: ignore[operator]
    except (JsonProblem, ValueError):
        return False
    return True


def _strict(text: str) -> None:
    def number(source: str) -> float:
        if float(source) in (float("inf"), float("-inf")):
            raise ValueError(source)
        return float(source)

    json.loads(text, parse_float=number, parse_int=number, parse_constant=_fail)


def _fail(name: str) -> None:
    raise ValueError(name)
