"""OpenAI's chat completions, which most servers offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judging.core.judges.addresses import chat_url
from judging.core.judges.protocols.protocol import ADDED_TO_CHAT, Protocol, Request, bearer


def url(address: str, _request: Mapping[str, Any]) -> str:
    return chat_url(address)


def models_url(address: str) -> str:
    return chat_url(address).replace("/chat/completions", "/models")


def body(request: Mapping[str, Any]) -> Request:
    return dict(request)


PROTOCOL = Protocol(
    *("chat", "OpenAI chat completions", url, models_url, bearer, body, None, ADDED_TO_CHAT),
    batch_path="/v1/chat/completions",
)
