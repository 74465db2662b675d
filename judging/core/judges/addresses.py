"""The URLs of calls, from addresses as users write them."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit, urlunsplit

from judging.core.judges.errors import Unreachable

_VERSION = re.compile(r"v\d+[a-z0-9]*", re.IGNORECASE)


@lru_cache(maxsize=256)
def chat_url(url: str) -> str:
    """The chat completions URL, from one with or without scheme, `/v1` and `/chat/completions`.

    Raises Unreachable `bad_url` if it is not an http(s) URL, or contains credentials.
    """
    return call_url(url, "/chat/completions")


def call_url(url: str, call: str, *, version: str = "v1") -> str:
    """The URL of `call`, as "/messages", below the address `url`, which may end in it or lack its version.

    Raises Unreachable `bad_url` if it is not an http(s) URL, or contains credentials.
    """
    parts = split_address(url)
    path = parts.path.rstrip("/")
    if not path.endswith(call):
        # Some services have their own version segments (/api/v3, /v1beta/openai), which are preserved.
        versioned = any(_VERSION.fullmatch(segment) for segment in path.split("/"))
        path += call if versioned else f"/{version}{call}"
    return with_path(parts, path)


def with_path(parts: SplitResult, path: str, query: str | None = None) -> str:
    """The address with another path, and with `query` instead of its own."""
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query if query is None else query, ""))


def split_address(url: str) -> SplitResult:
    """The parts of an address with or without scheme. Raises Unreachable `bad_url` as `chat_url` does."""
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
    """http for `host:port`, IP addresses and single-label hosts, which are local; https for other names."""
    host = address.split("/", 1)[0]
    if ":" in host or "." not in host:
        return "http"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "https"
    return "http"
