"""One call's way out, for judges and for candidates alike: a slot of the endpoint, retries, what the server refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

from judging.core.judges.client import Clients
from judging.core.judges.errors import MAYBE_SETTING_CODES, SETTING_CODES, JudgeError
from judging.core.judges.patience import Asked, RetryPolicy, ask_patiently
from judging.core.pipeline import Failure
from judging.runs.asking import Abandoned, Asking, Gate, Trouble
from judging.runs.lanes import Lane


class Caller:
    """Asks for one run."""

    def __init__(self, clients: Clients, gate: Gate, policy: RetryPolicy) -> None:
        self.clients = clients
        self.gate = gate
        self.policy = policy
        self.random = Random()  # one for all: seeding one a request costs 20 µs
        # Once an endpoint has answered, a refusal is about the prompt: nothing is left out to find its cause.
        self.trusting = replace(policy, suspect_parameters=False)
        self.learnt: set[tuple[int, frozenset[str]]] = set()

    async def call(self, lane: Lane, request: dict[str, Any], story: asyncio.Task[Any]) -> Asked | Failure:
        """How asking ended, or why it could not begin. Abandoned where the run may ask no more."""
        if lane.failure:
            self._look_for_trouble(lane, lane.failure)
            return lane.failure
        await lane.way.slots.enter(self.gate.run, self.gate.weight, self.gate.project)
        try:
            if not self.gate.open or self.gate.trouble:
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
            lane.way.slots.leave(self.gate.run)

    def _look_for_trouble(self, lane: Lane, failure: Failure | None) -> None:
        """After so many in a row that failed for the endpoint's settings every further one would fail too: the run is
        about to be paused, and this one waits with the rest. Raises Abandoned then."""
        if failure is None or not self._for_settings(lane, failure):
            lane.refused = 0
            return
        if self.gate.trouble:
            raise Abandoned
        lane.refused += 1
        if self.policy.hopeless is not None and lane.refused >= self.policy.hopeless:
            self.gate.trouble = Trouble(lane.name, failure.code, failure.detail)

    def _for_settings(self, lane: Lane, failure: Failure) -> bool:
        if failure is lane.failure or failure.code in SETTING_CODES:
            return True
        return failure.code in MAYBE_SETTING_CODES and not lane.answered

    async def _ask(self, lane: Lane, request: dict[str, Any], story: asyncio.Task[Any]) -> Asked:
        asked = await ask_patiently(
            self.clients.of(lane.settings),
            lane.settings,
            request,
            policy=self.trusting if lane.answered else self.policy,
            random=self.random,
            watch=Asking(self.gate, lane.way, lane.endpoint, story, self.policy.down_seconds),
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
