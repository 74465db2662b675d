"""No minute holds more calls or tokens than the limit, and nearly all of it is used."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from judging.core.judges.rate_limiter import RateLimiter, RateLimits, TokenEstimator, starts
from tests.patience import PATIENCE


def most_in_a_minute(times: list[float], costs: list[float]) -> float:
    """The fullest minute, wherever it begins."""
    most, first, inside = 0.0, 0, 0.0
    for last, time_ in enumerate(times):
        inside += costs[last]
        while time_ - times[first] >= 60.0:
            inside -= costs[first]
            first += 1
        most = max(most, inside)
    return most


def schedule(limits: RateLimits, costs: list[float]) -> list[float]:
    largest = max(costs)
    spacings = [(limits.request_spacing, limits.token_spacing(cost, largest)) for cost in costs]
    return starts(0.0, 0.0, 0.0, spacings)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 60, 100, 5000])
def test_no_minute_holds_more_requests_than_the_limit(most: int) -> None:
    times = schedule(RateLimits(requests=most), [0.0] * (5 * most))
    assert most * 0.9 <= most_in_a_minute(times, [1.0] * len(times)) <= most


@pytest.mark.parametrize("late", [0.5, 1.8])
@pytest.mark.parametrize("most", [1, 10, 600])
def test_calls_that_arrive_late_do_not_push_a_minute_over_it(most: int, late: float) -> None:
    draw = random.Random(1)
    times = sorted(
        at + draw.uniform(0, late) for at in schedule(RateLimits(requests=most), [0.0] * (5 * most))
    )
    assert most_in_a_minute(times, [1.0] * len(times)) <= most


@pytest.mark.parametrize("largest", [10, 400, 2_500, 6_000, 10_000])
def test_no_minute_holds_more_tokens_than_the_limit(largest: int) -> None:
    draw = random.Random(2)
    costs = [float(draw.randint(1, largest)) for _ in range(3000)]
    times = schedule(RateLimits(tokens=10_000), costs)
    assert most_in_a_minute(times, costs) <= 10_000


def test_nine_tenths_of_the_tokens_are_used_where_calls_are_small() -> None:
    times = schedule(RateLimits(tokens=100_000), [500.0] * 2000)
    assert 500.0 * 2000 / times[-1] * 60 >= 90_000


def test_a_call_beyond_the_whole_limit_takes_the_minutes_that_it_is_worth() -> None:
    assert RateLimits(tokens=100).token_spacing(250, 250) == 150.0


def test_the_stricter_of_two_limits_holds() -> None:
    times = schedule(RateLimits(requests=600, tokens=6000), [100.0] * 10)
    assert times[1] - times[0] == pytest.approx(60 * 100 / (5820 - 100))


def test_what_calls_cost_is_learnt_from_replies() -> None:
    guess = TokenEstimator()
    for _ in range(100):
        guess.learn(size=1000, read=500, written=80)
    assert guess.of(2000, None) == pytest.approx(1080, rel=0.02)


def test_before_any_reply_the_limit_of_the_request_is_the_guess() -> None:
    assert TokenEstimator().of(300, 50) == pytest.approx(150)


def paced(limits: RateLimits, calls: int, *, leaving: int = 0) -> list[float]:
    """When calls started that all waited at once, the first `leaving` of which left soon."""
    spacings: list[float] = []

    async def reserve(costs: list[float], owed: float) -> list[float]:
        at = time.monotonic()
        first = max(at, spacings[-1] if spacings else 0.0)
        found = starts(at, first, 0.0, [(limits.request_spacing, 0.0)] * len(costs))
        spacings.append(first + limits.request_spacing * len(costs))
        return found

    async def all_of_them() -> list[float]:
        pace, times = RateLimiter(reserve, limits), []

        async def one() -> None:
            await pace.turn(1.0)
            times.append(time.monotonic())

        tasks = [asyncio.create_task(one()) for _ in range(calls)]
        await asyncio.sleep(0.02)
        for task in tasks[:leaving]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return times

    return asyncio.run(asyncio.wait_for(all_of_them(), PATIENCE))


@pytest.mark.timed
def test_calls_start_at_the_times_that_were_reserved() -> None:
    times = paced(RateLimits(requests=6000), 100)
    assert len(times) == 100
    assert times[-1] - times[0] >= 0.95 * 99 * RateLimits(requests=6000).request_spacing


def test_calls_that_leave_do_not_hold_up_the_others() -> None:
    assert len(paced(RateLimits(requests=6000), 100, leaving=50)) >= 50


def test_a_failure_to_reserve_is_tried_again() -> None:
    failed: list[bool] = []

    async def reserve(costs: list[float], owed: float) -> list[float]:
        if not failed:
            failed.append(True)
            raise OSError
        return [0.0] * len(costs)

    async def one() -> None:
        await RateLimiter(reserve, RateLimits(requests=60)).turn(1.0)

    asyncio.run(asyncio.wait_for(one(), PATIENCE))
    assert failed
