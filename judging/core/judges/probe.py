"""The connection test: a short question that shows what an endpoint supports."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from judging.core.judges import structured
from judging.core.judges.batches import Batches, may_offer
from judging.core.judges.client import NO_GUARD, AskResult, Guard, RetryPolicy, ask_with_retries
from judging.core.judges.errors import JudgeError, Unusable
from judging.core.judges.http_clients import body_of, network_errors, open_client, request_headers
from judging.core.judges.outside_text import MAX_NAME, clean
from judging.core.judges.settings import JudgeSettings, build_request

if TYPE_CHECKING:
    import httpx

QUESTION = "Reply with the single word OK."
MAX_MODELS = 200
MAX_LIST_BYTES = 2**20
LIST_SECONDS = 5.0
STRUCTURE_SECONDS = 10.0  # for all calls that try structured output
QUICK_SECONDS = 10.0  # slower servers are not asked further questions


@dataclass(frozen=True, slots=True)
class Probe:
    """Result of a connection test.

    `ok`: the endpoint answers, at least without the parameters in `refuses`; otherwise `code` and `detail` say why not.
    `waited` is how long the test waited for its turn, `seconds` how long the reply took. `list_broken`: what the
    server sent as its list of models could not be received. `failed_calls`: calls without a usable reply, retries
    included. `structured`: the form of structured output that the server honours (structured.py), '' if that could not
    be found out. `batches`: the server answers batches of requests (batches.py), by reading its list of them.
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
    list_broken: bool = False
    waited: float = 0.0
    failed_calls: int = 0
    structured: str = ""
    batches: bool = False


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
        result = await ask_with_retries(
            client, fresh, build_request(fresh, QUESTION), policy=RetryPolicy(tries=2), guard=guard
        )
        answered = result.error is None or result.error.status is not None
        models = await _models(client, fresh) if answered else ()
        probed = _result(result, models)
        if probed.ok:
            probed = replace(probed, batches=await _offers_batches(client, fresh))
        if not probed.ok or probed.seconds > QUICK_SECONDS:
            return probed
        accepting = replace(fresh, refuses=result.refuses)
        return replace(probed, structured=await _honoured_structure(client, accepting, guard))


async def _honoured_structure(client: httpx.AsyncClient, settings: JudgeSettings, guard: Guard) -> str:
    """The first form of structured output that the server honours, by its replies; '' if one of them is unknown."""
    once = RetryPolicy(tries=1, suspect_parameters=False)
    plain = build_request(settings, structured.QUESTION)
    try:
        async with asyncio.timeout(STRUCTURE_SECONDS):
            for mode in settings.speaks.structured:
                result = await ask_with_retries(
                    client, settings, structured.with_proof(plain, mode), policy=once, guard=guard
                )
                if result.refuses & structured.PARAMETERS:
                    continue
                if result.error is not None and not (result.error.status in (400, 422) or result.error.reply):
                    return ""
                if result.reply is not None and structured.honours(result.reply, mode):
                    return mode
    except TimeoutError:
        return ""
    return structured.NONE


def _result(result: AskResult, models: tuple[str, ...] | None) -> Probe:
    reply, error = result.reply, result.error
    # A reasoning model may spend all tokens of the short question on thinking; that still counts as an answer.
    error = None if error is not None and error.code == "truncated" else error
    return Probe(
        ok=error is None,
        code=error.code if error else "",
        detail=error.message if error else "",
        refuses=tuple(sorted(result.refuses)),
        streams=reply is not None and reply.streamed,
        reasoning=reply is not None and bool(reply.reasoning_content),
        usage=reply is not None and reply.usage.completion_tokens is not None,
        model=(reply.model if reply else "") or "",
        seconds=round(result.calls[-1].seconds, 3) if result.calls else 0.0,
        models=models or (),
        list_broken=models is None,
    )


async def _offers_batches(client: httpx.AsyncClient, settings: JudgeSettings) -> bool:
    if not may_offer(settings):
        return False
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return await Batches(client, settings).offered()
    except (JudgeError, TimeoutError):
        return False


async def _models(client: httpx.AsyncClient, settings: JudgeSettings) -> tuple[str, ...] | None:
    """The model ids; () if the endpoint has no list, like most gateways, and None if it could not be received."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            body = await _list(client, settings)
        listed = _decode(body).data if body else []
    except network_errors():
        return None
    except JudgeError:
        return None
    except (msgspec.MsgspecError, RecursionError):
        return ()
    return tuple(sorted({clean(model.id)[:MAX_NAME] for model in listed})[:MAX_MODELS])


async def _list(client: httpx.AsyncClient, settings: JudgeSettings) -> bytes:
    """The list as sent; b"" if there is none."""
    body = bytearray()
    async with client.stream(
        "GET",
        settings.speaks.models_url(settings.url),
        headers=request_headers(settings),
        timeout=LIST_SECONDS,
    ) as response:
        if response.status_code != 200:
            return b""
        async for data in body_of(response):
            body += data
            if len(body) > MAX_LIST_BYTES:
                raise Unusable("too_long", status=response.status_code)
    return bytes(body)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


_decode = msgspec.json.Decoder(_Models).decode
