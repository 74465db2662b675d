"""A circuit breaker opens after consecutive failures, lets probes through, and closes when one succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from judging.core.judges.circuit_breaker import MAX_FAILURES, CircuitBreaker, EndpointStatus, probe_delay
from judging.core.judges.errors import Busy, JudgeError, Refused
from tests.deadlines import TIMEOUT

UP = EndpointStatus(0.0, None, 0.0, "", "")
DOWN = EndpointStatus(0.0, 5.0, 0.0, "server_error", "oops")


def failed(times: int, error: JudgeError | None = None) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(times):
        breaker.failed(error or Busy("server_error", "oops"))
    return breaker


def down() -> CircuitBreaker:
    breaker = CircuitBreaker()
    breaker.update(DOWN)
    return breaker


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, TIMEOUT))


def test_it_opens_after_failures_in_a_row() -> None:
    assert failed(MAX_FAILURES - 1).outage is None
    assert failed(MAX_FAILURES).outage is not None


def test_a_success_in_between_starts_the_count_again() -> None:
    breaker = failed(MAX_FAILURES - 1)
    breaker.succeeded()
    breaker.failed(Busy("server_error"))
    assert breaker.outage is None


@pytest.mark.parametrize(
    "error", [Refused("bad_key"), Busy("rate_limited"), Busy("overloaded", retry_after=1.0)]
)
def test_errors_that_do_not_blame_the_server_keep_it_closed(error: JudgeError) -> None:
    assert failed(MAX_FAILURES, error).outage is None


def test_the_shared_state_does_not_close_it_before_its_own_failures_are_reported() -> None:
    breaker = failed(MAX_FAILURES)
    breaker.update(UP)
    assert breaker.outage is not None
    breaker.unreported = 0
    breaker.update(UP)
    assert breaker.outage is None


def test_requests_wait_until_it_closes() -> None:
    async def work() -> None:
        breaker = down()
        waiting = [asyncio.create_task(breaker.wait(float("inf"))) for _ in range(3)]
        await asyncio.sleep(0)
        breaker.succeeded()
        await asyncio.gather(*waiting)
        assert breaker.outage is None

    run(work())


def test_a_probe_lets_one_request_through() -> None:
    async def work() -> None:
        breaker = down()
        assert not breaker.wants_probe  # no call is waiting
        waiting = [asyncio.create_task(breaker.wait(float("inf"))) for _ in range(3)]
        await asyncio.sleep(0)
        assert breaker.wants_probe
        breaker.probe()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sum(task.done() for task in waiting) == 1
        for task in waiting:
            task.cancel()

    run(work())


def test_an_outage_that_lasts_too_long_is_the_requests_error() -> None:
    with pytest.raises(Busy, match="oops") as raised:
        run(down().wait(5.0))
    assert raised.value.code == "server_error"


def test_probes_become_rarer() -> None:
    assert [probe_delay(probes) for probes in range(7)] == [1, 2, 4, 8, 16, 30, 30]
