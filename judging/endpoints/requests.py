"""One call's way out, for judges and for candidates alike: a slot of the endpoint, retries, what the server refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

import msgspec

from judging.core.judges.client import HttpClients
from judging.core.judges.errors import MAYBE_SETTING_CODES, SETTING_CODES, JudgeError
from judging.core.judges.replies import Reply
from judging.core.judges.retry import AskResult, RetryPolicy, ask_with_retries
from judging.core.judges.settings import Request
from judging.core.pipeline import Failure
from judging.endpoints.client import EndpointClient
from judging.endpoints.client_pool import ModelConnection


class Abandoned(Exception):
    """The run was paused or cancelled before this item was asked; it stays `not_run`."""


@dataclass(frozen=True, slots=True)
class EndpointError:
    """What must be put right at an endpoint before a run can go on: an error's code and words."""

    endpoint: str
    code: str
    detail: str


class Budget(Protocol):
    """What a run may spend."""

    async def room(self) -> None:
        """Returns when one more call fits."""
        ...

    def begin(self) -> None:
        """A call starts."""
        ...

    def end_call(self, reply: Reply | None, failed: bool, endpoint: int | None) -> None:
        """A call ended."""
        ...


@dataclass(slots=True)
class RunGate:
    """Whether a run may still ask, and which of its stories wait for a reply that is being paid for. With an `error` it
    is about to be paused."""

    run: int
    project: int
    weight: float
    ledger: Budget
    open: bool = True
    calls: Counter[asyncio.Task[Any]] = field(default_factory=Counter)  # by the story that waits for them
    note: Callable[[asyncio.Task[Any]], None] | None = None  # is told of each call before it is made
    note_failed: Callable[[asyncio.Task[Any]], None] | None = None  # and when it ended without any reply
    error: EndpointError | None = None

    @property
    def in_flight(self) -> set[asyncio.Task[Any]]:
        return set(self.calls)

    def begin(self, story: asyncio.Task[Any]) -> None:
        self.ledger.begin()
        self.calls[story] += 1
        if self.note is not None:
            self.note(story)

    def end(self, story: asyncio.Task[Any], *, failed: bool) -> None:
        self.calls[story] -= 1
        if not self.calls[story]:
            del self.calls[story]
        if failed and self.note_failed is not None:
            self.note_failed(story)


class RequestGuard:
    """The watch (core.judges.retry) over one question of a run: each HTTP try waits here for its turn."""

    def __init__(
        self,
        gate: RunGate,
        client: EndpointClient,
        endpoint: int | None,
        story: asyncio.Task[Any],
        patience: float,
    ) -> None:
        self.gate = gate
        self.endpoint = endpoint
        self.client = client
        self.story = story
        self.patience = patience
        self.size = 0
        self.tokens = 0.0

    async def before(self, request: Request) -> None:
        """Raises Abandoned where the run may ask no more, JudgeError where the endpoint is down for too long."""
        if self.client.down is not None:
            await self.client.until_it_answers(self.patience)
        if self.client.pace.limits:
            await self._in_pace(request)
        await self.gate.ledger.room()
        if not self.gate.open:
            raise Abandoned
        self.gate.begin(self.story)

    async def _in_pace(self, request: Request) -> None:
        self.size = len(msgspec.json.encode(request["messages"]))
        most = request.get("max_tokens") or request.get("max_completion_tokens")
        self.tokens = self.client.guess.of(self.size, most if isinstance(most, int) else None)
        await self.client.pace.turn(self.tokens)

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        said = reply or (error.reply if error else None)
        self.gate.end(self.story, failed=error is not None and said is None)
        self.gate.ledger.end_call(said, reply is None, self.endpoint)
        if reply is None and error is None:
            return
        self.client.ended(reply, error)
        if self.tokens:
            self._learn(said)

    def _learn(self, reply: Reply | None) -> None:
        """What the call really cost. A refused one cost nothing; a reply that does not say, what was guessed."""
        told, self.tokens = self.tokens, 0.0
        if reply is None:
            self.client.pace.correct(told, 0.0)
            return
        read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
        self.client.guess.learn(self.size, read, written)
        if read is not None and written is not None:
            self.client.pace.correct(told, read + written)

    def may_retry(self) -> bool:
        return self.client.retries.spend()


class Caller:
    """Asks for one run."""

    def __init__(self, clients: HttpClients, gate: RunGate, policy: RetryPolicy) -> None:
        self.clients = clients
        self.gate = gate
        self.policy = policy
        self.random = Random()  # one for all: seeding one a request costs 20 µs
        # Once an endpoint has answered, a refusal is about the prompt: nothing is left out to find its cause.
        self.trusting = replace(policy, suspect_parameters=False)
        self.learnt: set[tuple[int, frozenset[str]]] = set()

    async def call(
        self, lane: ModelConnection, request: dict[str, Any], story: asyncio.Task[Any]
    ) -> AskResult | Failure:
        """How asking ended, or why it could not begin. Abandoned where the run may ask no more."""
        if lane.failure:
            self._look_for_trouble(lane, lane.failure)
            return lane.failure
        await lane.client.slots.enter(self.gate.run, self.gate.weight, self.gate.project)
        try:
            if not self.gate.open or self.gate.error:
                raise Abandoned
            asked = await self._ask(lane, request, story)
            error = asked.error
            self._look_for_trouble(lane, Failure(error.code, error.message) if error else None)
            return asked
        except JudgeError as error:  # no client can be made from these settings
            lane.failure = Failure(error.code, error.message)
            self._look_for_trouble(lane, lane.failure)
            return lane.failure
        finally:
            lane.client.slots.leave(self.gate.run)

    def _look_for_trouble(self, lane: ModelConnection, failure: Failure | None) -> None:
        """After so many in a row that failed for the endpoint's settings every further one would fail too: the run is
        about to be paused, and this one waits with the rest. Raises Abandoned then."""
        if failure is None or not self._for_settings(lane, failure):
            lane.refused = 0
            return
        if self.gate.error:
            raise Abandoned
        lane.refused += 1
        if (
            self.policy.max_consecutive_failures is not None
            and lane.refused >= self.policy.max_consecutive_failures
        ):
            self.gate.error = EndpointError(lane.name, failure.code, failure.detail)

    def _for_settings(self, lane: ModelConnection, failure: Failure) -> bool:
        if failure is lane.failure or failure.code in SETTING_CODES:
            return True
        return failure.code in MAYBE_SETTING_CODES and not lane.answered

    async def _ask(
        self, lane: ModelConnection, request: dict[str, Any], story: asyncio.Task[Any]
    ) -> AskResult:
        asked = await ask_with_retries(
            self.clients.of(lane.settings),
            lane.settings,
            request,
            policy=self.trusting if lane.answered else self.policy,
            random=self.random,
            watch=RequestGuard(self.gate, lane.client, lane.endpoint, story, self.policy.down_seconds),
        )
        if asked.reply is not None:
            lane.answered = True
        if asked.refuses and lane.learn(asked.refuses) and lane.endpoint:
            self.learnt.add((lane.endpoint, asked.refuses))
        return asked

    def take_learnt(self) -> list[tuple[int, frozenset[str]]]:
        """What servers were found to refuse since the last call: (endpoint, refusals)."""
        learnt, self.learnt = list(self.learnt), set()
        return learnt
