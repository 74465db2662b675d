"""Azure OpenAI: chat completions below a deployment, which stands in the path instead of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from judging.core.judges.addresses import split_address, with_path
from judging.core.judges.protocols.chat import body
from judging.core.judges.protocols.protocol import ADDED_TO_CHAT, Protocol

API_VERSION = "2024-10-21"
"""The version of the interface where the address names none: the latest that is no preview."""


def url(address: str, request: Mapping[str, Any]) -> str:
    parts = split_address(address)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    if "/deployments/" not in path:
        path = f"{path.removesuffix('/openai')}/openai/deployments/{quote(deployment_of(address, request), safe='')}"
    return with_path(parts, f"{path}/chat/completions", _versioned(parts.query))


def deployment_of(address: str, request: Mapping[str, Any]) -> str:
    """The deployment that the address names, or else the one called like the request's model."""
    named = split_address(address).path.partition("/deployments/")[2].split("/", 1)[0]
    return unquote(named) or str(request.get("model") or "")


def models_url(address: str) -> str:
    parts = split_address(address)
    root = parts.path.split("/openai", 1)[0].rstrip("/")
    return with_path(parts, f"{root}/openai/models", _versioned(parts.query))


def _versioned(query: str) -> str:
    return query if "api-version=" in query else "&".join(filter(None, [query, f"api-version={API_VERSION}"]))


def headers(key: str) -> dict[str, str]:
    return {"api-key": key}


PROTOCOL = Protocol(
    *("azure", "Azure OpenAI", url, models_url, headers, body, None, ADDED_TO_CHAT),
    batch_path="/chat/completions",
)
