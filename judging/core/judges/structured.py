"""Structured output: asking a server for a reply that fits a schema, in the form that it honours."""

from __future__ import annotations

from typing import Any

import msgspec

from datasets.core.kinds import CATEGORY, COMPARISON, PASS_FAIL
from judging.core.judges.protocols.protocol import JSON_OBJECT as JSON_OBJECT
from judging.core.judges.protocols.protocol import JSON_SCHEMA as JSON_SCHEMA
from judging.core.judges.protocols.protocol import TOOL as TOOL
from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request
from judging.core.reading.gives import Gives

NONE = "none"
"""The form of a server that honours none."""
PARAMETERS = frozenset({"response_format", "tools", "tool_choice"})

_FUNCTION = "give_verdict"


def schema_of(gives: Gives) -> dict[str, Any]:
    """The JSON schema of a reply: the reasoning, then the verdict."""
    return _object({"reasoning": {"type": "string"}, "verdict": _verdict(gives)})


def _verdict(gives: Gives) -> dict[str, Any]:
    words: tuple[str, ...] = ()
    if gives.kind == PASS_FAIL:
        words = ("PASS", "FAIL")
    elif gives.kind == CATEGORY:
        words = gives.labels
    elif gives.kind == COMPARISON:
        words = gives.comparison_words
    if words:
        return {"type": "string", "enum": list(words)}
    kind = "integer" if gives.whole else "number"
    return {"type": kind, "minimum": gives.min_score, "maximum": gives.max_score}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parameters(mode: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a request that ask for a reply by `schema`; none for a server that honours no form."""
    if mode == JSON_SCHEMA:
        named = {"name": _FUNCTION, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if mode == JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    if mode == TOOL:
        function = {"name": _FUNCTION, "parameters": schema}
        choice = {"type": "function", "function": {"name": _FUNCTION}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    return {}


def described(prompt: str, mode: str, schema: dict[str, Any]) -> str:
    """The prompt; for a server that is told of no schema, with the keys of the object that it is to reply with."""
    if mode != JSON_OBJECT:
        return prompt
    verdict = schema["properties"]["verdict"]
    shown = (
        " | ".join(verdict["enum"]) if "enum" in verdict else f"{verdict['minimum']} … {verdict['maximum']}"
    )
    return f'{prompt}\n\nJSON: {{"reasoning": "…", "verdict": {shown}}}'


# --- does a server honour them -----------------------------------------------------------------------------------

_COLOUR = "teal"
_PROOF = _object({"colour": {"type": "string", "enum": [_COLOUR]}})
QUESTION = "Reply with the single word OK, without JSON."
"""What only a server that honours a form answers with JSON."""


def with_proof(request: Request, mode: str) -> Request:
    """The request for QUESTION under a schema that no reply fits by chance."""
    return {**request, **parameters(mode, _PROOF)}


def honours(reply: Reply, mode: str) -> bool:
    """Whether the reply to `with_proof` shows that the server honours the form."""
    text = reply.content
    if mode == TOOL:
        call = reply.tool_calls[0] if reply.tool_calls else None
        function = call.get("function") if isinstance(call, dict) else None
        text = str(function.get("arguments")) if isinstance(function, dict) else ""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    if mode == JSON_OBJECT:
        return isinstance(value, dict)
    return isinstance(value, dict) and value.get("colour") == _COLOUR
