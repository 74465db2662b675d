"""Sends a request until it succeeds or cannot: retries with jitter, `Retry-After`, dropping of rejected parameters."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from judging.core.judges.error_responses import error_for_status, reset_seconds
from judging.core.judges.errors import Interrupted, JudgeError, Unreachable, Unusable
from judging.core.judges.http_clients import body_of, network_error, network_errors, request_headers
from judging.core.judges.outside_text import MAX_NAME, clean, shown_message
from judging.core.judges.reply import CONTENT_FILTER, Reply, Usage
from judging.core.judges.reply_reader import OnText, ReplyReader
from judging.core.judges.settings import JudgeSettings, Request, without
from judging.core.judges.structured import PARAMETERS

if TYPE_CHECKING:
    import httpx

MAX_ERROR_BYTES = 64 * 1024
# Servers close the stream right after the end mark; we wait no longer than this for those that do not.
SECONDS_AFTER_DONE = 1.0

# Dropped in this order if a server rejects a request without naming the parameter: the least common first.
_SUSPECTS: tuple[frozenset[str], ...] = (
    PARAMETERS,
    frozenset({"separate_reasoning"}),
    frozenset({"stream_options"}),
    frozenset({"separate_reasoning", "stream_options"}),
    frozenset({"separate_reasoning", "stream_options", "stream"}),
)

Sleep = Callable[[float], Awaitable[None]]


class Guard(Protocol):
    """Called before and after each try, to enforce limits, budgets and paused runs."""

    async def before(self, request: Request) -> None:
        """Return when the try may start. May raise JudgeError, which ends the request, or any other exception."""
        ...

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        """Report how the try ended; both are None if it was cancelled. Called once for each `before` that returned."""
        ...

    def counts(self, error: JudgeError) -> bool:
        """Whether a failed try counts as one of the request's tries."""
        ...


class NoGuard:
    """A guard without limits."""

    async def before(self, request: Request) -> None:
        return None

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        return None

    def counts(self, error: JudgeError) -> bool:
        return True


NO_GUARD = NoGuard()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When and how to retry; times are in seconds. `tries` counts sends of the same request.

    `max_outage_seconds`: how long a run waits for a server that is down before it stops. `suspect_parameters`: find
    out which parameters a server rejects without naming them. Turn it off once the endpoint has answered a request with
    these parameters, otherwise each bad prompt costs four more calls. `max_consecutive_failures`: the number of
    consecutive requests failing because of the endpoint's settings that pauses a run; None: never.
    """

    tries: int = 7
    base_seconds: float = 0.5
    longest_wait: float = 3.0
    longest_retry_after: float = 120.0
    total_seconds: float = 1800.0
    suspect_parameters: bool = True
    max_outage_seconds: float = float("inf")
    max_consecutive_failures: int | None = 10


@dataclass(frozen=True, slots=True)
class RequestAttempt:
    """One HTTP try; `waited` is the pause after it, in seconds."""

    started_unix: float
    seconds: float
    status: int | None
    error_code: str
    message: str
    waited: float

    def record(self) -> dict[str, Any]:
        """The form that is stored, without empty values."""
        record: dict[str, Any] = {
            "started_unix": self.started_unix,
            "seconds": self.seconds,
            "status": self.status,
        }
        if self.error_code:
            record |= {"error_code": self.error_code, "message": self.message, "waited": self.waited}
        return record


@dataclass(frozen=True, slots=True)
class AskResult:
    """How a request ended. An unusable reply (`empty_reply`, `truncated`) is included next to its error.

    `request` is the last one sent; `refuses` are newly found parameters that the server rejects.
    """

    reply: Reply | None
    error: JudgeError | None
    calls: tuple[RequestAttempt, ...]
    request: Request
    refuses: frozenset[str]

    @property
    def reply_to_read(self) -> Reply | None:
        """The reply that a verdict is read from. Of one that the server refused, filtered or cut off before any text it
        has the server's words: asking again would not change that. None after any other error."""
        if self.error is None or self.error.code == "truncated":
            return self.reply
        if self.error.code != CONTENT_FILTER:
            return None
        words, status = self.error.message, self.error.status or 0
        reply = self.reply or Reply("", None, None, None, Usage(), None, self.seconds, None, status, False)
        return replace(reply, content=reply.content or words, finish_reason=CONTENT_FILTER)

    @property
    def usage(self) -> Usage:
        return self.reply.usage if self.reply else Usage()

    @property
    def seconds(self) -> float:
        """Duration of the reply, or of all tries without a reply."""
        return self.reply.seconds if self.reply else sum(call.seconds for call in self.calls)

    @property
    def first_token_seconds(self) -> float | None:
        return self.reply.first_token_seconds if self.reply else None


async def ask_with_retries(
    client: httpx.AsyncClient,
    settings: JudgeSettings,
    request: Request,
    *,
    policy: RetryPolicy = RetryPolicy(),
    sleep: Sleep = asyncio.sleep,
    random: Random | None = None,
    guard: Guard = NO_GUARD,
    on_text: OnText | None = None,
) -> AskResult:
    """Send a request with retries. Raises only cancellation, and exceptions of `guard` other than JudgeError."""
    asking = _Retries(policy, random or Random(), guard, request)
    while True:
        try:
            await guard.before(asking.request)
        except JudgeError as error:
            return asking.ended(None, error)
        started = time.time(), time.perf_counter()
        reply: Reply | None = None
        failure: JudgeError | None = None
        try:
            reply = await ask(client, settings, asking.request, on_text=on_text)
        except JudgeError as error:
            failure = error
        finally:  # also if the try was cancelled
            guard.after(reply, failure)
        if failure is None:
            asking.note(*started, reply.status if reply else None)
            return asking.ended(reply, None)
        wait = asking.failed(failure, *started)
        if wait is None:
            return asking.ended(failure.reply, failure)
        if wait > 0:
            await sleep(wait)


class _Retries:
    """Decides what happens between the tries of one request."""

    def __init__(self, policy: RetryPolicy, random: Random, guard: Guard, request: Request) -> None:
        self.policy = policy
        self.random = random
        self.guard = guard
        self.original = self.request = request
        self.calls: list[RequestAttempt] = []
        self.tries = self.pauses = 0
        self.named: frozenset[str] = frozenset()
        self.suspected: frozenset[str] = frozenset()
        self.suspects: Iterator[frozenset[str]] = iter(_SUSPECTS if policy.suspect_parameters else ())
        self.first_refusal: JudgeError | None = None

    def failed(self, error: JudgeError, started_unix: float, started: float) -> float | None:
        """Seconds until the next try, which may send a different request; None to give up."""
        wait = 0.0 if self._adapted(error) else self._wait(error)
        self.note(started_unix, started, error.status, error, wait or 0.0)
        return wait

    def note(
        self,
        started_unix: float,
        started: float,
        status: int | None,
        error: JudgeError | None = None,
        waited: float = 0.0,
    ) -> None:
        code, message = (error.code, error.message) if error else ("", "")
        seconds = time.perf_counter() - started
        self.calls.append(RequestAttempt(started_unix, seconds, status, code, message, waited))

    def ended(self, reply: Reply | None, error: JudgeError | None) -> AskResult:
        answered = error is None or error.reply is not None
        # Parameters dropped in an unsuccessful search were not the cause.
        learnt = self.named | (self.suspected if answered else frozenset())
        if error is not None and error.status in (400, 422) and self.first_refusal is not None:
            error = self.first_refusal
        return AskResult(reply, error, tuple(self.calls), self.request, learnt)

    def _adapted(self, error: JudgeError) -> bool:
        """Whether there is another request to try, with rejected or suspected parameters removed."""
        fresh = error.refused - self.named
        if fresh:
            self.named |= fresh
            return self._ask_without(self.suspected)
        if error.code in ("bad_request", "refused_parameter") and error.status in (400, 422):
            self.first_refusal = self.first_refusal or error
            return any(self._ask_without(suspected) for suspected in self.suspects)
        return False

    def _ask_without(self, suspected: frozenset[str]) -> bool:
        changed = without(self.original, self.named | suspected)
        if changed == self.request or changed == self.original:
            return False
        self.suspected, self.request = suspected, changed
        return True

    def _wait(self, error: JudgeError) -> float | None:
        self.tries += self.guard.counts(error)
        self.pauses += 1
        if not error.retry or self.tries >= self.policy.tries:
            return None
        wait = self._pause(error.retry_after)
        spent = sum(call.seconds + call.waited for call in self.calls)
        return wait if spent + wait <= self.policy.total_seconds else None

    def _pause(self, retry_after: float | None) -> float:
        """Full jitter: a random time up to the exponential bound, but not before the server's `retry_after`."""
        doubled = self.policy.base_seconds * 2.0 ** min(self.pauses - 1, 60)
        bound = min(self.policy.longest_wait, doubled)
        jitter = self.random.uniform(0.0, bound)
        if retry_after is None:
            return jitter
        return min(retry_after, self.policy.longest_retry_after) + min(jitter, self.policy.base_seconds)


async def ask(
    client: httpx.AsyncClient, settings: JudgeSettings, request: Request, *, on_text: OnText | None = None
) -> Reply:
    """Send `request` once and read the reply, streamed or not; `on_text` gets each piece as it arrives.

    Raises JudgeError, whose message contains no secret.
    """
    import httpx

    call, connecting = _RequestInFlight(settings, request, on_text), settings.timeouts.connect
    with messages_shown(settings):
        http_request = httpx.Request(
            "POST",
            _parsed_url(settings.speaks.url(settings.url, request)),
            headers=request_headers(settings),
            content=_encoded(settings.speaks.body(request)),
            # With aiohttp, httpx's `pool` timeout covers all of opening a connection: DNS, connecting, TLS.
            extensions={"timeout": {"connect": connecting, "pool": connecting}},
        )
        first_byte = call.started + connecting + settings.timeouts.first_byte
        try:
            async with asyncio.timeout_at(min(first_byte, call.ends)) as deadline:
                response = await client.send(http_request, stream=True)
                try:
                    await call.read(response, deadline)
                finally:
                    await response.aclose()
        except network_errors() as error:
            if not call.assembly.done:
                raise call.failure(error) from error
        reply = call.assembly.finish(call.now() - call.started, call.first_token)
        if call.closed_for or call.server:
            return replace(reply, closed_for=call.closed_for, server=call.server)
        return reply


@contextmanager
def messages_shown(settings: JudgeSettings) -> Iterator[None]:
    """Make the messages of errors fit to be shown: the only place where they are redacted and shortened."""
    try:
        yield
    except JudgeError as error:
        error.message = shown_message(error.message, settings.secrets())
        error.args = (error.code, error.message)
        raise


class _RequestInFlight:
    """One request in flight, with its deadline and the current phase."""

    def __init__(self, settings: JudgeSettings, request: Request, on_text: OnText | None) -> None:
        self.timeouts = settings.timeouts
        self.as_chunk = settings.speaks.as_chunk
        self.request = request
        self.on_text = on_text
        self.now = asyncio.get_running_loop().time
        self.started = self.now()
        self.first_token: float | None = None
        self.closed_for: float | None = None
        self.server: str | None = None
        self.waiting_for = "timeout_first_byte"
        self.ends = self.started + self.timeouts.whole
        self.assembly = ReplyReader()

    async def read(self, response: httpx.Response, deadline: asyncio.Timeout) -> None:
        if response.status_code >= 300:
            body = await _start_of(response)
            raise error_for_status(response.status_code, response.headers, body, self.request)
        self.closed_for = reset_seconds(response.headers, unknown="1")
        self.server = clean(response.headers.get("server", ""))[:MAX_NAME] or None
        assembly = self.assembly = ReplyReader(
            response.status_code, self.on_text, self.request, self.as_chunk
        )
        extended, step = 0.0, min(1.0, self.timeouts.idle / 10)
        async for data in body_of(response):
            now = self.now()
            assembly.feed(data)
            if self.first_token is None and assembly.size:
                self.first_token = now - self.started
            if assembly.done:
                deadline.reschedule(now + SECONDS_AFTER_DONE)
            elif now - extended > step:
                # Rescheduling the deadline costs as much as reading a chunk, so do it once a second at most.
                self.waiting_for = "timeout_idle"
                deadline.reschedule(min(now + self.timeouts.idle + step, self.ends))
                extended = now

    def failure(self, error: Exception) -> JudgeError:
        if isinstance(error, TimeoutError):
            whole_passed = self.now() >= self.ends
            return Interrupted("timeout_whole" if whole_passed else self.waiting_for)
        return network_error(error)


async def _start_of(response: httpx.Response) -> bytes:
    body = bytearray()
    try:
        async for data in body_of(response):
            body += data
            if len(body) >= MAX_ERROR_BYTES:
                break
    except Unusable:  # the status says enough
        pass
    return bytes(body[:MAX_ERROR_BYTES])


def _encoded(request: Request) -> bytes:
    try:
        return msgspec.json.encode(request)
    except UnicodeEncodeError:  # a lone surrogate in the text: JSON can carry it escaped
        return json.dumps(request).encode()


@lru_cache(maxsize=256)
def _parsed_url(url: str) -> httpx.URL:
    import httpx

    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Unreachable("bad_url", str(error)) from error
