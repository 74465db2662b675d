"""«Test connection»: one short question that finds out what an endpoint can do and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import httpx
import msgspec

from judging.core.judges.client import open_client, request_headers
from judging.core.judges.errors import JudgeError
from judging.core.judges.replies import Reply
from judging.core.judges.retry import NO_GUARD, Guard, RetryPolicy, ask_with_retries
from judging.core.judges.settings import JudgeSettings, build_request, models_url

QUESTION = "Reply with the single word OK."
MAX_MODELS = 500
MAX_LIST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of it. `ok` means that the endpoint answers, if need be without what it `refuses`."""

    ok: bool
    error: JudgeError | None
    refuses: frozenset[str]
    streams: bool
    reasoning: bool
    usage: bool
    model: str | None
    seconds: float
    models: tuple[str, ...]


async def probe(settings: JudgeSettings, watch: Guard = NO_GUARD) -> Probe:
    """Asks the endpoint of `settings` one short question, and for its list of models. Raises nothing of its own.

    What the settings say to be refused is tried again: a server may have learnt since.
    """
    fresh = replace(
        settings, refuses=frozenset(), params={"temperature": 0, "max_tokens": 256, **settings.params}
    )
    try:
        client = open_client(fresh)
    except JudgeError as error:
        return _result(None, error, frozenset(), 0.0, ())
    async with client:
        asked = await ask_with_retries(
            client, fresh, build_request(fresh, QUESTION), policy=RetryPolicy(tries=2), watch=watch
        )
        models = await _models(client, fresh) if _was_answered(asked.error) else ()
    seconds = asked.calls[-1].seconds if asked.calls else 0.0
    return _result(asked.reply, asked.error, asked.refuses, seconds, models)


def _result(
    reply: Reply | None,
    error: JudgeError | None,
    refuses: frozenset[str],
    seconds: float,
    models: tuple[str, ...],
) -> Probe:
    # A reasoning model may spend all of the short question's tokens on thinking: it is there all the same.
    ok = error is None or error.code == "truncated"
    return Probe(
        ok=ok,
        error=None if ok else error,
        refuses=refuses,
        streams=reply is not None and reply.streamed,
        reasoning=reply is not None and bool(reply.reasoning_content),
        usage=reply is not None and reply.usage.completion_tokens is not None,
        model=reply.model if reply else None,
        seconds=seconds,
        models=models,
    )


def _was_answered(error: JudgeError | None) -> bool:
    return error is None or error.status is not None


async def _models(client: httpx.AsyncClient, settings: JudgeSettings) -> tuple[str, ...]:
    """The names that the endpoint lists, () where it lists none: few gateways do."""
    try:
        async with client.stream(
            "GET", models_url(settings.url), headers=request_headers(settings), timeout=5.0
        ) as response:
            body = bytearray()
            async for data in response.aiter_bytes():
                body += data
                if len(body) > MAX_LIST_BYTES:
                    return ()
        listed = msgspec.json.decode(body, type=_Models).data
    except (httpx.HTTPError, OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return ()
    return tuple(sorted({model.id for model in listed})[:MAX_MODELS])


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]
