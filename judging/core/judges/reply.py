"""A judge model's reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONTENT_FILTER = "content_filter"
REFUSED = (CONTENT_FILTER, "sensitive")
"""The finish reasons of a reply that its server refused or filtered."""

OF_SERVER = ("fingerprint", "server")
"""What a reply says of its server besides the model's name; stored, but not seen by templates and scripts."""


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def cost(self, read: float, written: float) -> float:
        """The cost in millionths of a currency unit; `read` and `written` are the prices per million tokens."""
        return (self.prompt_tokens or 0) * read + (self.completion_tokens or 0) * written


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; `finish_reason` "length" means that it was cut off by its token limit. `closed_for`: seconds for which
    the server will accept no further call, if its headers say so. `fingerprint`: of what answered, as the server sends
    it (`system_fingerprint`); `server`: the version it names in its headers."""

    content: str
    reasoning_content: str | None
    tool_calls: list[Any] | None
    finish_reason: str | None
    usage: Usage
    model: str | None
    seconds: float
    first_token_seconds: float | None
    status: int
    streamed: bool
    closed_for: float | None = None
    fingerprint: str | None = None
    server: str | None = None
