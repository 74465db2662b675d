"""A worker's gates: which requests pass and when, and which server an API key is sent to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest
from django.db import connections

from evalsite.accounts.models import Project
from evalsite.secrets import encrypt
from judging.core.judges.errors import Busy, JudgeError, Unusable
from judging.core.judges.limits import COOLDOWN_SECONDS, FEWEST_TRIED, RateLimits
from judging.core.judges.reply import Reply, Usage
from judging.core.metric_definition import JudgeModel
from judging.endpoints import limiter
from judging.endpoints.gate import RETRY_SECONDS, Gate, Lot, Ticket
from judging.endpoints.gate_pool import GatePool, ModelConnection
from judging.endpoints.limiter import Allowance, Status
from judging.endpoints.models import Endpoint, EndpointLoad
from tests.deadlines import TIMEOUT

KEY = "sk-a-secret-key"


def endpoint(project: Project, url: str = "http://127.0.0.1:9001", key: str = KEY) -> Endpoint:
    return Endpoint.objects.create(
        project=project,
        name="judge",
        url=url,
        model="m",
        key_encrypted=encrypt(key),
        rejected_params=["stream_options"],
    )


async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)


def pool() -> GatePool:
    return GatePool("test:1:1", at_once)


def connection(row: Endpoint, url: str) -> ModelConnection:
    return pool().connection(JudgeModel(name="judge", template="", endpoint=row.pk, url=url, model="m"))


def test_a_key_goes_to_the_server_that_it_is_kept_for(project: Project) -> None:
    found = connection(endpoint(project), "http://127.0.0.1:9001/v1/chat/completions")
    assert (found.settings.api_key, found.failure) == (KEY, None)


def test_a_key_does_not_go_to_the_server_of_an_older_run(project: Project) -> None:
    found = connection(endpoint(project, "http://127.0.0.1:9001"), "http://127.0.0.1:9002/v1")
    assert found.failure is not None
    assert found.failure.code == "endpoint_moved"


def test_an_endpoint_without_secrets_may_move(project: Project) -> None:
    assert connection(endpoint(project, key=""), "http://127.0.0.1:9002/v1").failure is None


def test_what_a_server_refuses_is_remembered(project: Project) -> None:
    assert connection(endpoint(project), "http://127.0.0.1:9001").settings.refuses == {"stream_options"}


def test_a_lost_key_is_reported(project: Project) -> None:
    row = endpoint(project)
    Endpoint.objects.filter(pk=row.pk).update(key_encrypted="encrypted with another key")
    found = connection(row, "http://127.0.0.1:9001")
    assert found.failure is not None
    assert found.failure.code == "key_unreadable"


def test_a_key_of_the_environment_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    judge = JudgeModel(
        name="judge", template="", url="http://127.0.0.1:9001", model="m", api_key_env="NO_SUCH_KEY"
    )
    found = pool().connection(judge)
    assert found.failure is not None
    assert (found.failure.code, found.failure.detail) == ("key_missing", "NO_SUCH_KEY")


def test_all_models_at_one_address_share_a_gate(db: None) -> None:
    found = pool()
    one, two = (JudgeModel(name=n, template="", url="http://127.0.0.1:9001", model="m") for n in "ab")
    assert found.connection(one).gate is found.connection(two).gate


def test_a_share_is_released_after_an_exchange_that_is_still_being_written(transactional_db: None) -> None:
    threads = ThreadPoolExecutor(1)

    async def slowly(work: Callable[..., Any], *arguments: Any) -> Any:
        def in_thread() -> Any:
            time.sleep(0.1 if work is limiter.exchange else 0.0)
            return work(*arguments)

        return await asyncio.get_running_loop().run_in_executor(threads, in_thread)

    async def end_while_exchanging(worker: GatePool) -> None:
        waiting = asyncio.create_task(next(iter(worker.gates.values())).enter(Ticket(1), REQUEST))
        await asyncio.sleep(0)
        syncing = asyncio.create_task(worker.exchange())
        await asyncio.sleep(0.02)
        for task in (syncing, waiting):
            task.cancel()
        await worker.release()

    worker = GatePool("test:1:1", slowly)
    worker.connection(JudgeModel(name="judge", template="", url="http://127.0.0.1:9001", model="m"))
    asyncio.run(end_while_exchanging(worker))
    threads.submit(connections.close_all).result()
    threads.shutdown()
    assert EndpointLoad.objects.get().workers == {}


# --- one gate, without a database

REQUEST = {"messages": [{"role": "user", "content": "x"}]}
UNLIMITED, ONE_A_SECOND = RateLimits(), RateLimits(requests=62)
UP, ANY = Status(), Lot()
UNREADABLE = Unusable("bad_reply", status=200)
LIMITED = Busy("rate_limited", status=429)
REPLY = Reply("7", None, None, "stop", Usage(10, 10), "m", 0.1, 0.1, 200, streamed=True)


class Clock:
    """A clock that only moves by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Entrance:
    """A gate with `share` calls, and requests that wait at it."""

    def __init__(self, share: int, limits: RateLimits = UNLIMITED, in_thread: Any = at_once) -> None:
        self.clock = Clock()
        self.gate = Gate("key", None, 64, limits, in_thread, clock=self.clock)
        self.apply(share)
        self.passed: list[Ticket] = []

    def apply(self, share: int, status: Status = UP) -> None:
        self.gate.apply(Allowance(share, 64, self.gate.limits, status))

    def arrive(self, *tickets: Ticket) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self._enter(ticket)) for ticket in tickets]

    async def _enter(self, ticket: Ticket) -> None:
        await self.gate.enter(ticket, REQUEST)
        self.passed.append(ticket)

    async def after(self, seconds: float = 0.0) -> list[Ticket]:
        """Move the clock; return the tickets that have passed since the last call."""
        self.clock.now += seconds
        self.gate._admit()
        for _ in range(5):
            await asyncio.sleep(0)
        passed, self.passed = self.passed, []
        return passed

    async def end(self, error: JudgeError | None, *tickets: Ticket) -> list[Ticket]:
        """End the tries of these tickets in the same way; return the tickets that pass then."""
        for ticket in tickets:
            self.gate.leave(ticket, None if error else REPLY, error)
        return await self.after()


def tickets(count: int, lot: Lot = ANY, first: int = 0) -> list[Ticket]:
    return [Ticket(number, lot) for number in range(first, first + count)]


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in an event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(asyncio.wait_for(_cancelling(test), TIMEOUT))

    return run


async def _cancelling(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await test()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@in_loop
async def test_no_more_requests_are_in_flight_than_the_share() -> None:
    entrance = Entrance(3)
    waiting = tickets(5)
    entrance.arrive(*waiting)
    passed = await entrance.after()
    assert passed == waiting[:3]
    assert await entrance.end(None, passed[0]) == [waiting[3]]


@in_loop
async def test_requests_pass_when_a_worker_gets_a_share() -> None:
    entrance = Entrance(0)
    entrance.arrive(*tickets(2))
    assert await entrance.after() == []
    entrance.apply(1)
    assert len(await entrance.after()) == 1


@in_loop
async def test_a_request_that_is_cancelled_takes_no_call_with_it() -> None:
    entrance = Entrance(1)
    first, second, third = tickets(3)
    entrance.arrive(first)
    tasks = entrance.arrive(second, third)
    assert await entrance.after() == [first]
    tasks[0].cancel()
    assert await entrance.end(None, first) == [third]


@in_loop
async def test_a_request_that_is_cancelled_when_its_turn_has_come_passes_it_on() -> None:
    entrance = Entrance(1)
    first, second, third = tickets(3)
    entrance.arrive(first)
    tasks = entrance.arrive(second, third)
    assert await entrance.after() == [first]
    entrance.gate.leave(first, REPLY, None)
    tasks[0].cancel()
    assert await entrance.after() == [third]
    assert entrance.gate.in_flight == 1


@in_loop
async def test_a_run_of_higher_priority_gets_more_of_the_calls_and_no_run_waits_for_the_others_end() -> None:
    entrance = Entrance(1)
    high, normal = Lot(1, 1, 9.0), Lot(1, 2, 3.0)
    entrance.arrive(*tickets(400, normal), *tickets(400, high, first=400))
    started = await entrance.after()
    while len(started) < 400:
        started += await entrance.end(None, started[-1])
    of_high = sum(ticket.lot == high for ticket in started)
    assert 0.6 * 400 <= of_high < 0.9 * 400


@in_loop
async def test_each_project_has_the_same_part_of_the_calls() -> None:
    entrance = Entrance(1)
    for run in range(9):
        entrance.arrive(*tickets(100, Lot(1, run)))
    small = Lot(2, 99)
    entrance.arrive(*tickets(400, small))
    started = await entrance.after()
    while len(started) < 400:
        started += await entrance.end(None, started[-1])
    assert 0.4 * 400 <= sum(ticket.lot == small for ticket in started) <= 0.6 * 400


@in_loop
async def test_one_overload_halves_the_share_once() -> None:
    entrance = Entrance(8)
    entrance.arrive(*tickets(8))
    passed = await entrance.after()
    await entrance.end(LIMITED, *passed[:4])
    assert entrance.gate.share == 4
    await entrance.after(COOLDOWN_SECONDS)
    await entrance.end(LIMITED, passed[4])
    assert (entrance.gate.share, entrance.gate.report().news.overloaded) == (2, True)


@in_loop
async def test_a_request_that_is_told_to_wait_keeps_its_call() -> None:
    entrance = Entrance(1)
    first, second = tickets(2)
    entrance.arrive(first, second)
    assert await entrance.after() == [first]
    assert await entrance.end(LIMITED, first) == []
    entrance.arrive(first)
    assert await entrance.after() == [first]


@in_loop
async def test_a_request_that_was_not_answered_lets_the_next_pass_before_its_retry() -> None:
    entrance = Entrance(1)
    first, second = tickets(2)
    entrance.arrive(first, second)
    await entrance.after()
    assert await entrance.end(UNREADABLE, first) == [second]


@in_loop
async def test_being_told_to_wait_is_no_try_while_others_are_answered() -> None:
    entrance = Entrance(2)
    first, second = tickets(2)
    entrance.arrive(first, second)
    await entrance.after()
    await entrance.end(LIMITED, first)
    assert entrance.gate.counts(first, LIMITED)
    await entrance.end(None, second)
    assert not entrance.gate.counts(first, LIMITED)
    assert entrance.gate.counts(first, LIMITED)
    assert entrance.gate.counts(first, UNREADABLE)


@pytest.mark.parametrize("ending", [Busy("rate_limited", status=429, retry_after=5.0), None])
def test_nothing_passes_before_the_time_that_the_server_names(ending: JudgeError | None) -> None:
    async def wait() -> None:
        entrance = Entrance(2)
        waiting = tickets(3)
        entrance.arrive(*waiting)
        passed = await entrance.after()
        reply = None if ending else replace(REPLY, closed_for=5.0)
        entrance.gate.leave(passed[0], reply, ending)
        assert await entrance.after(4.9) == []
        for ticket in passed:
            entrance.gate.release(ticket)
        assert await entrance.after(0.2) == [waiting[2]]
        assert entrance.gate.report().news.closed_for == 5.0

    in_loop(wait)()


async def down(waiting: int = 0) -> tuple[Entrance, list[Ticket]]:
    """An entrance to a server that answered none of 20 requests, which wait for their retries with some others."""
    entrance = Entrance(FEWEST_TRIED)
    failed = tickets(FEWEST_TRIED)
    entrance.arrive(*failed)
    await entrance.after()
    await entrance.end(UNREADABLE, *failed)
    entrance.arrive(*failed, *tickets(waiting, first=100))
    assert entrance.gate.is_down
    return entrance, failed


@in_loop
async def test_a_server_that_is_down_gets_one_probe_at_a_time_of_requests_that_have_not_failed() -> None:
    entrance, _ = await down(waiting=2)
    assert await entrance.after(0.9) == []
    (probe,) = await entrance.after(0.2)
    assert probe.number == 100
    assert await entrance.after(60) == []
    assert await entrance.end(UNREADABLE, probe) == []
    assert await entrance.after(1.9) == []
    assert [ticket.number for ticket in await entrance.after(0.2)] == [101]


@in_loop
async def test_without_other_requests_one_that_failed_is_the_probe() -> None:
    entrance, failed = await down()
    assert await entrance.after(1.1) == failed[:1]


@in_loop
async def test_an_answered_probe_lets_the_others_pass() -> None:
    entrance, _ = await down(waiting=1)
    (probe,) = await entrance.after(1.1)
    assert len(await entrance.end(None, probe)) == FEWEST_TRIED
    assert not entrance.gate.is_down


@in_loop
async def test_a_server_that_another_worker_reached_is_up() -> None:
    entrance, _ = await down()
    entrance.gate.report()
    entrance.apply(4, Status(recent={1: True, **dict.fromkeys(range(100, 139), False)}))
    assert len(await entrance.after()) == 4


@in_loop
async def test_a_run_is_held_back_by_a_server_that_is_down_for_too_long() -> None:
    entrance, _ = await down()
    await entrance.after(19)
    assert not entrance.gate.holds_back(0, 20.0)
    await entrance.after(2)
    assert entrance.gate.holds_back(0, 20.0)
    assert not entrance.gate.holds_back(1, 20.0)


def test_calls_pass_as_the_shared_buckets_allow() -> None:
    granted = [1, 2, 0, 1]

    async def bucket(_work: object, _key: str, spacings: list[object], _owed: float) -> tuple[int, float]:
        return min(len(spacings), granted.pop(0) if granted else 0), 1.0

    async def wait() -> None:
        entrance = Entrance(10, ONE_A_SECOND, bucket)
        waiting = tickets(4)
        entrance.arrive(*waiting)
        assert await entrance.after() == waiting[:1]
        assert await entrance.after(1.1) == waiting[1:3]
        assert await entrance.after(1.1) == []
        assert entrance.gate.in_flight == 3
        assert await entrance.after(1.1) == waiting[3:]

    in_loop(wait)()


def test_buckets_that_can_not_be_asked_are_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    failures = [OSError()]

    async def bucket(_work: object, _key: str, spacings: list[object], _owed: float) -> tuple[int, float]:
        if failures:
            raise failures.pop()
        return len(spacings), 0.0

    async def wait() -> None:
        entrance = Entrance(10, ONE_A_SECOND, bucket)
        waiting = tickets(2)
        entrance.arrive(*waiting)
        assert await entrance.after() == []
        assert await entrance.after(RETRY_SECONDS + 0.1) == waiting

    in_loop(wait)()
    assert "rate limit" in caplog.text


@in_loop
async def test_a_call_without_a_reply_gives_its_tokens_back() -> None:
    async def bucket(_work: object, _key: str, spacings: list[object], _owed: float) -> tuple[int, float]:
        return len(spacings), 0.0

    entrance = Entrance(1, RateLimits(tokens=6000), bucket)
    (ticket,) = tickets(1)
    entrance.arrive(ticket)
    await entrance.after()
    await entrance.end(UNREADABLE, ticket)
    assert entrance.gate.owed < 0


@in_loop
async def test_what_could_not_be_reported_is_reported_later() -> None:
    entrance = Entrance(2)
    waiting = tickets(2)
    entrance.arrive(*waiting)
    await entrance.after()
    await entrance.end(None, waiting[0])
    lost = entrance.gate.report()
    await entrance.end(UNREADABLE, waiting[1])
    entrance.gate.restore_report(lost)
    news = entrance.gate.report().news
    assert (news.replies, [one.answered for one in news.tries]) == (1, [True, False])
    assert news.problem is not None
