"""Lines that are Python dict literals become JSON; other lines are unchanged."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.json_repairs import LONGEST_LITERAL, as_json
from tests.datasets.core.helpers import codes, found, jsonl, repaired, row, summary

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values, min_size=1, max_size=4))
def test_what_python_prints_reads_back_equal(fields: dict[str, Any]) -> None:
    written = as_json(repr(fields))
    assert written is not None
    assert json.loads(written) == json.loads(json.dumps(fields))


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (
            "{'a': 1.50, 'b': 123456789012345678901234567890}",
            '{"a": 1.50, "b": 123456789012345678901234567890}',
        ),
        ("""{"a": True, 'b': "it's", 'c': None,}""", '{"a": true, "b": "it\'s", "c": null}'),
        ("{'a': ('x',), 'b': (), 'c': ('y')}  # note", '{"a": ["x"], "b": [], "c": "y"}'),
        (r"{'a': '\u4e2d\x41\N{BULLET}\d'}", r'{"a": "中A•\\d"}'),
        ("{'a': 1, 'a': 2}", '{"a": 1, "a": 2}'),
    ],
)
def test_a_literal_becomes_json_with_its_numbers_and_order(line: str, written: str) -> None:
    assert as_json(line) == written


@pytest.mark.parametrize(
    "line",
    [
        '{"a": "it\'s True"}',
        "{'a': b}",
        "{'a': 1",
        "{'a', 'b'}",
        "{1: 'a'}",
        "{'a': b'x'}",
        "{'a': 'b' 'c'}",
        "['a']",
        "{'a': float('nan')}",
        "{'a': 1e999}",
        "{'a': (1, 2}",
        "{'a': [1, 2)}",
        "{'a': [,]}",
        "{'a': (,)}",
        "{'a': 1},",
        "{'a': " + "[" * 300 + "]" * 300 + "}",
        "{'a': '" + "x" * LONGEST_LITERAL + "'}",
    ],
)
def test_what_is_no_literal_of_an_object_is_left(line: str) -> None:
    assert as_json(line) is None


def test_only_a_line_that_can_be_repaired_names_the_repair() -> None:
    source = jsonl(row(), "{'a': 1}", "{'a': b}", '{"a": True}', '{"a": 1, }')
    assert [one.repair for one in found(source, "json.invalid")] == [
        "python_literal",
        None,
        "python_literal",
        "strip_trailing_commas",
    ]


def test_a_file_of_literals_is_detected_and_repaired(tmp_path: Path) -> None:
    lines = [repr(row(id=number, note=None, ok=True)) for number in range(3)]
    source = jsonl(*lines)
    assert (codes(source), summary(source).format) == ({"json.invalid": 3}, "infer_and_judge")
    after = repaired(tmp_path, source, "python_literal")
    assert after == jsonl(*(row(id=number, note=None, ok=True) for number in range(3)))
