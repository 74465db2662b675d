"""No minute contains more calls or tokens than the limit, and nearly all of the limit is used."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from judging.core.judges.rate_limiter import (
    RateLimited,
    RateLimiter,
    RateLimits,
    Spacing,
    TokenEstimator,
    start_times,
)
from judging.core.judges.settings import Request
from tests.deadlines import TIMEOUT


def most_in_a_minute(times: list[float], costs: list[float]) -> float:
    """Maximum total cost in any 60-second window."""
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
    spacings = [limits.spacing(cost, largest) for cost in costs]
    return start_times(0.0, 0.0, 0.0, spacings)


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
    assert RateLimits(tokens=100).spacing(250, 250) == (0.0, 150.0)


def test_the_stricter_of_two_limits_holds() -> None:
    times = schedule(RateLimits(requests=600, tokens=6000), [100.0] * 10)
    assert times[1] - times[0] == pytest.approx(60 * 100 / (5820 - 100))


def request_of_size(size: int, **params: int) -> Request:
    """A request whose messages take `size` bytes as JSON."""
    return {"messages": "x" * (size - 2), **params}


def test_what_calls_cost_is_learnt_from_replies() -> None:
    estimator = TokenEstimator()
    for _ in range(100):
        estimator.learn(size=1000, input_tokens=500, output_tokens=80)
    estimate = estimator.estimate(request_of_size(2000))
    assert estimate.tokens == pytest.approx(1080, rel=0.02)


def test_before_any_reply_the_limit_of_the_request_is_the_guess() -> None:
    assert TokenEstimator().estimate(request_of_size(300, max_tokens=50)).tokens == pytest.approx(150)


def paced(limits: RateLimits, calls: int, *, leaving: int = 0) -> list[float]:
    """Start times of calls that all wait at once; the first `leaving` of them are soon cancelled."""
    spacings: list[float] = []

    async def reserve(wanted: list[Spacing], owed: float, within: float) -> list[float]:
        at = time.monotonic()
        first = max(at, spacings[-1] if spacings else 0.0)
        found = start_times(at, first, 0.0, wanted)
        spacings.append(first + sum(request for request, _ in wanted))
        return found

    async def all_of_them() -> list[float]:
        limiter, times = RateLimiter(reserve, limits), []

        async def one() -> None:
            await limiter.acquire(request_of_size(9))
            times.append(time.monotonic())

        tasks = [asyncio.create_task(one()) for _ in range(calls)]
        await asyncio.sleep(0.02)
        for task in tasks[:leaving]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return times

    return asyncio.run(asyncio.wait_for(all_of_them(), TIMEOUT))


@pytest.mark.timed
def test_calls_start_at_the_times_that_were_reserved() -> None:
    times = paced(RateLimits(requests=6000), 100)
    assert len(times) == 100
    assert times[-1] - times[0] >= 0.95 * 99 * RateLimits(requests=6000).spacing(0, 0)[0]


def test_calls_that_leave_do_not_hold_up_the_others() -> None:
    assert len(paced(RateLimits(requests=6000), 100, leaving=50)) >= 50


def test_a_failure_to_reserve_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    failed: list[bool] = []

    async def reserve(wanted: list[Spacing], owed: float, within: float) -> list[float]:
        if not failed:
            failed.append(True)
            raise OSError
        return [0.0] * len(wanted)

    async def one() -> None:
        await RateLimiter(reserve, RateLimits(requests=60)).acquire(request_of_size(9))

    asyncio.run(asyncio.wait_for(one(), TIMEOUT))
    assert failed
    assert "rate limit" in caplog.text


def test_a_single_call_that_would_wait_for_long_is_not_reserved() -> None:
    async def reserve(wanted: list[Spacing], owed: float, within: float) -> list[float]:
        raise RateLimited(300.0)

    with pytest.raises(RateLimited):
        asyncio.run(RateLimiter(reserve, RateLimits(requests=1)).try_acquire(request_of_size(9), 5.0))


def test_a_refused_call_gives_its_tokens_back() -> None:
    async def reserve(wanted: list[Spacing], owed: float, within: float) -> list[float]:
        return [0.0] * len(wanted)

    async def work() -> float:
        limiter = RateLimiter(reserve, RateLimits(tokens=6000))
        reservation = await limiter.acquire(request_of_size(300, max_tokens=100))
        assert reservation is not None
        limiter.settle(reservation, None)
        return limiter.owed

    assert asyncio.run(asyncio.wait_for(work(), TIMEOUT)) < 0
