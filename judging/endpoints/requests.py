"""Sending a run's requests. Each waits at its endpoint's gate, and for the run's budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from judging.core.judges.client import AskResult, RetryPolicy, ask_with_retries
from judging.core.judges.errors import MAYBE_SETTING_CODES, SETTING_CODES, JudgeError
from judging.core.judges.http_clients import HttpClients
from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request
from judging.core.results import Failure
from judging.endpoints.gate import Lot, Ticket
from judging.endpoints.gate_pool import ModelConnection


class Abandoned(Exception):
    """The run was paused or cancelled before this item was sent; it stays `not_run`."""


@dataclass(frozen=True, slots=True)
class EndpointError:
    """An endpoint problem that must be fixed before the run can continue."""

    endpoint: str
    code: str
    detail: str


class SpendingLimit(Protocol):
    """A run's budget."""

    async def wait_for_budget(self) -> None:
        """Return when the budget allows one more call."""
        ...

    def begin(self) -> None: ...

    def end_call(self, reply: Reply | None, failed: bool, endpoint: int | None) -> None: ...


class Waiting(Protocol):
    """Something that waits for replies to its requests, for example a judgement in progress."""

    def request_sent(self) -> None:
        """Called before each request."""
        ...

    def request_ended(self, *, failed: bool) -> None:
        """Called after each request. `failed`: without any reply."""
        ...


@dataclass(slots=True)
class RunGate:
    """Whether a run may send requests. A run with an `error` is about to be paused."""

    lot: Lot
    spending: SpendingLimit
    open: bool = True
    error: EndpointError | None = None


@dataclass(slots=True)
class RequestGuard:
    """Implements core.judges.client.Guard for one request of a run."""

    gate: RunGate
    model: ModelConnection
    waiting: Waiting
    ticket: Ticket

    async def before(self, request: Request) -> None:
        """Wait until the request may be sent. Raises Abandoned if the run may send no more requests."""
        await self.model.gate.enter(self.ticket, request)
        await self.gate.spending.wait_for_budget()
        if not self.gate.open or self.gate.error:
            raise Abandoned
        self.gate.spending.begin()
        self.waiting.request_sent()

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        answered = reply or (error.reply if error else None)
        self.waiting.request_ended(failed=error is not None and answered is None)
        self.gate.spending.end_call(answered, reply is None, self.model.endpoint)
        self.model.gate.leave(self.ticket, reply, error)

    def counts(self, error: JudgeError) -> bool:
        return self.model.gate.counts(self.ticket, error)


class Caller:
    """Sends the requests of one run."""

    def __init__(self, clients: HttpClients, gate: RunGate, policy: RetryPolicy) -> None:
        self.clients = clients
        self.gate = gate
        self.policy = policy
        self.random = Random()  # one for all: seeding one per request costs 20 µs
        # After an endpoint's first answer, a rejection is about the prompt, so no parameters are left out and retried.
        self.trusting = replace(policy, suspect_parameters=False)
        self.learnt: set[tuple[int, frozenset[str]]] = set()

    def check_outage(self, model: ModelConnection) -> None:
        """Set the gate's error if the run has waited too long for the model's server."""
        if not self.gate.error and model.gate.holds_back(self.gate.lot.run, self.policy.max_outage_seconds):
            problem = model.gate.problem
            self.gate.error = EndpointError(model.name, problem.code, problem.detail)

    async def call(
        self, model: ModelConnection, request: Request, waiting: Waiting, place: str = ""
    ) -> AskResult | Failure:
        """Send a request. Returns its result, or why it was not sent. Raises Abandoned if the run may send no more.
        `place`: which of the judgement's questions it is."""
        if model.failure:
            self._count_failure(model, model.failure)
            return model.failure
        ticket = Ticket(self.random.getrandbits(31), self.gate.lot)
        try:
            result = await ask_with_retries(
                self.clients.of(model.settings),
                model.settings,
                request,
                policy=self.trusting if model.answered else self.policy,
                random=self.random,
                guard=RequestGuard(self.gate, model, waiting, ticket),
            )
            self._learn(model, result)
            error = result.error
            self._count_failure(model, Failure(error.code, error.message) if error else None)
            return result
        except JudgeError as error:  # the settings are invalid
            model.failure = Failure(error.code, error.message)
            self._count_failure(model, model.failure)
            return model.failure
        finally:
            model.gate.release(ticket)

    def _count_failure(self, model: ModelConnection, failure: Failure | None) -> None:
        """Count consecutive failures caused by the endpoint's settings; at the limit, set the gate's error so that the
        run is paused. Raises Abandoned for later failures, so that these requests are sent again."""
        if failure is None or not self._for_settings(model, failure):
            model.setting_failures = 0
            return
        if self.gate.error:
            raise Abandoned
        model.setting_failures += 1
        most = self.policy.max_consecutive_failures
        if most is not None and model.setting_failures >= most:
            self.gate.error = EndpointError(model.name, failure.code, failure.detail)

    def _for_settings(self, model: ModelConnection, failure: Failure) -> bool:
        if failure is model.failure or failure.code in SETTING_CODES:
            return True
        return failure.code in MAYBE_SETTING_CODES and not model.answered

    def _learn(self, model: ModelConnection, result: AskResult) -> None:
        """Remember that the model answers, and which parameters its server rejects."""
        if result.reply is not None:
            model.answered = True
        refuses = model.settings.refuses
        if not result.refuses <= refuses:
            model.settings = replace(model.settings, refuses=refuses | result.refuses)
            if model.endpoint:
                self.learnt.add((model.endpoint, result.refuses))

    def take_learnt(self) -> list[tuple[int, frozenset[str]]]:
        """Return (endpoint, parameters) pairs that servers have rejected since the last call."""
        learnt, self.learnt = list(self.learnt), set()
        return learnt
