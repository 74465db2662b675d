"""The fast decoder accepts a line if and only if the strict parser finds a flawless object."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.core.decode import Block
from datasets.core.json_errors import JsonProblem, flaws, parse
from datasets.core.limits import Limits
from datasets.core.rows import decoded

TEXTS = st.sampled_from(["", "a", ":", '":', '"a": 1', "\\", "\0", "é", "中文", "\u2028", "'"]) | st.text(
    max_size=5
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=15,
)


def rows_of(*lines: str) -> list[dict[str, Any] | None]:
    source = [line.encode("utf-8", "surrogatepass") for line in lines]
    block = Block(1, source, b"".join(line + b"\n" for line in source))
    return [row for _, _, row in decoded(block, Limits().row_values)]


def is_valid(text: str) -> bool:
    """The strict parser's result."""
    try:
        root = parse(text)
    except JsonProblem:
        return False
    return root.type == "object" and not list(flaws(text, root))


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(TEXTS, VALUES, max_size=4),
    st.booleans(),
    st.sampled_from([None, (" , ", " : "), (",", ":")]),
)
def test_an_object_without_a_flaw_passes_with_its_values(
    row: dict[str, Any], ascii_only: bool, separators: tuple[str, str] | None
) -> None:
    text = json.dumps(row, ensure_ascii=ascii_only, separators=separators)
    (found,) = rows_of(text)
    assert found == (row if is_valid(text) else None)
    assert found is not None or "\\u00" in text  # a NUL, or possibly an escaped colon


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_damaged_line_passes_only_if_it_is_still_valid(row: dict[str, Any], rng: random.Random) -> None:
    text = json.dumps(row)
    at = rng.randrange(len(text))
    sign = rng.choice(['"', ",", "}", "]", ":", "0", "\\", "", "{", '"x":1,', "9" * 400, "1e999", "\\u003a"])
    damaged = text[:at] + sign + text[at + 1 :]
    (found,) = rows_of(damaged)
    assert found is None or is_valid(damaged)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a" : 1, "b": 2, "b" \t: 3}',
        '{"x": {"a": 1, "a": 2}}',
        '{"x": "\\u003a", "a": 1, "a": 2}',
        '{"x": "\\u003A\\u003a", "a": 1, "b": 2, "a": 2, "b": 3}',
        '{"a": "\\u0000"}',
        '{"\\u0000": 1}',
        '{"a": "\\ud800"}',
        '{"a": "\udfff"}',
        '{"a": %s}' % ("9" * 400),
        '{"a": [1, -%s]}' % ("1" * 320),
        '{"a": 1e999}',
        '{"a": NaN}',
        '{"a": %s}' % ("[" * 250 + "]" * 250),
        "[1]",
        "1",
        "",
        "{",
    ],
)
def test_what_a_decoder_overlooks_does_not_pass(text: str) -> None:
    assert rows_of('{"fine": 1}', text, '{"fine": 2}') == [{"fine": 1}, None, {"fine": 2}]


@pytest.mark.parametrize(
    "text", ['{"a": %s}' % ("9" * 300), '{"a": %s}' % ("[" * 190 + "]" * 190), '{"a": [%s0]}' % ("[]," * 900)]
)
def test_what_is_long_or_nested_within_the_limits_is_no_flaw(text: str) -> None:
    assert is_valid(text)
    assert rows_of(text) in ([json.loads(text)], [None])
