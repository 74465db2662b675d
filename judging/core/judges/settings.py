"""How to reach a model, and the requests sent to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from judging.core.judges.outside_text import SHORTEST_SECRET
from judging.core.judges.protocols import CHAT, PROTOCOLS
from judging.core.judges.protocols.protocol import Protocol
from judging.core.judges.protocols.protocol import Request as Request
from judging.core.judges.refused_parameters import SYSTEM_ROLE, TOGETHER


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds. `first_byte` counts from the end of `connect`, `idle` between two pieces of a reply."""

    connect: float = 10.0
    first_byte: float = 300.0
    idle: float = 120.0
    whole: float = 1200.0

    def within(self, longest: Timeouts) -> Timeouts:
        """Each of these, at most that of `longest`."""
        return Timeouts(
            connect=min(self.connect, longest.connect),
            first_byte=min(self.first_byte, longest.first_byte),
            idle=min(self.idle, longest.idle),
            whole=min(self.whole, longest.whole),
        )


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """One endpoint, model and its parameters. `refuses`: parameters that the server is known to reject;
    `structured`: the form of structured output that it honours (structured.py), '' if that was not tested."""

    url: str
    model: str
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str = field(default="", repr=False)
    ca_pem: str = field(default="", repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    system_prompt: str | None = None
    refuses: frozenset[str] = frozenset()
    structured: str = ""
    timeouts: Timeouts = Timeouts()
    protocol: str = CHAT

    @property
    def speaks(self) -> Protocol:
        return PROTOCOLS[self.protocol]

    def secrets(self) -> tuple[str, ...]:
        """Values that must never be stored or shown: the key, header values and the proxy's password."""
        password = urlsplit(self.proxy).password if "@" in self.proxy else None
        # A server may repeat a header's value without its scheme, as in "Bearer KEY".
        words = [word for value in self.headers.values() for word in value.split() if len(word) >= 8]
        values = (self.api_key.strip(), *self.headers.values(), *words, password or "")
        return tuple(secret for secret in values if len(secret) >= SHORTEST_SECRET)


def build_request(
    settings: JudgeSettings, prompt: str, structure: Mapping[str, Any] | None = None
) -> Request:
    """The request for `prompt`, in the form of chat completions, without parameters that the server rejects.
    `structure`: parameters that ask for structured output (structured.py), unless the generation parameters have
    their own.

    Generation parameters may turn off `stream` or `separate_reasoning`, but cannot replace the model or the messages.
    """
    messages = [{"role": "user", "content": prompt}]
    if settings.system_prompt:
        messages.insert(0, {"role": "system", "content": settings.system_prompt})
    params = {**(structure or {}), **settings.params} if structure else settings.params
    return request_of(settings, messages, params)


def request_of(
    settings: JudgeSettings, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
) -> Request:
    """The request for `messages`, in the form of chat completions, without parameters that the server rejects."""
    request: Request = {
        **settings.speaks.added,
        **params,
        "model": settings.model,
        "messages": list(messages),
    }
    return without(request, settings.refuses)


def without(request: Request, refuses: frozenset[str]) -> Request:
    """The request without the rejected parameters; a rejected `max_tokens` becomes `max_completion_tokens`, and a
    system message the beginning of the next user message."""
    accepted = {name: value for name, value in request.items() if name not in refuses}
    for name, _together, other in (refusal.partition(TOGETHER) for refusal in sorted(refuses)):
        if other in accepted:
            accepted.pop(name, None)
    if "max_tokens" in refuses and "max_tokens" in request and "max_completion_tokens" not in refuses:
        accepted.setdefault("max_completion_tokens", request["max_tokens"])
    if "tools" in refuses:
        accepted.pop("tool_choice", None)
    # OpenAI rejects stream_options in a request that does not stream.
    if not accepted.get("stream"):
        accepted.pop("stream_options", None)
    if SYSTEM_ROLE in refuses:
        accepted["messages"] = _without_system(request["messages"])
    return accepted


def _without_system(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages with each system text at the beginning of the next user message."""
    changed: list[Mapping[str, Any]] = []
    texts: list[str] = []
    for message in messages:
        content = message.get("content")
        if message.get("role") == "system" and isinstance(content, str):
            texts.append(content)
        elif message.get("role") == "user" and texts:
            changed.append({**message, "content": _beginning_with(texts, content)})
            texts = []
        else:
            changed.append(message)
    return [*changed, {"role": "user", "content": "\n\n".join(texts)}] if texts else changed


def _beginning_with(texts: list[str], content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": "\n\n".join(texts)}, *content]
    return "\n\n".join([*texts, str(content or "")])
