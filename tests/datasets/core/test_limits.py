"""Counting the values of a row without parsing it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.limits import holds_more_values

TEXT = st.text(st.sampled_from('a,[]{}":\\ é'), max_size=4)
VALUES = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=30,
)


def values_in(value: Any) -> int:
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_in, within))


@given(VALUES, st.sampled_from([None, 1]))
def test_all_values_count_and_no_text_does(value: Any, indent: int | None) -> None:
    text, number = json.dumps(value, indent=indent, ensure_ascii=False).encode(), values_in(value)
    assert not holds_more_values(text, number)
    assert number == 1 or holds_more_values(text, number - 1)


@pytest.mark.parametrize("number", [999, 1000, 1001, 2500])
def test_many_are_counted_to_the_last(number: int) -> None:
    text = json.dumps([[]] * (number - 1)).encode()
    assert not holds_more_values(text, number)
    assert holds_more_values(text, number - 1)
