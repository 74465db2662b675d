"""What stands between a run's question and the wire: a run that may be paused, an endpoint's limits, its circuit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from judging.core.judges.errors import JudgeError
from judging.core.judges.replying import Reply
from judging.core.judges.settings import Request
from judging.runs.budget import Ledger, cost_of_reply
from judging.runs.ways import Way


class Abandoned(Exception):
    """The run was paused or cancelled before this item was asked; it stays `not_run`."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What must be put right at an endpoint before a run can go on: an error's code and words."""

    endpoint: str
    code: str
    detail: str


@dataclass(slots=True)
class Gate:
    """Whether a run may still ask, and which of its stories wait for a reply that is being paid for. With `trouble` it
    is about to be paused."""

    run: int = 0
    project: int = 0
    weight: float = 1.0
    open: bool = True
    ledger: Ledger = field(default_factory=Ledger)
    calls: Counter[asyncio.Task[Any]] = field(default_factory=Counter)  # by the story that waits for them
    note: Callable[[asyncio.Task[Any]], None] | None = None  # is told of each call before it is made
    note_failed: Callable[[asyncio.Task[Any]], None] | None = None  # and when it ended without any reply
    trouble: Trouble | None = None

    @property
    def in_flight(self) -> set[asyncio.Task[Any]]:
        return set(self.calls)

    def begin(self, story: asyncio.Task[Any]) -> None:
        self.ledger.in_flight += 1
        self.calls[story] += 1
        if self.note is not None:
            self.note(story)

    def end(self, story: asyncio.Task[Any], *, failed: bool) -> None:
        self.calls[story] -= 1
        if not self.calls[story]:
            del self.calls[story]
        if failed and self.note_failed is not None:
            self.note_failed(story)


class Asking:
    """The watch (core.judges.patience) over one question of a run: each HTTP try waits here for its turn."""

    def __init__(
        self, gate: Gate, way: Way, endpoint: int | None, story: asyncio.Task[Any], patience: float
    ) -> None:
        self.gate = gate
        self.price = gate.ledger.price(endpoint)
        self.way = way
        self.story = story
        self.patience = patience
        self.size = 0
        self.tokens = 0.0

    async def before(self, request: Request) -> None:
        """Raises Abandoned where the run may ask no more, JudgeError where the endpoint is down for too long."""
        if self.way.down is not None:
            await self.way.until_it_answers(self.patience)
        if self.way.pace.limits:
            await self._in_pace(request)
        if self.gate.ledger.budget:
            await self.gate.ledger.room()
        if not self.gate.open:
            raise Abandoned
        self.gate.begin(self.story)

    async def _in_pace(self, request: Request) -> None:
        self.size = len(msgspec.json.encode(request["messages"]))
        most = request.get("max_tokens") or request.get("max_completion_tokens")
        self.tokens = self.way.guess.of(self.size, most if isinstance(most, int) else None)
        await self.way.pace.turn(self.tokens)

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        said = reply or (error.reply if error else None)
        self.gate.end(self.story, failed=error is not None and said is None)
        self.gate.ledger.end(cost_of_reply(said, reply is None, self.price))
        if reply is None and error is None:
            return
        self.way.ended(reply, error)
        if self.tokens:
            self._learn(said)

    def _learn(self, reply: Reply | None) -> None:
        """What the call really cost. A refused one cost nothing; a reply that does not say, what was guessed."""
        told, self.tokens = self.tokens, 0.0
        if reply is None:
            self.way.pace.correct(told, 0.0)
            return
        read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
        self.way.guess.learn(self.size, read, written)
        if read is not None and written is not None:
            self.way.pace.correct(told, read + written)

    def may_retry(self) -> bool:
        return self.way.retries.spend()
