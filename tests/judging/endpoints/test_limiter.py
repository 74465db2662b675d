"""An endpoint's limits apply to all workers together; the judge counts the requests it receives."""

from __future__ import annotations

import time

import pytest
from django.db import connection

from evalsite.accounts.models import Project
from judging.core.judges import scripted
from judging.core.judges.concurrency_limiter import LimiterEvents
from judging.core.judges.rate_limiter import USED
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.endpoints import limiter
from judging.endpoints.models import Endpoint, EndpointShare
from tests.deadlines import slack
from tests.judging.working import an_endpoint, fullest, run_on, worked_by
from tests.make import a_project

pytestmark = [pytest.mark.timed, pytest.mark.django_db(transaction=True)]


def test_two_workers_share_the_calls_at_a_time() -> None:
    with ScriptedJudge(lambda _: Answer(content="[[5]]", delay=0.3)) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=6)
        assert worked_by(run_on(endpoint, 80), 2).scored == 80
    assert judge.server.most_in_flight == 6
    times = sorted(asked.at for asked in judge.requests)
    # Nearly all slots are used while both workers have calls, by Little's law. Calls in flight at each start would
    # be a worse measure, since calls that end together start together.
    assert 40 * 0.3 / (times[60] - times[20]) >= 0.8 * 6 / slack()


def test_a_single_slot_is_never_doubled() -> None:
    with ScriptedJudge(lambda _: Answer(content="[[5]]", delay=0.02)) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=1)
        assert worked_by(run_on(endpoint, 60), 3).scored == 60
    assert judge.server.most_in_flight == 1


def test_requests_a_minute_hold_over_two_workers_and_are_used() -> None:
    with ScriptedJudge(lambda _: Answer(content="[[5]]", delay=0.05)) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=64, requests_per_minute=1800)
        assert worked_by(run_on(endpoint, 150), 2).scored == 150
    times = [asked.at for asked in judge.requests]
    assert fullest(times, 3.0 / slack()) <= 1800 * 3 / 60 + 1
    assert 149 / (max(times) - min(times)) >= 0.9 * 1800 / 60 / slack()


def test_tokens_a_minute_hold_over_two_workers_and_are_used() -> None:
    reply = Answer(content="[[5]]", tokens=(60, 40), delay=0.05)
    with ScriptedJudge(lambda _: reply) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=64, tokens_per_minute=180_000)
        assert worked_by(run_on(endpoint, 180), 2).scored == 180
    times = sorted(asked.at for asked in judge.requests)[40:]  # the tokens per call are known by then
    # Overestimated tokens are released at once, within the unused share of a minute's tokens.
    assert fullest(times, 3.0 / slack()) * 100 <= 180_000 * 3 / 60 + 180_000 * (1 - USED)
    settled = times[40:]  # both workers have released them by then
    assert (len(settled) - 1) * 100 / (settled[-1] - settled[0]) >= 0.9 * 180_000 / 60 / slack()


def test_a_servers_own_time_is_kept_by_all_workers() -> None:
    result: list[float] = []

    def once(asked: Received) -> Answer:
        if asked.at - began > 1.0 and not result:
            result.append(asked.at)
            return scripted.rate_limited("2")
        return Answer(content="[[5]]", delay=0.05)

    with ScriptedJudge(once) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=8)
        began = time.monotonic()
        assert worked_by(run_on(endpoint, 400), 2).scored == 400
    (closed,) = result
    assert not [asked for asked in judge.requests if closed + 0.7 < asked.at < closed + 2.0]


def test_an_overload_halves_the_calls_of_all_workers_together() -> None:
    with ScriptedJudge("[[5]]") as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=16)
        limiter.ensure_row(f"endpoint {endpoint.pk}")
        share_of(endpoint, "one:1:1", wanted=16)
        share_of(endpoint, "one:1:1", wanted=16, news=LimiterEvents(overloads=1))
        assert share_of(endpoint, "one:1:1", wanted=16) == 8


def share_of(
    endpoint: Endpoint, owner: str, *, wanted: int, in_flight: int = 0, news: LimiterEvents | None = None
) -> int:
    key = f"endpoint {endpoint.pk}"
    result = limiter.WorkerReport(key, endpoint.pk, 16, wanted, in_flight, news or LimiterEvents())
    return limiter.allocate([result], owner)[key].share


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    found = an_endpoint(project, "http://127.0.0.1:9/v1", concurrency=10)
    limiter.ensure_row(f"endpoint {found.pk}")
    return found


def test_slots_that_are_in_flight_are_not_given_to_another(endpoint: Endpoint) -> None:
    assert share_of(endpoint, "one:1:1", wanted=10) == 10
    assert share_of(endpoint, "two:1:1", wanted=10) == 0
    assert share_of(endpoint, "one:1:1", wanted=10, in_flight=7) == 5
    assert share_of(endpoint, "two:1:1", wanted=10) == 3


def test_the_share_of_a_worker_that_fell_silent_returns(endpoint: Endpoint) -> None:
    share_of(endpoint, "one:1:1", wanted=10, in_flight=10)
    EndpointShare.objects.update(lease_until=limiter.now() - 1)
    assert share_of(endpoint, "two:1:1", wanted=10) == 10


def test_the_share_of_a_dead_worker_is_freed(endpoint: Endpoint) -> None:
    share_of(endpoint, "one:1:1", wanted=10, in_flight=10)
    assert limiter.release_dead_shares() == 1


def test_a_changed_limit_applies_at_once(endpoint: Endpoint) -> None:
    Endpoint.objects.update(concurrency=4)
    assert share_of(endpoint, "one:1:1", wanted=10) == 4


def test_starts_are_reserved_one_after_the_other_by_all_workers(endpoint: Endpoint) -> None:
    key = f"endpoint {endpoint.pk}"
    first = limiter.reserve(key, [(2.0, 0.0)] * 3)
    then = limiter.reserve(key, [(2.0, 0.0)] * 2)
    assert first == pytest.approx([0, 2, 4], abs=0.1)
    assert then == pytest.approx([6, 8], abs=0.5)


def test_tokens_that_were_guessed_too_high_are_given_back(endpoint: Endpoint) -> None:
    key = f"endpoint {endpoint.pk}"
    limiter.reserve(key, [(0.0, 30.0)])
    assert limiter.reserve(key, [(0.0, 1.0)], -20.0) == pytest.approx([10], abs=0.5)


def test_the_times_are_the_databases() -> None:
    assert limiter.now() == pytest.approx(time.time(), abs=5)
    assert connection.vendor in ("sqlite", "postgresql")
