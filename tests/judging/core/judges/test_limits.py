"""What an endpoint bears: calls at a time, requests and tokens a minute, and whether it answers."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from judging.core.judges.errors import (
    Busy,
    Interrupted,
    JudgeError,
    Refused,
    Unreachable,
    Unusable,
    is_answer,
)
from judging.core.judges.limits import (
    FEWEST_TRIED,
    MOST_RECENT,
    RateLimits,
    Recent,
    TokenEstimator,
    Try,
    adapted_limit,
    even_share,
    is_down,
    lowered,
    probe_delay,
    take,
    with_tries,
)
from judging.core.judges.settings import Request

# --- calls at a time


def test_an_overload_halves_the_calls_at_a_time() -> None:
    assert adapted_limit(8, 8, overloaded=True) == 4


def test_one_call_is_always_left() -> None:
    assert adapted_limit(1, 8, overloaded=True) == 1


def test_a_round_of_replies_adds_one_call() -> None:
    assert adapted_limit(4, 64, replies=4) == 5


def test_the_limit_never_rises_above_the_endpoints_setting() -> None:
    assert adapted_limit(3, 4, replies=100) == 4


def shares(limit: int, claims: dict[str, int | None], turn: int = 0) -> list[int]:
    return [even_share(limit, claims, name, turn) for name in claims]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"a": None}, [10]),
        ({"a": None, "b": None}, [5, 5]),
        ({"a": 2, "b": None}, [2, 8]),
        ({"a": None, "b": None, "c": None}, [4, 3, 3]),
        ({"a": 10, "b": None}, [10, 0]),
        ({"a": 1, "b": 3}, [4, 6]),
    ],
)
def test_workers_with_waiting_requests_divide_the_calls_evenly(
    claims: dict[str, int | None], expected: list[int]
) -> None:
    assert shares(10, claims) == expected


def test_a_single_call_goes_round() -> None:
    claims: dict[str, int | None] = {"a": None, "b": None, "c": None}
    assert [shares(1, claims, turn) for turn in range(3)] == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


# --- requests and tokens a minute


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


def starts(limits: RateLimits, costs: list[float], step: float = 0.3) -> list[float]:
    """The start times of calls that all wait from the beginning, if the buckets are asked every `step` seconds."""
    largest, now = max(costs), 0.0
    times: list[float] = []
    free_at = (-1e9, -1e9)
    while len(times) < len(costs):
        spacings = [limits.spacing(cost, largest) for cost in costs[len(times) : len(times) + 500]]
        count, free_at, wait = take(free_at, spacings, now)
        times += [now] * count
        now += max(step, wait)
    return times


@pytest.mark.parametrize("most", [1, 2, 3, 7, 60, 100, 5000])
def test_no_minute_holds_more_requests_than_the_limit(most: int) -> None:
    times = starts(RateLimits(requests=most), [0.0] * (5 * most))
    assert most * 0.9 <= most_in_a_minute(times, [1.0] * len(times)) <= most


@pytest.mark.parametrize("most", [1, 10, 600])
def test_calls_that_arrive_late_do_not_push_a_minute_over_the_limit(most: int) -> None:
    draw = random.Random(1)
    times = sorted(at + draw.uniform(0, 0.8) for at in starts(RateLimits(requests=most), [0.0] * (5 * most)))
    assert most_in_a_minute(times, [1.0] * len(times)) <= most


@pytest.mark.parametrize("largest", [10, 400, 2_500, 6_000, 10_000])
def test_no_minute_holds_more_tokens_than_the_limit(largest: int) -> None:
    draw = random.Random(2)
    costs = [float(draw.randint(1, largest)) for _ in range(3000)]
    times = starts(RateLimits(tokens=10_000), costs)
    assert most_in_a_minute(times, costs) <= 10_000


def test_nine_tenths_of_the_tokens_are_used_where_calls_are_small() -> None:
    times = starts(RateLimits(tokens=100_000), [500.0] * 2000)
    assert 500.0 * 2000 / times[-1] * 60 >= 90_000


def test_a_call_beyond_the_whole_limit_takes_the_minutes_that_it_is_worth() -> None:
    assert RateLimits(tokens=100).spacing(250, 250) == (0.0, 150.0)


def test_the_stricter_of_two_limits_holds() -> None:
    times = starts(RateLimits(requests=600, tokens=6000), [100.0] * 10, step=0.01)
    assert times[-1] - times[-2] == pytest.approx(60 * 100 / (5820 - 100), abs=0.02)


def test_a_bucket_that_was_not_used_holds_the_calls_of_a_second() -> None:
    count, _, wait = take((0.0, 0.0), [(0.1, 0.0)] * 100, 1000.0)
    assert count == pytest.approx(11, abs=1)
    assert 0 < wait <= 0.1


def request_of_size(size: int, **params: int) -> Request:
    """A request whose messages take `size` bytes as JSON."""
    return {"messages": "x" * (size - 2), **params}


def test_what_calls_cost_is_learnt_from_replies() -> None:
    estimator = TokenEstimator()
    for _ in range(100):
        estimator.learn(size=1000, input_tokens=500, output_tokens=80)
    assert estimator.estimate(request_of_size(2000)).tokens == pytest.approx(1080, rel=0.02)


def test_before_any_reply_the_limit_of_the_request_is_the_guess() -> None:
    assert TokenEstimator().estimate(request_of_size(300, max_tokens=50)).tokens == pytest.approx(150)


# --- whether it answers


def tried(outcomes: Iterable[bool], first: int = 0) -> list[Try]:
    """First tries of different requests."""
    return [Try(first + number, answered, first=True) for number, answered in enumerate(outcomes)]


def test_an_endpoint_is_down_when_none_of_twenty_different_requests_was_answered() -> None:
    assert not is_down(with_tries({}, tried([False] * (FEWEST_TRIED - 1))))
    assert is_down(with_tries({}, tried([False] * FEWEST_TRIED)))


def test_one_answer_among_the_latest_forty_keeps_an_endpoint_up() -> None:
    recent = with_tries({}, tried([True] + [False] * (MOST_RECENT - 1)))
    assert not is_down(recent)
    assert is_down(with_tries(recent, tried([False], first=MOST_RECENT)))


def test_retries_of_few_requests_are_no_outage() -> None:
    again = [Try(number % 5, answered=False, first=number < 5) for number in range(100)]
    assert not is_down(with_tries({}, again))


def test_the_last_requests_of_a_run_that_fail_for_ever_are_no_outage() -> None:
    recent = with_tries({}, tried([number % 2 == 0 for number in range(200)]))
    retries = [Try(number, answered=False, first=False) for _ in range(7) for number in range(1, 200, 2)]
    assert not is_down(with_tries(recent, retries))


def test_a_request_counts_by_its_latest_try() -> None:
    recent = with_tries({}, tried([True] * FEWEST_TRIED))
    assert is_down(with_tries(recent, [Try(n, answered=False, first=False) for n in range(FEWEST_TRIED)]))


def test_one_answer_ends_an_outage_even_that_of_an_old_request() -> None:
    recent = with_tries({}, tried([False] * MOST_RECENT))
    assert not is_down(with_tries(recent, [Try(999, answered=True, first=False)]))


@pytest.mark.parametrize(("answered", "expected"), [(40, 16), (27, 16), (20, 12), (10, 6), (1, 1), (0, 1)])
def test_fewer_calls_at_a_time_go_to_a_server_that_answers_a_part(answered: int, expected: int) -> None:
    recent: Recent = {number: number < answered for number in range(40)}
    assert lowered(16, recent) == expected


def test_a_few_failures_at_the_start_lower_nothing() -> None:
    assert lowered(16, dict.fromkeys(range(FEWEST_TRIED - 1), False)) == 16


def test_probes_become_rarer() -> None:
    assert [probe_delay(probes) for probes in range(7)] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (Refused("bad_request", status=400), True),
        (Refused("context_too_long", status=413), True),
        (Refused("content_filter", status=400), True),
        (Busy("rate_limited", status=429), True),
        (Unusable("truncated", status=200), True),
        (Unreachable("connect"), False),
        (Interrupted("timeout_first_byte"), False),
        (Interrupted("timeout_idle"), False),
        (Interrupted("cut", status=200), False),
        (Busy("server_error", status=500), False),
        (Busy("overloaded", status=503), False),
        (Busy("overloaded", status=409), True),
        (Unusable("bad_reply", status=200), False),
    ],
)
def test_a_refusal_is_an_answer_and_a_failing_server_gives_none(error: JudgeError, answer: bool) -> None:
    assert is_answer(error) == answer
