import json
import struct
import tracemalloc
from typing import Any

import pytest

from judging.core.sandbox.job import Job, SandboxFailure
from judging.core.sandbox.session import MOST_MARKS, frame, read_reply
from judging.core.sandbox.wire import Frames, ProtocolError

ANY: Job[Any] = Job("probe", "", object, {})
TEXT: Job[str] = Job("probe", "", str, {})


def frames_of(data: bytes) -> Frames:
    frames = Frames()
    frames.add(data)
    return frames


def test_a_frame_is_its_length_and_its_json() -> None:
    body = '{"a":"北"}'.encode()
    assert frame({"a": "北"}) == struct.pack(">I", len(body)) + body


def test_frames_are_cut_wherever_the_bytes_were() -> None:
    frames, taken = Frames(), []
    for byte in frame([1]) + frame([2]):
        frames.add(bytes([byte]))
        taken.append(frames.take(100))
    assert [one for one in taken if one] == [b"[1]", b"[2]"]


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\x05abcd"])
def test_half_a_frame_waits_for_its_rest(data: bytes) -> None:
    assert frames_of(data).take(100) is None


def test_a_frame_that_is_too_long_is_refused_by_its_head() -> None:
    with pytest.raises(ProtocolError):
        frames_of(struct.pack(">I", 101)).take(100)


def test_a_reply_holds_seconds_and_a_value() -> None:
    assert read_reply(b'[0.5,"text",null]', TEXT) == (0.5, "text", None)


def test_a_reply_may_hold_a_failure() -> None:
    assert read_reply(b'[0,null,["load","why",3]]', TEXT)[2] == SandboxFailure("load", "why", 3)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[",
        b"{}",
        b"[0,1]",
        b'[0,"a",null,1]',
        b"[0,1,null]",
        b'["0","a",null]',
        b"[-1,null,null]",
        b"[NaN,null,null]",
        b"[1e999,null,null]",
        b'[0,"\\ud800",null]',
        b'[0,"\xed\xa0\x80",null]',
        b'[0,"\\u0000",null]',
        b'[0,null,["load","why"]]',
        b'[0,null,["load","why","3"]]',
    ],
)
def test_anything_else_breaks_the_protocol(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_reply(body, TEXT)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_nest_that_is_too_deep_breaks_the_protocol(depth: int) -> None:
    with pytest.raises(ProtocolError):
        read_reply(b"[0," + b"[" * depth + b"]" * depth + b",null]", ANY)


def test_an_integer_of_thousands_of_digits_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError):
        read_reply(b"[0," + b"9" * 5000 + b",null]", ANY)


def test_many_brackets_side_by_side_are_no_nest() -> None:
    value = [[]] * 500
    assert read_reply(json.dumps([0, value, None]).encode(), ANY)[1] == value


def test_a_backslash_before_u0000_is_a_text_like_any_other() -> None:
    assert read_reply(b'[0,"\\\\u0000",null]', TEXT)[1] == "\\u0000"


def test_long_messages_of_failures_are_cut() -> None:
    failure = read_reply(json.dumps([0, None, ["result", "y" * 9999, None]]).encode(), TEXT)[2]
    assert failure == SandboxFailure("result", "y" * 2000)


@pytest.mark.parametrize(
    "value",
    [
        b"[" + b"[]," * (MOST_MARKS // 3) + b"[]]",
        b"[" + b'{"a":""},' * (MOST_MARKS // 5) + b"0]",
        b"[" + b"0," * MOST_MARKS + b"0]",
        b'""' * MOST_MARKS,
    ],
)
def test_a_reply_of_very_many_values_breaks_the_protocol(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_reply(b"[0," + value + b",null]", ANY)


@pytest.mark.parametrize("value", [b"[" * 2_000_000, b'"' + rb"\"" * 2_000_000])
def test_a_reply_that_would_need_much_memory_is_refused_before_it_is_decoded(value: bytes) -> None:
    body = b"[0," + value + b",null]"
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            read_reply(body, ANY)
        assert tracemalloc.get_traced_memory()[1] < len(body)
    finally:
        tracemalloc.stop()


def test_commas_and_brackets_in_a_text_are_no_values() -> None:
    text = '[{,\\"' * 200_000
    assert read_reply(json.dumps([0, text, None]).encode(), TEXT)[1] == text
