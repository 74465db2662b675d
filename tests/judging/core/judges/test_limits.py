import asyncio
from collections.abc import Awaitable, Callable

from judging.core.judges.limits import AdaptiveSlots


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def in_loop(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(_awaited(test), 10))


async def _awaited(test: Callable[[], Awaitable[None]]) -> None:
    await test()


def test_it_starts_at_the_ceiling() -> None:
    assert AdaptiveSlots(ceiling=8).limit == 8


def test_an_overload_halves_the_limit() -> None:
    slots = AdaptiveSlots(ceiling=8, clock=Clock())
    slots.overloaded()
    assert slots.limit == 4


def test_the_calls_of_one_overload_halve_it_once() -> None:
    clock = Clock()
    slots = AdaptiveSlots(ceiling=8, clock=clock)
    for _ in range(8):
        slots.overloaded()
    clock.now += 1.0
    slots.overloaded()
    assert slots.limit == 2


def test_one_slot_is_always_left() -> None:
    slots = AdaptiveSlots(ceiling=8, clock=Clock(), cooldown=0.0)
    for _ in range(20):
        slots.overloaded()
    assert slots.limit == 1


def test_a_round_of_successes_adds_about_one_slot() -> None:
    slots = AdaptiveSlots(ceiling=64, start=4)
    for _ in range(5):
        slots.succeeded()
    assert slots.limit == 5


def test_it_never_rises_above_the_ceiling() -> None:
    slots = AdaptiveSlots(ceiling=4, start=3)
    for _ in range(100):
        slots.succeeded()
    assert slots.limit == 4


def test_nothing_starts_before_the_servers_own_time() -> None:
    clock = Clock()
    slots = AdaptiveSlots(ceiling=8, clock=clock)
    slots.overloaded(retry_after=5.0)
    clock.now += 4.9
    assert not slots.free
    clock.now += 0.2
    assert slots.free


def test_no_more_are_in_flight_than_the_limit() -> None:
    async def many() -> None:
        slots, most = AdaptiveSlots(ceiling=3), 0

        async def one() -> None:
            nonlocal most
            async with slots:
                most = max(most, slots.in_flight)
                await asyncio.sleep(0)

        await asyncio.gather(*[one() for _ in range(20)])
        assert (most, slots.in_flight) == (3, 0)

    in_loop(many)


def test_who_waits_is_woken_when_the_time_has_passed() -> None:
    async def wait() -> None:
        slots = AdaptiveSlots(ceiling=2)
        slots.overloaded(retry_after=0.02)
        async with slots:
            assert slots.in_flight == 1

    in_loop(wait)


def test_a_waiter_that_leaves_takes_no_slot_with_it() -> None:
    async def leave() -> None:
        slots = AdaptiveSlots(ceiling=1)
        async with slots:
            waiting = asyncio.ensure_future(slots.__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
        async with slots:
            assert slots.in_flight == 1

    in_loop(leave)


def test_a_waiter_that_leaves_when_its_turn_has_come_hands_it_on() -> None:
    async def leave() -> None:
        slots = AdaptiveSlots(ceiling=1)
        await slots.__aenter__()
        waiting = asyncio.ensure_future(slots.__aenter__())
        await asyncio.sleep(0)
        await slots.__aexit__(None, None, None)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert slots.in_flight == 0

    in_loop(leave)


def test_a_raised_ceiling_is_used_at_once_where_the_old_one_was_reached() -> None:
    slots = AdaptiveSlots(ceiling=4)
    slots.ceiling = 8
    assert slots.limit == 8


def test_a_lowered_ceiling_lowers_the_limit() -> None:
    slots = AdaptiveSlots(ceiling=8)
    slots.ceiling = 2
    assert slots.limit == 2
