import asyncio
from collections.abc import Awaitable, Callable

import pytest

from judging.core.judges.concurrency_limiter import ConcurrencyLimiter, adapted_slots, fair_shares


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def in_loop(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(_awaited(test), 10))


async def _awaited(test: Callable[[], Awaitable[None]]) -> None:
    await test()


def test_an_overload_halves_what_the_server_bears() -> None:
    assert adapted_slots(8, 8, overloaded=True) == 4


def test_one_slot_is_always_left() -> None:
    assert adapted_slots(1, 8, overloaded=True) == 1


def test_a_round_of_successes_adds_one_slot() -> None:
    assert adapted_slots(4, 64, successes=4) == 5


def test_it_never_rises_above_the_ceiling() -> None:
    assert adapted_slots(3, 4, successes=100) == 4


@pytest.mark.parametrize(
    ("wanted", "shares"),
    [
        ({"a": 9, "b": 9}, {"a": 5, "b": 5}),
        ({"a": 2, "b": 9}, {"a": 2, "b": 8}),
        ({"a": 9, "b": 9, "c": 9}, {"a": 4, "b": 3, "c": 3}),
        ({"a": 0, "b": 99}, {"a": 0, "b": 10}),
        ({"a": 1, "b": 1}, {"a": 1, "b": 1}),
    ],
)
def test_ten_slots_are_shared_fairly(wanted: dict[str, int], shares: dict[str, int]) -> None:
    assert fair_shares(10, wanted) == shares


def test_the_calls_of_one_overload_halve_the_share_once() -> None:
    clock = Clock()
    slots = ConcurrencyLimiter(8, clock=clock)
    for _ in range(8):
        slots.overloaded()
    clock.now += 1.0
    slots.overloaded()
    assert (slots.share, slots.take_events().overloads) == (2, 2)


def test_nothing_starts_before_the_servers_own_time() -> None:
    clock = Clock()
    slots = ConcurrencyLimiter(8, clock=clock)
    slots.overloaded(retry_after=5.0)
    clock.now += 4.9
    assert not slots.free
    clock.now += 0.2
    assert slots.free


def test_news_is_reported_once() -> None:
    slots = ConcurrencyLimiter(8, clock=Clock())
    slots.succeeded()
    assert (slots.take_events().successes, slots.take_events().successes) == (1, 0)


def test_no_more_are_in_flight_than_the_share() -> None:
    async def many() -> None:
        slots, most = ConcurrencyLimiter(3), 0

        async def one() -> None:
            nonlocal most
            await slots.acquire()
            most = max(most, slots.in_flight)
            await asyncio.sleep(0.001)
            slots.release()

        await asyncio.gather(*(one() for _ in range(20)))
        assert (most, slots.in_flight) == (3, 0)

    in_loop(many)


def test_who_waits_is_woken_when_the_time_has_passed() -> None:
    async def wait() -> None:
        slots = ConcurrencyLimiter(2)
        slots.overloaded(retry_after=0.02)
        await slots.acquire()
        assert slots.in_flight == 1

    in_loop(wait)


def test_who_waits_without_a_share_is_woken_by_one() -> None:
    async def wait() -> None:
        slots = ConcurrencyLimiter(0)
        waiting = asyncio.ensure_future(slots.acquire())
        await asyncio.sleep(0)
        slots.share = 1
        await waiting
        assert slots.in_flight == 1

    in_loop(wait)


def test_a_waiter_that_leaves_takes_no_slot_with_it() -> None:
    async def leave() -> None:
        slots = ConcurrencyLimiter(1)
        await slots.acquire()
        waiting = asyncio.ensure_future(slots.acquire())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        slots.release()
        await slots.acquire()
        assert slots.in_flight == 1

    in_loop(leave)


def test_a_waiter_that_leaves_when_its_turn_has_come_passes_it_on() -> None:
    async def leave() -> None:
        slots = ConcurrencyLimiter(1)
        await slots.acquire()
        waiting = asyncio.ensure_future(slots.acquire())
        await asyncio.sleep(0)
        slots.release()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert slots.in_flight == 0

    in_loop(leave)


def test_runs_that_wait_share_what_becomes_free_by_weight() -> None:
    async def share() -> None:
        slots, started = ConcurrencyLimiter(12), dict.fromkeys("lh", 0)

        async def one(run: str, weight: float) -> None:
            await slots.acquire(run, weight)
            started[run] += 1
            await asyncio.sleep(9)

        tasks = [asyncio.ensure_future(one("l", 1.0)) for _ in range(40)]
        await asyncio.sleep(0)
        tasks += [asyncio.ensure_future(one("h", 3.0)) for _ in range(40)]
        await asyncio.sleep(0)
        slots.share = 24
        await asyncio.sleep(0.01)
        assert started == {"l": 12, "h": 12}
        slots.share = 48
        await asyncio.sleep(0.01)
        assert started == {"l": 12, "h": 36}
        for task in tasks:
            task.cancel()

    in_loop(share)


def test_a_slot_is_not_waited_for_longer_than_asked() -> None:
    async def work() -> list[bool]:
        limiter = ConcurrencyLimiter(1)
        return [await limiter.try_acquire(0.0), await limiter.try_acquire(0.01)]

    assert asyncio.run(work()) == [True, False]
