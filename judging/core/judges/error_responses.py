"""Converts a server's error response (status, headers, body) to a JudgeError.

Services agree only roughly on the meaning of a status, so within a status the wording decides. The wordings are those
of OpenAI, Azure, vLLM, SGLang, DeepSeek, DashScope and the gateways in front of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from judging.core.judges.errors import ERROR_CODES, JudgeError

MAX_MESSAGE = 500

_BY_STATUS = {
    401: "bad_key",
    402: "quota",
    403: "forbidden",
    404: "not_found",
    408: "overloaded",
    409: "overloaded",
    413: "context_too_long",
    422: "bad_request",
    425: "overloaded",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}


# Code, the statuses from the table above for which the wording is checked, and the wording. For 400 and statuses
# missing from the table, all wordings are checked.
_BY_WORDING = tuple(
    (code, statuses, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for code, statuses, pattern in (
        (
            "quota",
            {402, 403, 429},
            r"insufficient_quota|insufficient.balance|exceeded your current quota|arrearage|余额不足|欠费",
        ),
        (
            "content_filter",
            {403, 422},
            r"content.?filter|content management policy|data_?inspection_?failed|敏感",
        ),
        (
            "context_too_long",
            {422},
            r"context.?length|context.?window|maximum input"
            r"|(input|prompt|request|message)\S* (is|are|was) (too long|longer)",
        ),
        (
            "bad_key",
            set[int](),
            r"invalid_api_key|(invalid|incorrect|wrong|missing|expired)\W+(\w+\W+)?api.?key"
            r"|api.?key\W+(\w+\W+){0,3}(invalid|incorrect)",
        ),
        (
            "unknown_model",
            {403, 404, 422},
            r"model_not_found|(unknown|invalid|no such) model|模型不存在"
            r"|model\b.{0,120}?(does not exist|doesn't exist|not found|not exist|is not available)",
        ),
    )
)
_UNSUPPORTED = re.compile(
    r"un(supported|recognized|known|expected)|not (\w+ )?(support|permit|allow|recogni[sz]|accept)"
    r"|extra (inputs?|fields?|forbidden)|extra_forbidden|invalid (param|arg|field)|only the default|不支持",
    re.I,
)


def error_for_status(status: int, headers: Mapping[str, str], body: bytes) -> JudgeError:
    """The error for a response with status 3xx-5xx; `body` may be truncated or empty."""
    text = body.decode("utf-8", "replace")
    if 300 <= status < 400:
        return _error("redirected", headers.get("location", ""), status)
    retry_after = retry_after_seconds(headers)
    code = _code(status, text)
    if code == "quota" and retry_after is not None:
        # Some services also call the rate limit a quota, but send a `Retry-After` with it.
        code = "rate_limited"
    return _error(code, text, status, retry_after)


def error_in_body(error: Any, status: int) -> JudgeError:
    """The error in the body of a response with a success status."""
    text = json.dumps(error, ensure_ascii=False).encode("utf-8", "replace").decode()
    return _error(_code(_status_in(error), text), text, status)


def _error(code: str, text: str, status: int, retry_after: float | None = None) -> JudgeError:
    refused = refused_parameters(text) if code == "bad_request" else frozenset()
    code = "refused_parameter" if refused else code
    message = text if code == "redirected" else server_words(text)
    return ERROR_CODES[code](code, message, status=status, retry_after=retry_after, refused=refused)


def refused_parameters(text: str) -> frozenset[str]:
    """The droppable parameters that an error text rejects.

    Parameters that we added count if they are mentioned at all. Those set by the user count only if the text says that
    they are unsupported: "temperature must be below 2" is about the value.
    """
    ours = frozenset(name for name in ("separate_reasoning", "stream_options") if name in text)
    if ours:
        return ours
    unsupported = _UNSUPPORTED.search(text) is not None
    if unsupported and re.search(r"\bstream(ing)?\b", text, re.I):
        return frozenset({"stream"})
    if "max_completion_tokens" in text and "max_tokens" in text:
        return frozenset({"max_tokens"})
    return frozenset({"temperature"}) if unsupported and "temperature" in text else frozenset()


def retry_after_seconds(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """How long the server asks to wait, in seconds; the header gives milliseconds, seconds or an HTTP date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    return seconds if seconds is not None else _seconds_until(value, now or datetime.now(UTC))


def server_words(text: str) -> str:
    """The human-readable part of an error body, on one line, truncated."""
    try:
        found = _message(msgspec.json.decode(text))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        found = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text[:20_000], flags=re.S | re.I)
    return " ".join(found.split())[:MAX_MESSAGE]


def redacted(message: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        message = message.replace(secret, "•••")
    return message


def _code(status: int, text: str) -> str:
    known = _BY_STATUS.get(status)
    if status < 500:
        for code, statuses, wording in _BY_WORDING:
            if (known is None or status in statuses) and wording.search(text):
                return code
    return known or ("server_error" if status >= 500 else "bad_request")


def _status_in(error: Any) -> int:
    """The status in an error object; 500 if it has none."""
    if not isinstance(error, dict):
        return 500
    nested = error.get("error")
    inner = nested if isinstance(nested, dict) else error
    for name in ("code", "status", "status_code", "type"):
        value = inner.get(name)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
        if isinstance(value, str) and value.lower() in _STATUS_BY_NAME:
            return _STATUS_BY_NAME[value.lower()]
    return 500


_STATUS_BY_NAME = {
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "content_filter": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "overloaded_error": 529,
    "service_unavailable": 503,
}


def _message(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(_message(item) for item in value[:5])
    if not isinstance(value, dict):
        return ""
    if "msg" in value:  # FastAPI: {"loc": ["body", "x"], "msg": "…"}
        return f"{'.'.join(str(part) for part in value.get('loc') or ())}: {value['msg']}"
    for name in ("error", "message", "detail", "errors", "error_msg"):
        if value.get(name):
            return _message(value[name])
    return msgspec.json.encode(value).decode()


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _seconds_until(value: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
