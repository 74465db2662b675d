"""The requests of a run that sends them in batches: stored until a batch is made of them, and answered from its
results when the judgement is made again."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import msgspec

from judging.core.judges.batches import EXPIRED
from judging.core.judges.client import AskResult, RequestAttempt
from judging.core.judges.error_responses import error_for_status
from judging.core.judges.errors import JudgeError, Unusable
from judging.core.judges.reply import Reply
from judging.core.judges.reply_reader import ReplyReader
from judging.core.judges.settings import JudgeSettings, Request
from judging.core.results import Failure
from judging.endpoints.gate import RunInThread
from judging.endpoints.gate_pool import ModelConnection
from judging.endpoints.requests import Abandoned, Caller, Waiting
from judging.engine.journal import InFlight
from judging.records.models import BatchRequest


class BatchCaller(Caller):
    """Stores requests for batches, and answers those whose batch was collected. Raises Abandoned for the others, so
    that their judgement stays `not_run`. `sends`: whether the run goes on; one that was stopped only has answered what
    was collected."""

    def __init__(self, run: int, plain: Caller, in_database: RunInThread, *, sends: bool = True) -> None:
        super().__init__(plain.clients, plain.gate, plain.policy)
        self.run = run
        self.sends = sends
        self._in_database = in_database

    async def call(
        self, model: ModelConnection, request: Request, waiting: Waiting, place: str = ""
    ) -> AskResult | Failure:
        if not isinstance(waiting, InFlight) or (model.failure and self.sends):
            return await super().call(model, request, waiting, place)
        custom_id = custom_id_of(waiting.key.pk, place, request)
        if self.sends:
            stored = await self._in_database(_stored, self.run, custom_id, model.endpoint, request)
            if stored.plain:
                return await super().call(model, request, waiting, place)
        else:
            stored = await self._in_database(_collected, custom_id)
        if stored is None or not stored.done:
            raise Abandoned
        return answered(model.settings, request, stored.status or 0, stored.body)


def custom_id_of(judgement: int, place: str, request: Request) -> str:
    """A request's name in its batch. A judgement is one attempt; the hash tells a further request from the first."""
    digest = hashlib.sha256(msgspec.json.encode(request, order="sorted")).hexdigest()[:12]
    return f"j{judgement}-{place}-{digest}"


def _stored(run: int, custom_id: str, endpoint: int | None, request: Request) -> BatchRequest:
    text = json.dumps(request)
    fields: dict[str, Any] = {"run_id": run, "endpoint_id": endpoint, "request": text}
    return BatchRequest.objects.get_or_create(custom_id=custom_id, defaults=fields)[0]


def _collected(custom_id: str) -> BatchRequest | None:
    return BatchRequest.objects.filter(custom_id=custom_id, done=True).first()


def answered(settings: JudgeSettings, request: Request, status: int, body: str) -> AskResult:
    """The result of a request whose reply came in a batch."""
    reply, error = read_reply(settings, request, status, body)
    code, message = (error.code, error.message) if error else ("", "")
    attempt = RequestAttempt(time.time(), 0.0, status, code, message, 0.0)
    return AskResult(reply or (error.reply if error else None), error, (attempt,), request, frozenset())


def read_reply(
    settings: JudgeSettings, request: Request, status: int, body: str
) -> tuple[Reply | None, JudgeError | None]:
    """The reply in a body, or why there is none."""
    try:
        if status == 0:
            raise Unusable(EXPIRED)
        if status >= 300:
            raise error_for_status(status, {}, body.encode(), request)
        reader = ReplyReader(status, None, request, settings.speaks.as_chunk)
        reader.feed(body.encode())
        return reader.finish(0.0, None), None
    except JudgeError as error:
        return None, error
