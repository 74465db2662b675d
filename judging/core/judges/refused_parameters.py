"""Which parameters of a request an error text rejects, so that the request can be sent again without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

SYSTEM_ROLE = "system_role"
"""Stands for messages with the role system among the names of rejected parameters."""
TOGETHER = "+"
"""`top_p+temperature`: top_p is rejected in a request with temperature."""

_UNSUPPORTED = re.compile(
    r"un(supported|recognized|known|expected)|not (\w+ )?(support|permit|allow|recogni[sz]|accept)"
    r"|extra (inputs?|fields?|forbidden)|extra_forbidden|invalid (param|arg|field)|only the default|不支持",
    re.IGNORECASE,
)
_NOT_TOGETHER = re.compile(
    r"(cannot|can't|can not|may not|must not|not allowed to) "
    r"(both|be (used|set|specified|sent) (together|simultaneously))|only one of|not both|mutually exclusive|不能同时",
    re.IGNORECASE,
)
_SYSTEM_REFUSED = re.compile(
    r"\bsystem\b['\"`]?\s*(role|message|prompt|instruction)?s?\b.{0,40}?"
    r"((not|n't) (\w+ )?|un)(support|allow|permit|enable|recogni)"
    r"|\brole\b.{0,40}?(not|n't) (\w+ )?support.{0,20}?\bsystem\b|\bsystem\b.{0,10}?不支持|不支持.{0,10}?\bsystem\b"
    r"|unsupported.{0,20}?\bsystem\b|developer instruction is not enabled|roles must alternate",
    re.IGNORECASE | re.DOTALL,
)
_JSON_MODE = re.compile(r"json.?(mode|schema|object|output)|structured output", re.IGNORECASE)
_ADVICE = re.compile(r"\b(use|try|instead|supported (parameter|value|argument)s?)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.;!])\s+|[。；！]|\\n|\n")
_COMMON_WORDS = frozenset({"stop", "user", "n", "store", "tools", "seed", "metadata"})
_ADDED_BY_US = ("separate_reasoning", "stream_options")
_MOST_NAMES = 100
_MOST_TEXT = 20_000


def refused_parameters(
    text: str, request: Mapping[str, Any], *, by_server_error: bool = False
) -> frozenset[str]:
    """The parameters of `request` that an error text rejects.

    Parameters that we added count if they are mentioned at all. Those set by the user count only if the text says that
    they are unsupported: "temperature must be below 2" is about the value. Servers also answer with a server error to a
    system message that their template can't render.
    """
    whole, text = text, text[:_MOST_TEXT]
    if _has_system(request) and _SYSTEM_REFUSED.search(text):
        return frozenset({SYSTEM_ROLE})
    if by_server_error:
        return frozenset()
    ours = frozenset(name for name in _ADDED_BY_US if name in text)
    if ours:
        return ours
    names = [name for name in request if name not in ("model", "messages")][:_MOST_NAMES]
    if _NOT_TOGETHER.search(text):
        return _all_but_one([name for name in names if _is_named(name, text)])
    if "max_tokens" in request and "max_completion_tokens" in text and "max_tokens" in text:
        return frozenset({"max_tokens"})
    if not _UNSUPPORTED.search(text):
        return frozenset()
    return _structured(whole, names) or _named_in_text(text, names)


def _has_system(request: Mapping[str, Any]) -> bool:
    return any(message.get("role") == "system" for message in request.get("messages", ()))


def _all_but_one(names: list[str]) -> frozenset[str]:
    """Of parameters that exclude each other, temperature stays, or else the first."""
    stays = "temperature" if "temperature" in names else next(iter(names), "")
    return frozenset(f"{name}{TOGETHER}{stays}" for name in names if name != stays)


def _structured(text: str, names: Iterable[str]) -> frozenset[str]:
    """The parameters that a JSON error names apart from its text: OpenAI's `param`, FastAPI's `loc`."""
    try:
        body = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return frozenset()
    body = body if isinstance(body, dict) else {}
    error = body["error"] if isinstance(body.get("error"), dict) else body
    details = body.get("detail") if isinstance(body.get("detail"), list) else []
    places = [str(error.get("param") or "")]
    for detail in details or ():
        if isinstance(detail, dict) and _UNSUPPORTED.search(f"{detail.get('msg')} {detail.get('type')}"):
            places += map(str, detail["loc"] if isinstance(detail.get("loc"), list) else ())
    return frozenset(name for name in names if name in places)


def _named_in_text(text: str, names: Iterable[str]) -> frozenset[str]:
    sentences = _SENTENCE_END.split(text)
    complaints = [sentence for sentence in sentences if _UNSUPPORTED.search(sentence)]
    others = [sentence for sentence in sentences if not _ADVICE.search(sentence)]
    for part in ("\n".join(complaints), "\n".join(others)):
        named = frozenset(name for name in names if _is_named(name, part))
        if named:
            return named
        if "stream" in names and re.search(r"\bstreaming\b", part, re.IGNORECASE):
            return frozenset({"stream"})
        if "response_format" in names and _JSON_MODE.search(part):
            return frozenset({"response_format"})
    return frozenset()


def _is_named(name: str, text: str) -> bool:
    """Whether the text contains the name as a word. Common words must be marked as a name."""
    word = re.escape(name)
    if name not in _COMMON_WORDS:
        return re.search(rf"(?<![\w.]){word}(?![\w-])", text) is not None
    quoted = rf"['\"`“‘「]{word}['\"`”’」]"
    before = rf"(?:param(?:eter)?|argument|field|option|参数|[:,]|\band)s?\W{{0,3}}{word}(?![\w-])"
    after = rf"(?<![\w.]){word}\W{{0,3}}(?:param|argument|field|option|sequence|参数|不支持|(?:is|are) (?:not|un))"
    return re.search(rf"{quoted}|{before}|{after}", text, re.IGNORECASE) is not None
