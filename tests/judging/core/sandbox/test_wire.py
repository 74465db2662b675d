import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.core.sandbox.session import frame
from judging.core.sandbox.wire import make_decoder, make_encoder

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
encode = make_encoder(allow_nan=False)
decode = make_decoder()


@given(VALUES)
def test_what_is_encoded_is_what_json_writes(value: Any) -> None:
    assert encode(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(VALUES)
def test_a_frame_is_read_as_it_was_given(value: Any) -> None:
    assert decode(memoryview(frame(value))[4:]) == value


@pytest.mark.parametrize("value", ["\ud83d", 10**30, -(2**64), {"\udc00": [1]}])
def test_half_characters_and_large_integers_pass_to_the_worker(value: Any) -> None:
    assert decode(memoryview(frame(value))[4:]) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode([value])


def test_a_circle_ends_by_its_depth() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(RecursionError):
        encode(circle)


def test_objects_may_be_read_as_another_type() -> None:
    read = make_decoder(lambda fields: tuple(fields))
    assert read(memoryview(b'[{"a": {"b": 1}}]')) == [("a",)]
