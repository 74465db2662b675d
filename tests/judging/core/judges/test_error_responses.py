import json
from datetime import UTC, datetime

import pytest

from judging.core.judges.error_responses import (
    error_for_status,
    error_in_body,
    reset_seconds,
    retry_after_seconds,
    server_words,
)
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
    ("body", "code"),
    [
        ({"code": 1301, "msg": "系统检测到输入或生成内容可能包含不安全或敏感内容"}, "content_filter"),
        ({"code": "1301", "msg": "blocked"}, "content_filter"),
        ({"error": {"code": "1113", "message": "Your account is in arrears"}}, "quota"),
        ({"error": {"code": "1302", "message": "High concurrency usage"}}, "rate_limited"),
        ({"code": 30001, "message": "Sorry, your account balance is insufficient", "data": None}, "quota"),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "quota"),
        ({"base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}}, "content_filter"),
        ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, "rate_limited"),
        ({"base_resp": {"status_code": 2056, "status_msg": "usage limit exceeded"}}, "quota"),
        ({"base_resp": {"status_code": 9999, "status_msg": "what"}}, "server_error"),
        ({"error": {"code": "1305", "message": "该模型当前访问量过大，请您稍后再试"}}, "overloaded"),
        ({"error": {"code": "1309", "message": "Your GLM Coding Plan package has expired"}}, "quota"),
        ({"error": {"message": "insufficient balance"}}, "quota"),
        ({"error": {"message": "Invalid API key"}}, "bad_key"),
        ({"error": {"message": "boom"}}, "server_error"),
        ({"success": False, "message": "请求过于频繁，已限流"}, "rate_limited"),
        ({"error": {"code": 500, "message": "余额不足"}}, "quota"),
        ({"error": {"type": "overloaded_error", "message": "the model is not available"}}, "overloaded"),
        ({"code": 2013, "msg": "invalid", "error": {"code": 400}}, "bad_request"),
        ("Rate limit reached", "rate_limited"),
    ],
)
def test_an_error_in_a_body_is_reported_by_its_number_and_words(body: object, code: str) -> None:
    assert error_in_body(body, 200).code == code


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"code": 1301, "msg": "blocked"}, "blocked"),
        ({"base_resp": {"status_code": 1008, "status_msg": "no money"}}, "no money"),
        ("plain words", "plain words"),
    ],
)
def test_an_error_in_a_body_keeps_the_servers_words(body: object, words: str) -> None:
    assert error_in_body(body, 200).message == words


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


@pytest.mark.parametrize("body", ["<" * 60_000, "<script" * 9_000, "input" * 12_000, "<a" * 30_000])
def test_no_error_text_takes_long_to_read(body: str) -> None:
    assert error_for_status(400, {}, body.encode()).code == "bad_request"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"x-ratelimit-reset-requests": "6m1.5s"}, 361.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "1s"}, None),
        ({"x-ratelimit-reset": "1761955230"}, 30.0),
        ({"x-ratelimit-reset": "1761955230000"}, 30.0),
        ({"x-ratelimit-reset": "soon"}, None),
    ],
)
def test_the_time_until_a_limit_is_reset_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert reset_seconds(headers, datetime(2025, 11, 1, tzinfo=UTC)) == seconds


def test_a_rate_limit_without_a_time_to_wait_uses_the_limits_reset() -> None:
    assert error_for_status(429, {"x-ratelimit-reset-requests": "7s"}, b"").retry_after == 7.0


def test_every_code_belongs_to_one_branch() -> None:
    assert len(ERROR_CODES) == sum(len(branch.codes) for branch in BRANCHES)
