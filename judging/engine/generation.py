"""Answer generation for a run's candidates: one attempt per response, shared by all metrics that judge it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from datasets.core.variables import response_data
from judging.core.candidates import CandidateModel, answer_of, build_request, flags_of
from judging.core.judges.client import AskResult
from judging.core.results import Failure, JudgementResult
from judging.core.values import Outcome
from judging.endpoints.gate_pool import GatePool, ModelConnection
from judging.endpoints.requests import Abandoned, Caller
from judging.engine import chunks
from judging.engine.generation_store import Generated, Unanswered
from judging.engine.journal import InFlight, Work, WorkInFlight, WorkKey
from judging.engine.write_buffer import WriteBuffer
from judging.records.json_text import as_json
from judging.records.models import ANSWER_FAILED, RunCandidate

log = logging.getLogger("judging.run_worker")

_ANSWERS = ("empty_reply", "truncated")  # errors for a judge, but valid answers of a model under test


@dataclass(frozen=True, slots=True)
class ConnectedModel:
    """A candidate model that generates answers, and its connection."""

    definition: CandidateModel
    connection: ModelConnection


def connected_models(run: int, pool: GatePool) -> dict[int, ConnectedModel]:
    """The models that generate answers in this run, by candidate id. Reads the database."""
    definitions = (
        RunCandidate.objects.filter(run=run).exclude(definition="").values_list("candidate", "definition")
    )
    models = {pk: CandidateModel.from_json(definition) for pk, definition in definitions}
    return {
        pk: ConnectedModel(model, pool.connection(model.connection_settings)) for pk, model in models.items()
    }


class AnswerGenerator:
    """Generates the answers of one run, with one attempt per response.

    Each attempt holds its chunk in the write buffer, so that the chunk is not released before the paid reply is stored.
    """

    def __init__(
        self, models: dict[int, ConnectedModel], caller: Caller, in_flight: WorkInFlight, buffer: WriteBuffer
    ) -> None:
        self.models = models
        self.caller = caller
        self._in_flight = in_flight
        self._buffer = buffer
        self._attempts: dict[int, asyncio.Future[Generated]] = {}

    async def answers(self, item: chunks.ToJudge) -> tuple[Generated, ...]:
        """Return the attempts for the item's responses, starting them if needed. Raises CancelledError if abandoned."""
        futures = [self._future(item, unanswered) for unanswered in item.asks]
        return tuple([await asyncio.shield(future) for future in futures])

    def _future(self, item: chunks.ToJudge, of: Unanswered) -> asyncio.Future[Generated]:
        future = self._attempts.get(of.response)
        if future is None:
            future = self._attempts[of.response] = asyncio.get_running_loop().create_future()
            self._buffer.hold_item(item.chunk)
            key = WorkKey(Work.ANSWER, of.response)
            self._in_flight.start(key, partial(self._attempt, item, of, future))
        return future

    async def _attempt(
        self, item: chunks.ToJudge, of: Unanswered, future: asyncio.Future[Generated], waiting: InFlight
    ) -> None:
        generated: Generated | None = None
        try:
            generated = await self._generate(item, of, waiting)
        except Abandoned:  # waiters see it through the cancelled future
            return
        finally:
            if generated is None:
                del self._attempts[of.response]
                future.cancel()
            else:
                future.set_result(generated)
            self._buffer.answered(item.chunk, generated)

    async def _generate(self, item: chunks.ToJudge, of: Unanswered, waiting: InFlight) -> Generated:
        model = self.models[of.candidate]
        try:
            request = build_request(model.connection.settings, model.definition, item.item.data, of.number)
            ask_result = await self.caller.call(model.connection, request, waiting)
        except Abandoned:
            raise
        except Exception as error:  # one answer's error must not stop the run
            log.error("Internal error while generating an answer (response %s)", of.response, exc_info=error)
            request, ask_result = {}, Failure("internal", type(error).__name__)
        if isinstance(ask_result, Failure):
            return Generated(
                of, item.run, item.chunk, "", ask_result, request, endpoint=model.connection.endpoint
            )
        return _generated(of, item, ask_result, model.connection)

    def stored(self, generated: Iterable[Generated]) -> None:
        """Forget attempts that are in the database: items loaded from now on include their answers."""
        for attempt in generated:
            self._attempts.pop(attempt.of.response, None)


def _generated(
    of: Unanswered, item: chunks.ToJudge, ask_result: AskResult, model: ModelConnection
) -> Generated:
    reply, error = ask_result.reply, ask_result.error
    failed = error is not None and not (reply is not None and error.code in _ANSWERS)
    return Generated(
        of,
        item.run,
        item.chunk,
        "" if failed or reply is None else as_json(answer_of(reply)),
        Failure(error.code, error.message) if failed and error else None,
        ask_result.request,
        [call.record() for call in ask_result.calls],
        model.endpoint,
        ask_result.usage.prompt_tokens,
        ask_result.usage.completion_tokens,
        ask_result.seconds,
        ask_result.first_token_seconds,
        (reply.finish_reason or "") if reply else "",
        (reply.model or "") if reply else "",
    )


def with_answers(item: chunks.ToJudge, generated: Sequence[Generated]) -> chunks.ToJudge:
    """The item with its generated answers, of which a comparison may have two."""
    answered = item.item
    for unanswered, attempt in zip(item.asks, generated, strict=True):
        answer = response_data(attempt.raw)
        answered = (
            replace(answered, other=answer) if unanswered.is_other else replace(answered, response=answer)
        )
    return msgspec.structs.replace(item, item=answered, asks=(), generated=tuple(generated))


def unanswered(item: chunks.ToJudge, generated: Sequence[Generated] = ()) -> chunks.Judged:
    """The error result of an item that lacks an answer. Nothing is `generated` if stored replies are only being
    re-parsed, so no answer was requested."""
    why = next((attempt.why for attempt in generated if attempt.failure), "")
    return chunks.Judged(
        msgspec.structs.replace(item, generated=tuple(generated)),
        JudgementResult(Outcome.error(ANSWER_FAILED, why)),
    )


def with_flags(item: chunks.ToJudge, result: JudgementResult) -> JudgementResult:
    """Add the flags of the item's answers, uploaded or generated, to its judgement."""
    flags = tuple(dict.fromkeys(flag for answer in item.item.answers for flag in flags_of(answer)))
    return msgspec.structs.replace(result, flags=(*result.flags, *flags)) if flags else result
