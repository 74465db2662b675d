"""Converts a server's error (status, headers, body) to a JudgeError.

Services agree only roughly on the meaning of a status, so within a status the wording decides. The wordings are those
of OpenAI, Azure, vLLM, SGLang, DeepSeek, DashScope, Zhipu, MiniMax and the gateways in front of them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from judging.core.judges.errors import ERROR_CODES, JudgeError
from judging.core.judges.refused_parameters import refused_parameters

MOST_WORDS = 20_000  # characters of an error text that are looked at

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
            r"insufficient.(\w+.)?(quota|balance|credit|fund)|balance is (insufficient|not enough)"
            r"|exceeded your current quota|arrear|(credit|quota)\w* (is |are )?exhausted|余额不足|欠费|额度不足",
        ),
        (
            "content_filter",
            {403, 422},
            r"content.?filter|content management policy|data_?inspection_?failed|new_sensitive"
            r"|sensitive (content|word|info)|敏感|违规|不安全",
        ),
        (
            "context_too_long",
            {422},
            r"context.?length|context.?window|maximum input"
            r"|(input|prompt|request|message)\S{0,40} (is|are|was) (too long|longer)",
        ),
        (
            "bad_key",
            set[int](),
            r"invalid_api_key|(invalid|incorrect|wrong|missing|expired)\W+(\w+\W+)?api.?key"
            r"|api.?key\W+(\w+\W+){0,3}(invalid|not valid|incorrect|无效|错误|过期)|身份验证失败",
        ),
        (
            "unknown_model",
            {403, 404, 422},
            r"model_not_found|(unknown|invalid|no such) model|模型不存在"
            r"|model\b.{0,120}?(does not exist|doesn't exist|not found|not exist|is not available)",
        ),
    )
)
# Only for errors without a status.
_TEMPORARY = (
    ("rate_limited", re.compile(r"rate.?limit|too many requests|throttl|限流|频率|并发", re.IGNORECASE)),
    ("overloaded", re.compile(r"overload|too busy|繁忙|过载", re.IGNORECASE)),
)

# Numbers of services that say more than their texts, from docs.z.ai/api-reference/api-code and docs.siliconflow.cn. Not
# checked, because those pages do not list them, only replies that others quote: 1261, 1305, 30001, 50505.
_BY_NUMBER = {
    1113: "quota",
    1211: "unknown_model",
    1261: "context_too_long",
    1300: "content_filter",
    1301: "content_filter",
    1302: "rate_limited",
    1303: "rate_limited",
    1304: "quota",
    1305: "overloaded",
    1308: "quota",
    1309: "quota",
    20012: "unknown_model",
    30001: "quota",
    50505: "overloaded",
}
# MiniMax's numbers in `base_resp`, from platform.minimax.io/docs/api-reference/errorcode. Not checked there, only in a
# reply that an issue of MiniMax's own repository quotes: 2056.
_BY_BASE_RESP = {
    1000: "server_error",
    1001: "server_error",
    1002: "rate_limited",
    1004: "bad_key",
    1008: "quota",
    1024: "server_error",
    1026: "content_filter",
    1027: "content_filter",
    1033: "server_error",
    1039: "rate_limited",
    1041: "rate_limited",
    1042: "bad_request",
    2013: "bad_request",
    2045: "rate_limited",
    2049: "bad_key",
    2056: "quota",
}
_NO_ERROR = (None, "", 0, "0", 200, "200", "success", "Success", "SUCCESS", "ok", "OK")


def error_for_status(
    status: int, headers: Mapping[str, str], body: bytes, request: Mapping[str, Any] | None = None
) -> JudgeError:
    """The error for a response to `request` with status 3xx-5xx; `body` may be truncated or empty."""
    text = _unescaped(body.decode("utf-8", "replace"))
    if 300 <= status < 400:
        return ERROR_CODES["redirected"]("redirected", headers.get("location", ""), status=status)
    retry_after = retry_after_seconds(headers)
    code = _code(status, text)
    if code == "quota" and retry_after is not None:
        # Some services also call the rate limit a quota, but send a `Retry-After` with it.
        code = "rate_limited"
    if code == "rate_limited" and retry_after is None:
        retry_after = reset_seconds(headers)
    return _error(code, text, status, request, retry_after)


def is_error(body: Any) -> bool:
    """Whether the body of a response with a success status reports an error."""
    if not isinstance(body, dict):
        return False
    base = body.get("base_resp")
    if isinstance(base, dict) and base.get("status_code") not in _NO_ERROR:
        return True
    if body.get("error") or body.get("object") == "error":
        return True
    if body.get("choices"):
        return False
    return body.get("success") is False or any(
        body.get(name) not in _NO_ERROR for name in ("code", "error_code", "errcode")
    )


def error_in_body(body: Any, status: int, request: Mapping[str, Any] | None = None) -> JudgeError:
    """The error in the body of a response with a success status: a JSON value, or a text."""
    text = _as_text(body)
    return _error(_code_in(body, text), text, status, request)


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _unescaped(text: str) -> str:
    """JSON with its characters themselves instead of \\u escapes, so that wordings are found; other texts unchanged."""
    if "\\u" not in text:
        return text
    try:
        return _as_text(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _error(
    code: str,
    text: str,
    status: int,
    request: Mapping[str, Any] | None,
    retry_after: float | None = None,
) -> JudgeError:
    refused = frozenset[str]()
    if code in ("bad_request", "server_error"):
        refused = refused_parameters(text, request or {}, by_server_error=code == "server_error")
    code = "refused_parameter" if refused else code
    return ERROR_CODES[code](
        code, server_words(text), status=status, retry_after=retry_after, refused=refused
    )


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


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS_OF = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def reset_seconds(
    headers: Mapping[str, str], now: datetime | None = None, *, unknown: str = "0"
) -> float | None:
    """How long until the limit that is used up allows more, by `x-ratelimit-*` headers; None if they don't say.

    `unknown`: what remains of a limit if no header says so; after a rejection, nothing."""
    waits = []
    for kind in ("-requests", "-tokens", ""):
        reset = headers.get(f"x-ratelimit-reset{kind}")
        if reset and _number(headers.get(f"x-ratelimit-remaining{kind}") or unknown) == 0:
            waits.append(_reset(reset.strip(), now or datetime.now(UTC)))
    return max((seconds for seconds in waits if seconds is not None), default=None)


def _reset(value: str, now: datetime) -> float | None:
    """Seconds of a duration like 6m0s or 1.5, or until a Unix time in seconds or milliseconds."""
    if re.fullmatch(rf"(?:{_DURATION.pattern})+", value):
        return sum(float(number) * _SECONDS_OF[unit] for number, unit in _DURATION.findall(value))
    try:
        number = float(value)
    except ValueError:
        return None
    if not 0 <= number < 1e14:
        return None
    if number < 1e8:
        return number
    return max(0.0, (number / 1000 if number > 1e11 else number) - now.timestamp())


def server_words(text: str) -> str:
    """The human-readable part of an error body."""
    try:
        words = _message(msgspec.json.decode(text))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        words = html.unescape(_without_tags(text[:MOST_WORDS]))
    return " ".join(words[:MOST_WORDS].split())


_TAG = re.compile(r"<[^<>]*>")


def _without_tags(text: str) -> str:
    """The text of an HTML page, without scripts and styles."""
    for name in ("script", "style"):
        lower, parts, at = text.lower(), [], 0
        while (start := lower.find(f"<{name}", at)) >= 0 and (end := lower.find(f"</{name}>", start)) >= 0:
            parts.append(text[at:start])
            at = end
        text = "".join([*parts, text[at:]])
    return _TAG.sub(" ", text)


def _code(status: int, text: str) -> str:
    text = text[:MOST_WORDS]
    by_status = _BY_STATUS.get(status)
    if status < 500:
        for code, statuses, wording in _BY_WORDING:
            if (by_status is None or status in statuses) and wording.search(text):
                return code
    return by_status or ("server_error" if status >= 500 else "bad_request")


def _code_in(body: Any, text: str) -> str:
    """The code of an error in a body: by its number, its wording, and the status that it names, in this order."""
    text = text[:MOST_WORDS]
    base = body.get("base_resp") if isinstance(body, dict) else None
    if isinstance(base, dict) and base.get("status_code"):
        number, numbers = _whole(base.get("status_code")), _BY_BASE_RESP
    else:
        number, numbers = _number_in(body), _BY_NUMBER
    if number in numbers:
        return numbers[number]
    status = _status_in(body)
    if status is not None and status < 500:
        return _code(status, text)
    for code, _statuses, wording in _BY_WORDING:
        # An error of the server itself may mention a model or a key, but a filter or a balance will not change.
        if (status is None or code in ("quota", "content_filter")) and wording.search(text):
            return code
    temporary = (code for code, wording in _TEMPORARY if wording.search(text))
    return _code(status, text) if status is not None else next(temporary, "server_error")


def _inner(body: Any) -> Mapping[str, Any]:
    """The object that describes the error: the body itself, or its `error`."""
    if not isinstance(body, dict):
        return {}
    nested = body.get("error")
    return nested if isinstance(nested, dict) else body


def _number_in(body: Any) -> int | None:
    inner = _inner(body)
    return next((number for name in ("code", "error_code") if (number := _whole(inner.get(name)))), None)


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _status_in(body: Any) -> int | None:
    """The HTTP status that an error names, or that its type stands for; None if there is none."""
    inner = _inner(body)
    for name in ("code", "status", "status_code", "type"):
        value = inner.get(name)
        number = _whole(value)
        if number is not None and 400 <= number < 600:
            return number
        if isinstance(value, str) and value.lower() in _STATUS_BY_NAME:
            return _STATUS_BY_NAME[value.lower()]
    return None


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
    if "msg" in value:
        loc = value.get("loc")  # FastAPI: {"loc": ["body", "x"], "msg": "…"}
        place = ".".join(map(str, loc)) if isinstance(loc, list) else ""
        return f"{place}: {value['msg']}" if place else str(value["msg"])
    for name in ("error", "message", "detail", "errors", "error_msg", "errmsg", "status_msg", "base_resp"):
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
