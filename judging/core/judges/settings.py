"""How a model is reached and what is sent to it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from judging.core.judges.errors import Unreachable

Request = dict[str, Any]

_VERSION = re.compile(r"v\d+[a-z0-9]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `first_byte` counts from the end of `connect`, `idle` between two pieces of a reply."""

    connect: float = 10.0
    first_byte: float = 300.0
    idle: float = 120.0
    whole: float = 1200.0


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """One endpoint, model and its parameters. `refuses`: parameters that the server was found to refuse."""

    url: str
    model: str
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str = field(default="", repr=False)
    ca_pem: str = field(default="", repr=False)
    verify: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)
    system_prompt: str | None = None
    refuses: frozenset[str] = frozenset()
    timeouts: Timeouts = Timeouts()

    def secrets(self) -> tuple[str, ...]:
        """Secrets, which must never be stored or shown: the key, header values, the proxy's password."""
        password = urlsplit(self.proxy).password if "@" in self.proxy else None
        found = (self.api_key.strip(), *self.headers.values(), password or "")
        return tuple(secret for secret in found if len(secret) >= 4)


def build_request(settings: JudgeSettings, prompt: str) -> Request:
    """The JSON body for `prompt`, without what the server refuses.

    A generation parameter may switch off `stream` or `separate_reasoning`, but not replace model or messages.
    """
    messages = [{"role": "user", "content": prompt}]
    if settings.system_prompt:
        messages.insert(0, {"role": "system", "content": settings.system_prompt})
    return request_of(settings, messages, settings.params)


def request_of(
    settings: JudgeSettings, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
) -> Request:
    """The JSON body for `messages`, without what the server refuses."""
    request: Request = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "separate_reasoning": True,
        **params,
        "model": settings.model,
        "messages": list(messages),
    }
    return without(request, settings.refuses)


def without(request: Request, refuses: frozenset[str]) -> Request:
    """The request without what is refused; a refused `max_tokens` becomes `max_completion_tokens`."""
    kept = {name: value for name, value in request.items() if name not in refuses}
    if "max_tokens" in refuses and "max_tokens" in request:
        kept.setdefault("max_completion_tokens", request["max_tokens"])
    # OpenAI refuses stream_options in a request that does not stream.
    if not kept.get("stream"):
        kept.pop("stream_options", None)
    return kept


@lru_cache(maxsize=256)
def chat_url(url: str) -> str:
    """The address of chat completions, from one with or without scheme, `/v1` and `/chat/completions`.

    Raises Unreachable `bad_url` if it is not an http(s) address, or contains a password.
    """
    parts = _split(url)
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        # Some services count their own versions (/api/v3, /v1beta/openai): those stay as they are.
        versioned = any(_VERSION.fullmatch(segment) for segment in path.split("/"))
        path += "/chat/completions" if versioned else "/v1/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def models_url(url: str) -> str:
    """The address that lists the models."""
    return chat_url(url).replace("/chat/completions", "/models")


def _split(url: str) -> SplitResult:
    address = url.strip()
    if not address or any(character.isspace() for character in address):
        raise Unreachable("bad_url", address)
    try:
        parts = urlsplit(address if "://" in address else f"{_guessed_scheme(address)}://{address}")
        usable = bool(parts.hostname) and parts.scheme in ("http", "https") and parts.port != 0
    except ValueError as error:
        raise Unreachable("bad_url", f"{error}") from error
    if not usable or "@" in parts.netloc:
        raise Unreachable("bad_url", "" if "@" in address else address)
    return parts


def _guessed_scheme(address: str) -> str:
    """`host:port`, IP addresses and one-word hosts are local; other names without a scheme are services."""
    host = address.split("/", 1)[0]
    if ":" in host or "." not in host:
        return "http"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "https"
    return "http"
