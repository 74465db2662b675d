"""Sending a run's requests. Each waits for an endpoint slot, the rate limit and the run's budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from judging.core.judges.client import AskResult, RetryPolicy, ask_with_retries
from judging.core.judges.errors import MAYBE_SETTING_CODES, SETTING_CODES, JudgeError
from judging.core.judges.http_clients import HttpClients
from judging.core.judges.rate_limiter import Reservation
from judging.core.judges.reply import Reply
from judging.core.judges.settings import Request
from judging.core.results import Failure
from judging.endpoints.client import ModelConnection


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

    async def affordable(self) -> None:
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

    run: int
    project: int
    weight: float
    spending: SpendingLimit
    open: bool = True
    error: EndpointError | None = None


@dataclass(slots=True)
class RequestGuard:
    """Implements core.judges.client.Guard for one request of a run."""

    gate: RunGate
    model: ModelConnection
    waiting: Waiting
    max_outage: float
    reservation: Reservation | None = None

    async def before(self, request: Request) -> None:
        """Wait until the request may be sent. Raises Abandoned if the run may send no more requests, JudgeError if the
        endpoint is down for too long."""
        await self.model.client.breaker.wait(self.max_outage)
        self.reservation = await self.model.client.rate.acquire(request)
        await self.gate.spending.affordable()
        if not self.gate.open:
            raise Abandoned
        self.gate.spending.begin()
        self.waiting.request_sent()

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        answered = reply or (error.reply if error else None)
        self.waiting.request_ended(failed=error is not None and answered is None)
        self.gate.spending.end_call(answered, reply is None, self.model.endpoint)
        if reply is not None or error is not None:
            self.model.client.record(reply, error, self.reservation)

    def may_retry(self) -> bool:
        return self.model.client.retries.spend()


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

    async def call(self, model: ModelConnection, request: Request, waiting: Waiting) -> AskResult | Failure:
        """Send a request. Returns its result, or why it was not sent. Raises Abandoned if the run may send no more."""
        if model.failure:
            self._count_failure(model, model.failure)
            return model.failure
        await model.client.concurrency.acquire(self.gate.run, self.gate.weight, self.gate.project)
        try:
            if not self.gate.open or self.gate.error:
                raise Abandoned
            asked = await ask_with_retries(
                self.clients.of(model.settings),
                model.settings,
                request,
                policy=self.trusting if model.answered else self.policy,
                random=self.random,
                guard=RequestGuard(self.gate, model, waiting, self.policy.max_outage_seconds),
            )
            self._learn(model, asked)
            error = asked.error
            self._count_failure(model, Failure(error.code, error.message) if error else None)
            return asked
        except JudgeError as error:  # the settings are invalid
            model.failure = Failure(error.code, error.message)
            self._count_failure(model, model.failure)
            return model.failure
        finally:
            model.client.concurrency.release(self.gate.run)

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

    def _learn(self, model: ModelConnection, asked: AskResult) -> None:
        """Remember that the model answers, and which parameters its server rejects."""
        if asked.reply is not None:
            model.answered = True
        known = model.settings.refuses
        if not asked.refuses <= known:
            model.settings = replace(model.settings, refuses=known | asked.refuses)
            if model.endpoint:
                self.learnt.add((model.endpoint, asked.refuses))

    def take_learnt(self) -> list[tuple[int, frozenset[str]]]:
        """Return (endpoint, parameters) pairs that servers have rejected since the last call."""
        learnt, self.learnt = list(self.learnt), set()
        return learnt
