import json
from typing import Any

import pytest

from judging.core.judges.error_responses import error_for_status
from judging.core.judges.refused_parameters import SYSTEM_ROLE, refused_parameters
from judging.core.judges.settings import without

REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "separate_reasoning": True,
    "temperature": 0,
    "max_tokens": 9,
    "top_p": 0.5,
    "stop": ["x"],
    "response_format": {"type": "json_object"},
}


def refused(message: str, **error: Any) -> frozenset[str]:
    return error_for_status(
        400, {}, json.dumps({"error": {"message": message, **error}}).encode(), REQUEST
    ).refused


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("Unknown parameter: 'separate_reasoning'", {"separate_reasoning"}),
        ("stream_options: Extra inputs are not permitted", {"stream_options"}),
        ("Streaming is not supported for this model", {"stream"}),
        (
            "'temperature' does not support 0 with this model. Only the default (1) value is supported",
            {"temperature"},
        ),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"max_tokens"}),
        ("Unsupported parameter: 'top_p' is not supported with this model.", {"top_p"}),
        ("Unsupported parameter: 'top_p'. Supported parameters: temperature, stop.", {"top_p"}),
        ("Unrecognized request argument supplied: stop", {"stop"}),
        ("Unrecognized request arguments supplied: top_p, stop", {"top_p", "stop"}),
        ("top_p and stop are not supported", {"top_p", "stop"}),
        ("stop sequences are not supported by this model", {"stop"}),
        ("This model does not support response_format", {"response_format"}),
        ("JSON mode is not supported for this model", {"response_format"}),
        ("模型不支持 top_p 参数", {"top_p"}),
        ("`temperature` and `top_p` cannot both be specified for this model.", {"top_p+temperature"}),
        ("System role not supported", {SYSTEM_ROLE}),
        ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", {SYSTEM_ROLE}),
        ("Conversation roles must alternate user/assistant/user/assistant/...", {SYSTEM_ROLE}),
        ("temperature must be at most 2", set()),
        ("max_tokens is too large: 99999", set()),
        ("This is not supported. Please stop.", set()),
        ("top_k is not supported", set()),
    ],
)
def test_the_parameters_that_a_text_rejects_are_found(message: str, names: set[str]) -> None:
    assert refused(message) == names


def test_a_parameter_that_is_named_apart_from_the_text_is_found() -> None:
    assert refused("Unsupported parameter.", param="response_format") == {"response_format"}


def test_a_validation_error_names_its_parameters() -> None:
    entries = [
        {"loc": ["body", "top_p"], "msg": "Extra inputs are not permitted", "input": {"temperature": 0}},
        {"loc": ["body", "stop"], "msg": "Extra inputs are not permitted"},
        {"loc": ["body", "max_tokens"], "msg": "Field too large"},
    ]
    error = error_for_status(422, {}, json.dumps({"detail": entries}).encode(), REQUEST)
    assert (error.code, error.refused) == ("refused_parameter", {"top_p", "stop"})
    assert error.message.startswith("body.top_p: Extra inputs are not permitted")


def test_a_template_that_cannot_render_a_system_message_is_no_server_error() -> None:
    body = b'{"error": {"code": 500, "message": "System role not supported", "type": "server_error"}}'
    assert error_for_status(500, {}, body, REQUEST).refused == {SYSTEM_ROLE}
    assert error_for_status(500, {}, b"top_p is not supported", REQUEST).code == "server_error"


def test_without_a_system_message_its_role_is_not_rejected() -> None:
    text = "System role not supported"
    assert not refused_parameters(text, {"messages": [{"role": "user", "content": "hi"}]})


def test_a_rejected_system_message_begins_the_users() -> None:
    assert without(REQUEST, frozenset({SYSTEM_ROLE}))["messages"] == [
        {"role": "user", "content": "be brief\n\nhi"}
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([{"role": "system", "content": "a"}], [{"role": "user", "content": "a"}]),
        (
            [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "image_url"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}],
        ),
        (
            [{"role": "assistant", "content": "b"}, {"role": "system", "content": "a"}],
            [{"role": "assistant", "content": "b"}, {"role": "user", "content": "a"}],
        ),
    ],
)
def test_no_system_text_is_lost(messages: list[Any], expected: list[Any]) -> None:
    assert without({"messages": messages}, frozenset({SYSTEM_ROLE}))["messages"] == expected


def test_of_two_parameters_that_exclude_each_other_one_is_left_out() -> None:
    refuses = frozenset({"top_p+temperature"})
    assert without({"top_p": 1, "temperature": 0}, refuses) == {"temperature": 0}
    assert without({"top_p": 1}, refuses) == {"top_p": 1}
