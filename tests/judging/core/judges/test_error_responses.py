import json
from datetime import UTC, datetime

import pytest

from judging.core.judges.error_responses import error_for_status, redacted, retry_after_seconds, server_words
from judging.core.judges.errors import BRANCHES, ERROR_CODES


def code_for(status: int, message: str = "", **fields: str) -> str:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return error_for_status(status, {}, body).code


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (302, "", "redirected"),
        (400, "nope", "bad_request"),
        (400, "This model's maximum context length is 4096 tokens; reduce max_tokens", "context_too_long"),
        (400, "The response was filtered due to the content management policy", "content_filter"),
        (400, "API key not valid. Please pass a valid API key: API key is invalid", "bad_key"),
        (400, "The model `x` does not exist.", "unknown_model"),
        (401, "", "bad_key"),
        (402, "Insufficient Balance", "quota"),
        (403, "", "forbidden"),
        (404, "Not Found", "not_found"),
        (404, "The model `x` does not exist.", "unknown_model"),
        (413, "", "context_too_long"),
        (418, "teapot", "bad_request"),
        (429, "Rate limit reached", "rate_limited"),
        (429, "You exceeded your current quota", "quota"),
        (500, "content_filter crashed", "server_error"),
        (502, "", "server_error"),
        (503, "", "overloaded"),
        (504, "", "server_error"),
        (529, "", "overloaded"),
    ],
)
def test_a_refusal_is_reported_by_its_status_and_words(status: int, message: str, code: str) -> None:
    assert code_for(status, message) == code


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unknown parameter: 'separate_reasoning'", "separate_reasoning"),
        ("stream_options: Extra inputs are not permitted", "stream_options"),
        ("Streaming is not supported for this model", "stream"),
        ("'temperature' does not support 0 with this model. Only the default (1) value", "temperature"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
    ],
)
def test_a_parameter_refused_by_name_is_known(message: str, name: str) -> None:
    error = error_for_status(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert (error.code, error.refused) == ("refused_parameter", {name})


def test_a_validation_error_names_its_parameter() -> None:
    body = b'{"detail": [{"loc": ["body", "separate_reasoning"], "msg": "Extra inputs are not permitted"}]}'
    error = error_for_status(422, {}, body)
    assert error.refused == {"separate_reasoning"}
    assert error.message == "body.separate_reasoning: Extra inputs are not permitted"


@pytest.mark.parametrize("message", ["temperature must be at most 2", "max_tokens is too large: 99999"])
def test_a_wrong_value_is_no_refused_parameter(message: str) -> None:
    assert code_for(400, message) == "bad_request"


def test_a_quota_that_fills_again_is_a_rate_limit() -> None:
    body = b'{"error": {"message": "You exceeded your current quota"}}'
    assert error_for_status(429, {"retry-after": "20"}, body).code == "rate_limited"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sat, 01 Nov 2025 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 31 Oct 2025 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_how_long_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, datetime(2025, 11, 1, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "a\\n  b"}}', "a b"),
        ('{"error": "a"}', "a"),
        ('{"message": "a"}', "a"),
        ('{"detail": "a"}', "a"),
        ("<html><style>x{}</style><h1>502</h1> Bad Gateway</html>", "502 Bad Gateway"),
        ('{"other": 1}', '{"other":1}'),
        ("", ""),
    ],
)
def test_the_servers_words_are_found(body: str, words: str) -> None:
    assert server_words(body) == words


def test_the_servers_words_are_cut() -> None:
    assert len(server_words("x" * 10_000)) == 500


def test_secrets_are_taken_out_of_messages() -> None:
    assert redacted("key sk-1234 is wrong", ("sk-1234",)) == "key ••• is wrong"


def test_every_code_belongs_to_one_branch() -> None:
    assert len(ERROR_CODES) == sum(len(branch.codes) for branch in BRANCHES)
