"""Candidate models that generate answers: the request for a row, and the answer in the stored form.

row ──messages_to_send, params_for──▶ request ──▶ reply ──answer_of──▶ response, like an uploaded one
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from judging.core.judges.protocols import CHAT
from judging.core.judges.reply import Reply
from judging.core.judges.settings import JudgeSettings, Request, request_of
from judging.core.metric_definition import JudgeModel

MOST_ANSWERS = 100

NUMBERS = ("max_tokens", "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")
ROW_PARAMETERS = (*NUMBERS, "stop")
"""Fields of a row that override the candidate's own parameters."""

_SENT = ("tool_calls", "tool_call_id", "name")  # keys of a message, in addition to role and content

ANSWER_EMPTY = "answer_empty"  # flag: the answer has no content
ANSWER_TRUNCATED = "answer_truncated"  # flag: cut off by the token limit


class CandidateModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model that generates `n` answers to each row, with an endpoint's id or a URL, but never a key.

    Stored as JSON, so a run's frozen copy is exactly what was used.
    """

    name: str
    endpoint: int | None = None
    url: str = ""
    model: str = ""
    protocol: str = CHAT
    api_key_env: str = ""
    system_prompt: str | None = None
    params: dict[str, Any] = {}
    n: int = 1

    @property
    def connection_settings(self) -> JudgeModel:
        """The connection, for endpoint clients. Without the system prompt, because a row may have its own."""
        return JudgeModel(
            name=self.name,
            template="",
            endpoint=self.endpoint,
            url=self.url,
            model=self.model,
            protocol=self.protocol,
            api_key_env=self.api_key_env,
            params=self.params,
        )

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> CandidateModel:
        """Raises msgspec.ValidationError if the text is not a valid candidate."""
        return _decode(text)


_decode = msgspec.json.Decoder(CandidateModel).decode


def build_request(
    settings: JudgeSettings, candidate: CandidateModel, data: Mapping[str, Any], number: int
) -> Request:
    """The request for answer `number` (from 1) to a row; `data` comes from `datasets.core.variables.row_data`."""
    messages = messages_to_send(data["messages"], candidate.system_prompt)
    return request_of(settings, messages, params_for(candidate, data, number))


def messages_to_send(messages: list[dict[str, Any]], system_prompt: str | None) -> list[dict[str, Any]]:
    """The row's messages in order, without a final assistant message, which is the expected answer.

    The candidate's system prompt comes first, unless the row has a system message, which takes precedence.
    """
    prompt = messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages
    sent = [_sent(message) for message in prompt]
    if system_prompt and not any(message["role"] == "system" for message in prompt):
        sent.insert(0, {"role": "system", "content": system_prompt})
    return sent


def _sent(message: dict[str, Any]) -> dict[str, Any]:
    """Only the protocol's keys, because servers reject messages with other keys."""
    fields = {name: message[name] for name in _SENT if message.get(name) is not None}
    content = message["content"] if message["content"] or "tool_calls" not in fields else None
    return {"role": message["role"], "content": content, **fields}


def params_for(candidate: CandidateModel, data: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The candidate's parameters, overridden by the row's.

    A seed is increased by one for each answer to the row, because the same seed would give the same answer.
    """
    params = {**candidate.params}
    for name in ROW_PARAMETERS:
        value = _parameter(name, data.get(name))
        if value is not None:
            params[name] = value
    seed = params.get("seed")
    if isinstance(seed, int) and not isinstance(seed, bool):
        params["seed"] = seed + number - 1
    return params


def _parameter(name: str, value: Any) -> Any:
    """A row's value; a number written as text, like every CSV cell, is parsed. None: not given.

    Text that is no number is sent as it is, so that the server rejects it.
    """
    if not isinstance(value, str) or name not in NUMBERS:
        return None if value == "" else value
    try:
        number = json.loads(value)
    except ValueError:
        return value.strip() or None
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    return number if is_number else value


def answer_of(reply: Reply) -> dict[str, Any]:
    """A reply in the stored form of a response. `finish_reason` is included only if the answer did not end normally."""
    answer: dict[str, Any] = {"content": reply.content if reply.content or not reply.tool_calls else None}
    if reply.reasoning_content:
        answer["reasoning_content"] = reply.reasoning_content
    if reply.tool_calls:
        answer["tool_calls"] = reply.tool_calls
    if reply.finish_reason not in (None, "stop", "tool_calls"):
        answer["finish_reason"] = reply.finish_reason
    return answer


def flags_of(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Flags for unusual answers, which are judged all the same."""
    flags = []
    if not str(answer.get("content") or "").strip() and not answer.get("tool_calls"):
        flags.append(ANSWER_EMPTY)
    if answer.get("finish_reason") == "length":
        flags.append(ANSWER_TRUNCATED)
    return tuple(flags)
