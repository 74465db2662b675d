"""The connection test: a short question that shows what an endpoint supports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from judging.core.judges.client import NO_GUARD, AskResult, Guard, RetryPolicy, ask_with_retries
from judging.core.judges.errors import JudgeError
from judging.core.judges.http_clients import open_client, request_headers
from judging.core.judges.settings import JudgeSettings, build_request, models_url

if TYPE_CHECKING:
    import httpx

QUESTION = "Reply with the single word OK."
MAX_MODELS = 200
MAX_LIST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Probe:
    """Result of a connection test.

    `ok`: the endpoint answers, at least without the parameters in `refuses`; otherwise `code` and `detail` say why not.
    `waited` is how long the test waited for its turn, `seconds` how long the reply took.
    """

    ok: bool = False
    code: str = ""
    detail: str = ""
    refuses: tuple[str, ...] = ()
    streams: bool = False
    reasoning: bool = False
    usage: bool = False
    model: str = ""
    seconds: float = 0.0
    models: tuple[str, ...] = ()
    waited: float = 0.0


async def probe(settings: JudgeSettings, guard: Guard = NO_GUARD) -> Probe:
    """Send a short question and request the list of models. A JudgeError is returned in the result, not raised.

    Parameters in the settings' `refuses` are tried again, because the server may have been updated.
    """
    params = {"temperature": 0, "max_tokens": 256, **settings.params}
    fresh = replace(settings, refuses=frozenset(), params=params)
    try:
        client = open_client(fresh)
    except JudgeError as error:
        return Probe(code=error.code, detail=error.message)
    async with client:
        asked = await ask_with_retries(
            client, fresh, build_request(fresh, QUESTION), policy=RetryPolicy(tries=2), guard=guard
        )
        answered = asked.error is None or asked.error.status is not None
        models = await _models(client, fresh) if answered else ()
    return _result(asked, models)


def _result(asked: AskResult, models: tuple[str, ...]) -> Probe:
    reply, error = asked.reply, asked.error
    # A reasoning model may spend all tokens of the short question on thinking; that still counts as an answer.
    error = None if error is not None and error.code == "truncated" else error
    return Probe(
        ok=error is None,
        code=error.code if error else "",
        detail=error.message if error else "",
        refuses=tuple(sorted(asked.refuses)),
        streams=reply is not None and reply.streamed,
        reasoning=reply is not None and bool(reply.reasoning_content),
        usage=reply is not None and reply.usage.completion_tokens is not None,
        model=(reply.model if reply else "") or "",
        seconds=round(asked.calls[-1].seconds, 3) if asked.calls else 0.0,
        models=models,
    )


async def _models(client: httpx.AsyncClient, settings: JudgeSettings) -> tuple[str, ...]:
    """The model ids; () if the endpoint has no list, like most gateways."""
    import httpx

    try:
        async with client.stream(
            "GET", models_url(settings.url), headers=request_headers(settings), timeout=5.0
        ) as response:
            body = bytearray()
            async for data in response.aiter_bytes():
                body += data
                if len(body) > MAX_LIST_BYTES:
                    return ()
        listed = _decode(body).data
    except (httpx.HTTPError, OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return ()
    return tuple(sorted({model.id for model in listed})[:MAX_MODELS])


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


_decode = msgspec.json.Decoder(_Models).decode
