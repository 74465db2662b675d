import json
import time
from typing import Any

import pytest

from judging.core.judges import reply_reader
from judging.core.judges.errors import JudgeError
from judging.core.judges.reply import Reply
from judging.core.judges.reply_reader import ReplyReader


def event(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice], **fields}, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
HELLO = event({"content": "好"}) + event({"content": "的 [[7]]"}) + event({}, "stop") + DONE


def read(*pieces: bytes) -> Reply:
    assembly = ReplyReader()
    for piece in pieces:
        assembly.feed(piece)
    return assembly.finish(1.0, 0.5)


def code_of(*pieces: bytes) -> str:
    with pytest.raises(JudgeError) as caught:
        read(*pieces)
    return caught.value.code


def test_the_deltas_make_the_content() -> None:
    assert read(HELLO).content == "好的 [[7]]"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_stream_may_arrive_in_pieces_of_any_size(size: int) -> None:
    pieces = [HELLO[start : start + size] for start in range(0, len(HELLO), size)]
    assert read(*pieces) == read(HELLO)


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_lines_may_end_in_cr(end: bytes, size: int) -> None:
    stream = HELLO + b'data: {"choices": [{"delta":\ndata: {"content": "!"}}]}\n\n'
    stream = (stream + DONE).replace(b"\n", end)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*pieces).content == "好的 [[7]]!"


@pytest.mark.parametrize(
    "stream",
    [
        b"\xef\xbb\xbf" + HELLO,
        b"\xef\xbb\xbf\n" + HELLO.replace(b"data:", b"\xef\xbb\xbfdata:"),
        b'\xef\xbb\xbf{"choices": [{"message": {"content": "\xe5\xa5\xbd\xe7\x9a\x84 [[7]]"}}]}',
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_byte_order_mark_loses_nothing(stream: bytes, size: int) -> None:
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*pieces).content == "好的 [[7]]"


def test_empty_events_and_the_end_mark_within_an_event_do_not_matter() -> None:
    assert read(b"data:\n\ndata: \n\n" + HELLO).content == "好的 [[7]]"
    assert read(HELLO.replace(DONE, b'data: {"choices":\ndata: []}\n' + DONE)).content == "好的 [[7]]"


def test_comments_event_names_and_missing_blanks_do_not_matter() -> None:
    stream = b": keep-alive\n\nevent: message\nid: 3\n" + HELLO.replace(b"data: ", b"data:")
    assert read(stream).content == "好的 [[7]]"


def test_an_event_may_be_written_over_several_lines() -> None:
    stream = b'data: {"choices": [{"delta":\ndata: {"content": "hi"}}]}\n\n' + DONE
    assert read(stream).content == "hi"


def test_half_a_surrogate_pair_in_each_of_two_events_makes_one_character() -> None:
    half = b'data: {"choices":[{"delta":{"content":"\\u%s"}}]}\n\n'
    assert read(half % b"d83d", half % b"de00", DONE).content == "😀"


def test_half_a_surrogate_pair_alone_becomes_the_replacement_character() -> None:
    assert read(b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n', DONE).content == "a\ufffd"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_under_either_name(name: str) -> None:
    reply = read(event({name: "hm"}) + HELLO)
    assert (reply.reasoning_content, reply.content) == ("hm", "好的 [[7]]")


def test_usage_and_model_are_read_from_any_event() -> None:
    usage = b'data: {"choices": [], "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}\n\n'
    reply = read(event({"content": "x"}, "stop") + usage + DONE)
    assert (reply.model, reply.usage.prompt_tokens, reply.usage.completion_tokens) == ("m", 3, 4)


def test_a_stream_that_ends_after_its_finish_reason_is_whole() -> None:
    assert read(event({"content": "x"}, "stop")).finish_reason == "stop"


@pytest.mark.parametrize("stream", [event({"content": "x"}), event({"content": "x"}) + b'data: {"choi'])
def test_a_stream_without_an_end_is_cut(stream: bytes) -> None:
    assert code_of(stream) == "cut"


def test_only_the_first_of_several_answers_is_read() -> None:
    other = b'data: {"choices": [{"index": 1, "delta": {"content": "no"}}]}\n\n'
    assert read(event({"content": "yes"}), other, DONE).content == "yes"


def test_pieces_of_a_tool_call_are_put_together() -> None:
    def piece(**function: str) -> bytes:
        return event({"tool_calls": [{"index": 0, "function": function}]})

    reply = read(piece(name="f", arguments='{"a"'), piece(arguments=": 1}"), DONE)
    assert reply.tool_calls == [{"function": {"name": "f", "arguments": '{"a": 1}'}}]


def test_one_json_document_is_a_reply_too() -> None:
    document = {"choices": [{"message": {"content": "[[7]]"}, "finish_reason": "stop"}]}
    reply = read(json.dumps(document, indent=1).encode())
    assert (reply.content, reply.streamed) == ("[[7]]", False)


def test_content_may_come_as_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert read(event({"content": parts}), DONE).content == "ab"


def test_a_reply_cut_by_its_token_limit_is_a_reply_that_says_so() -> None:
    assert read(event({"content": "x"}, "length"), DONE).finish_reason == "length"


@pytest.mark.parametrize(
    ("finish", "code"),
    [("stop", "empty_reply"), ("length", "truncated"), ("content_filter", "content_filter")],
)
def test_a_reply_that_says_nothing_is_an_error_of_its_own(finish: str, code: str) -> None:
    assert code_of(event({"reasoning_content": "hm"}, finish), DONE) == code


def test_an_empty_reply_says_that_its_text_is_in_the_reasoning() -> None:
    with pytest.raises(JudgeError) as caught:
        read(event({"reasoning_content": "hm"}, "stop"), DONE)
    assert caught.value.message == reply_reader.ONLY_REASONING


def test_an_empty_reply_goes_with_its_error() -> None:
    with pytest.raises(JudgeError) as caught:
        read(event({"reasoning_content": "hm"}, "stop"), DONE)
    assert caught.value.reply is not None
    assert caught.value.reply.reasoning_content == "hm"


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({"error": {"message": "boom"}}, "server_error"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limited"),
        ({"error": {"message": "busy", "type": "overloaded_error"}}, "overloaded"),
        ({"error": "boom"}, "server_error"),
        ({"object": "error", "message": "maximum context length is 5", "code": 400}, "context_too_long"),
    ],
)
def test_an_error_reported_within_the_stream_is_an_error(found: dict[str, Any], code: str) -> None:
    assert code_of(HELLO[:60], b"\n\ndata: " + json.dumps(found).encode() + b"\n\n") == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"code": 1301, "msg": "no"}', "content_filter"),
        (
            b'{"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": null}',
            "quota",
        ),
        (b'[{"error": {"code": 429, "message": "slow down"}}]', "rate_limited"),
        (b'data: {"code": 1113, "msg": "arrears"}\n\n', "quota"),
        (b"event: error\ndata: Insufficient balance\n\n", "quota"),
        (b'event: error\ndata: {"message": "Too many requests"}', "rate_limited"),
        (b'event: error\ndata: {"message":\ndata: "boom"}\n\n', "server_error"),
    ],
)
def test_a_body_that_reports_an_error_is_an_error(body: bytes, code: str) -> None:
    assert code_of(body) == code


@pytest.mark.parametrize(
    "fields",
    [b'"code": 0', b'"code": 200, "msg": "ok"', b'"base_resp": {"status_code": 0}', b'"error": null'],
)
def test_a_body_that_reports_success_is_a_reply(fields: bytes) -> None:
    assert read(b'{%s, "choices": [{"message": {"content": "x"}}]}' % fields).content == "x"
    assert read(b'data: {%s, "choices": [{"delta": {"content": "x"}}]}\n\n' % fields + DONE).content == "x"


def message_of(*pieces: bytes) -> str:
    with pytest.raises(JudgeError) as caught:
        read(*pieces)
    return caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        b"event: error\ndata: we are closed\n\n",
        b'event: error\ndata: {"message": "we are closed"}\n\n',
        b'data: {"detail": "we are closed"}\n\n',
        b"<html>\n<h1>we are\n closed</h1>\n</html>",
        b"data: we are closed\n\n",
        b'{"detail": "we are closed"}',
    ],
)
def test_the_servers_words_are_in_the_error(body: bytes) -> None:
    assert "we are closed" in message_of(body)


def test_nul_is_replaced_everywhere() -> None:
    call = [{"index": 0, "function": {"name": "f\0", "arguments": "\0"}}]
    reply = read(
        event({"content": "a\0", "reasoning": "b\0", "tool_calls": call}, "stop\0", model="m\0"), DONE
    )
    assert "\0" not in f"{reply.content}{reply.reasoning_content}{reply.finish_reason}{reply.model}"
    assert reply.tool_calls == [{"function": {"name": "f\ufffd", "arguments": "\ufffd"}}]


@pytest.mark.parametrize(
    "nonsense",
    [
        b"",
        b"\n\n",
        b"<html>Login</html>",
        b"data: <html>\n\n",
        b'{"a": 1}',
        b"{",
        b"\xff\xfe",
        b"data: [1]\n\n",
    ],
)
def test_what_is_no_reply_is_a_bad_reply(nonsense: bytes) -> None:
    assert code_of(nonsense) == "bad_reply"


def test_deep_nonsense_is_a_bad_reply() -> None:
    assert code_of(b'{"a":' * 100_000) == "bad_reply"


def test_a_reply_without_end_is_too_long() -> None:
    piece = event({"content": "x" * 100_000})
    assert code_of(*[piece] * (reply_reader.MAX_TEXT // 100_000 + 1)) == "too_long"


def test_a_line_without_end_is_too_long() -> None:
    assert code_of(*[b"data: " + b"x" * 2**20] * 5) == "too_long"


@pytest.mark.parametrize(
    "stream",
    [
        b'data: {"choices": [\n' + b"data: 1,\n" * 200_000,
        b"data: {}\n" * 200_000,
        b"data: x\n\n" * 200_000,
        b"event: error\n" + b"data: x\n" * 200_000,
    ],
)
def test_what_never_becomes_an_answer_is_a_bad_reply_soon(stream: bytes) -> None:
    started = time.process_time()
    assert (
        code_of(*(stream[start : start + 16_384] for start in range(0, len(stream), 16_384))) == "bad_reply"
    )
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 2**18, b'{"a": "' + b"x" * 2**18])
def test_a_long_line_is_not_copied_for_each_byte(stream: bytes) -> None:
    started = time.process_time()
    assert code_of(*(stream[start : start + 1] for start in range(len(stream)))) == "bad_reply"
    assert time.process_time() - started < 3.0


def test_each_piece_is_reported_as_it_arrives() -> None:
    received: list[tuple[str, str]] = []
    assembly = ReplyReader(on_text=lambda kind, text: received.append((kind, text)))
    assembly.feed(event({"reasoning": "hm"}) + event({"content": "x"}))
    assert received == [("reasoning", "hm"), ("content", "x")]


DEEP = [b"[" * 990 + b"]" * 990, b'[{"a":' * 500 + b"1" + b"}]" * 500, b"[" * 100_000]


@pytest.mark.parametrize("nest", DEEP)
@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[{"message":{"content":"x","tool_calls":%s}}]}',
        b'{"choices":[{"message":{"content":"\\ud800","tool_calls":%s}}]}',
        b'{"choices":[{"message":{"content":%s}}]}',
        b'{"usage":%s,"choices":[{"message":{"content":"x"}}]}',
        b'{"error":%s}',
        b'{"error":{"message":%s}}',
        b'data: {"choices":[{"delta":{"content":"x","tool_calls":%s}}]}\n\ndata: [DONE]\n\n',
        b'data: {"error":%s}\n\n',
    ],
)
def test_a_reply_that_is_nested_too_deeply_is_no_reply(body: bytes, nest: bytes) -> None:
    assert code_of(body % nest) == "bad_reply"


def test_a_nest_over_several_lines_is_no_reply() -> None:
    assert code_of(b'data: {"choices":\n' + b"data: [\n" * 200) == "bad_reply"
