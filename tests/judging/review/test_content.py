"""Rendering of messages: tool calls with their results, images that are displayed or only named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judging.review.content import MOST_IMAGE, calls_of, images_in, parts_of, turns_of, with_parts

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bern"}'}}


def test_the_result_of_a_tool_call_is_with_the_call() -> None:
    turns = turns_of(
        [
            {"role": "user", "content": "How warm?"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": '{"degrees":7}'},
            {"role": "assistant", "content": "7 degrees."},
        ]
    )
    assert [turn.role for turn in turns] == ["user", "assistant", "assistant"]
    (call,) = turns[1].calls
    assert (call.name, call.arguments) == ("weather", '{\n  "city": "Bern"\n}')
    assert call.result == '{\n  "degrees": 7\n}'


def test_the_result_of_an_unknown_call_is_a_message_of_its_own() -> None:
    (turn,) = turns_of([{"role": "tool", "tool_call_id": "c9", "content": "7"}])
    assert (turn.role, turn.parts[0].text) == ("tool", "7")


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    (call,) = calls_of([{"function": {"name": "f", "arguments": "city=Bern"}}])
    assert (call.arguments, call.result) == ("city=Bern", None)


@pytest.mark.parametrize("given", ["a text", {"function": None}, 7])
def test_a_call_of_another_shape_is_shown_as_json(given: Any) -> None:
    (call,) = calls_of([given])
    assert json.loads(call.arguments) == given


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "text", "text": "hello"}, "text"),
        ({"type": "image_url", "image_url": {"url": PIXEL}}, "image"),
        ({"type": "input_image", "image_url": PIXEL}, "image"),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "remote"),
        ({"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz4="}}, "other"),
        ({"type": "image_url", "image_url": {"url": "data:text/html;base64,PGI+"}}, "other"),
        ({"type": "image_url", "image_url": {"url": PIXEL[:-1] + "A" * MOST_IMAGE}}, "other"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA"}}, "other"),
    ],
)
def test_parts_are_shown_by_their_kind(part: dict[str, Any], kind: str) -> None:
    assert [one.kind for one in parts_of([part])] == [kind]


def test_uploaded_parts_take_the_place_of_the_joined_text() -> None:
    row = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 2}]})
    (message,) = with_parts([{"role": "user", "content": "aa"}], row, 0)
    assert len(parts_of(message["content"])) == 2


def test_a_response_s_own_earlier_messages_keep_their_text() -> None:
    row = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "last"}]}]})
    own = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "mine"}]
    found = with_parts([*own, {"role": "user", "content": "last"}], row, 2)
    assert [one["content"] for one in found[:2]] == ["first", "mine"]
    assert found[2]["content"] == [{"type": "text", "text": "last"}]


def test_images_in_fields_are_found() -> None:
    assert [name for name, _part in images_in({"photo": PIXEL, "note": "data:", "id": 1})] == ["photo"]
