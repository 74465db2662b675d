"""Answers that a run asks its candidates for: one try per response, however many metrics wait to judge it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from datasets.core.variables import response_data
from judging.core.candidates import CandidateModel, answer_of, build_request, flags_of
from judging.core.judges.retry import AskResult
from judging.core.pipeline import Failure, Story
from judging.core.values import Outcome
from judging.endpoints.client_pool import ClientPool, ModelConnection
from judging.endpoints.requests import Abandoned, Caller
from judging.runs import store
from judging.runs.generations import Generated, Unanswered
from judging.runs.models import RunCandidate
from judging.runs.plain import as_json
from judging.runs.tools import call_seen

log = logging.getLogger("judging.pump")

ANSWER_FAILED = "answer_failed"
_ANSWERS = ("empty_reply", "truncated")  # of a judge these are errors; a model under test may say nothing


@dataclass(slots=True)
class Asks:
    """A candidate that is asked, and the way to it."""

    model: CandidateModel
    lane: ModelConnection


def candidates_asked(run: int, lanes: ClientPool) -> dict[int, Asks]:
    """By candidate, those whose answers this run asks for. Reads the database."""
    found = RunCandidate.objects.filter(run=run).exclude(definition="").values_list("candidate", "definition")
    models = {pk: CandidateModel.from_json(definition) for pk, definition in found}
    return {pk: Asks(model, lanes.of(model.asked)) for pk, model in models.items()}


class Answers:
    """The answers of one run that are being asked for. `hold` and `over` tell of a chunk that a try belongs to: it must
    not be given back before what was paid for is stored; `over` gets the try, None where it was abandoned."""

    def __init__(
        self,
        candidates: dict[int, Asks],
        caller: Caller,
        tasks: set[asyncio.Task[None]],
        *,
        hold: Callable[[int], None],
        over: Callable[[int, Generated | None], None],
    ) -> None:
        self.candidates = candidates
        self.caller = caller
        self._tasks = tasks
        self._hold, self._over = hold, over
        self._found: dict[int, asyncio.Future[Generated]] = {}

    async def of(self, item: store.ToJudge) -> Generated:
        """The try at the answer to be judged; CancelledError where it was abandoned."""
        assert item.asks is not None
        future = self._found.get(item.asks.response)
        if future is None:
            future = self._found[item.asks.response] = asyncio.get_running_loop().create_future()
            self._hold(item.chunk)
            # Known by the response, not by the judgement that happened to come first.
            task = asyncio.create_task(self._try(item, future), name=str(-item.asks.response))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(future)

    async def _try(self, item: store.ToJudge, future: asyncio.Future[Generated]) -> None:
        assert item.asks is not None
        generated: Generated | None = None
        try:
            generated = await self._generate(item, item.asks)
        except Abandoned:  # those who wait hear of it by the future
            return
        finally:
            if generated is None:
                del self._found[item.asks.response]
                future.cancel()
            else:
                future.set_result(generated)
            self._over(item.chunk, generated)

    async def _generate(self, item: store.ToJudge, of: Unanswered) -> Generated:
        asks, story = self.candidates[of.candidate], asyncio.current_task()
        assert story is not None
        try:
            request = build_request(asks.lane.settings, asks.model, item.item.data, of.number)
            asked = await self.caller.call(asks.lane, request, story)
        except Abandoned:
            raise
        except Exception as error:
            log.error("An answer failed inside evalsite (response %s)", of.response, exc_info=error)
            request, asked = {}, Failure("internal", type(error).__name__)
        if isinstance(asked, Failure):
            return Generated(of, item.run, item.chunk, "", asked, request, endpoint=asks.lane.endpoint)
        return _generated(of, item, asked, asks.lane)

    def stored(self, generated: Iterable[Generated]) -> None:
        """They are in the database: whoever loads their responses from now on finds what is there."""
        for one in generated:
            self._found.pop(one.of.response, None)


def _generated(of: Unanswered, item: store.ToJudge, asked: AskResult, lane: ModelConnection) -> Generated:
    reply, error = asked.reply, asked.error
    failed = error is not None and not (reply is not None and error.code in _ANSWERS)
    return Generated(
        of,
        item.run,
        item.chunk,
        "" if failed or reply is None else as_json(answer_of(reply)),
        Failure(error.code, error.message) if failed and error else None,
        asked.request,
        [call_seen(call) for call in asked.calls],
        lane.endpoint,
        reply.usage.prompt_tokens if reply else None,
        reply.usage.completion_tokens if reply else None,
        reply.seconds if reply else sum(call.seconds for call in asked.calls),
        reply.first_token_seconds if reply else None,
        (reply.finish_reason or "") if reply else "",
        (reply.model or "") if reply else "",
    )


def with_answer(item: store.ToJudge, generated: Generated) -> store.ToJudge:
    """What is judged, now that there is an answer."""
    answered = replace(item.item, response=response_data(generated.raw))
    return msgspec.structs.replace(item, item=answered, asks=None, generated=generated)


def unanswered(item: store.ToJudge, generated: Generated | None) -> store.Judged:
    """Without an answer there is nothing to judge; None: nobody was asked, since what was said is only read again."""
    why = generated.why if generated else ""
    return store.Judged(
        msgspec.structs.replace(item, generated=generated), Story(Outcome.error(ANSWER_FAILED, why))
    )


def with_flags(item: store.ToJudge, story: Story) -> Story:
    """What is odd about an answer, uploaded or generated, is flagged on its judgement."""
    flags = flags_of(item.item.response)
    return msgspec.structs.replace(story, flags=(*story.flags, *flags)) if flags else story
