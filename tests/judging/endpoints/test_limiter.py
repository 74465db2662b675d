"""An endpoint's limits apply to all workers together; the judge counts the requests it receives."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection

from evalsite.accounts.models import Project
from judging.core.judges import scripted
from judging.core.judges.limits import BURST_SECONDS, USED, Try
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.endpoints import limiter
from judging.endpoints.limiter import Allowance, News, Problem, Report
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.engine import stopping
from judging.records.models import Run
from tests.deadlines import TIMEOUT, slack, wait_until
from tests.judging.working import an_endpoint, at_work, fullest, run_on, worked_by
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
    late = 0.8  # see limits.USED
    assert fullest(times, 3.0 / slack()) <= 1800 / 60 * (3 + BURST_SECONDS + late)
    assert 149 / (max(times) - min(times)) >= 0.9 * 1800 / 60 / slack()


def test_tokens_a_minute_hold_over_two_workers_and_are_used() -> None:
    reply = Answer(content="[[5]]", tokens=(60, 40), delay=0.05)
    with ScriptedJudge(lambda _: reply) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=64, tokens_per_minute=180_000)
        assert worked_by(run_on(endpoint, 180), 2).scored == 180
    times = sorted(asked.at for asked in judge.requests)[40:]  # the tokens per call are known by then
    # Overestimated tokens are released at once, within the unused share of a minute's tokens.
    assert fullest(times, 3.0 / slack()) * 100 <= 180_000 / 60 * (3 + BURST_SECONDS) + 180_000 * (1 - USED)
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


def workers_of_two_runs(judge: ScriptedJudge, concurrency: int, rows: tuple[int, int]) -> list[Run]:
    """Two runs at one endpoint, each with a worker of its own."""
    endpoint = an_endpoint(a_project(), judge.url, concurrency=concurrency)
    return [
        run_on(endpoint, count, models=(name,)) for name, count in zip(("alpha", "beta"), rows, strict=True)
    ]


def test_an_unused_share_returns_within_five_seconds() -> None:
    with ScriptedJudge(lambda _: Answer("[[5]]", delay=0.2)) as judge:
        short, long = workers_of_two_runs(judge, 8, (40, 1000))
        threads = [at_work(short, "test:1:1"), at_work(long, "test:2:1")]
        threads[0].join(TIMEOUT)
        wait_until(lambda: judge.server.in_flight == 8, 5)
        stopping.run_cancel(long)
        threads[1].join(TIMEOUT)
    assert judge.server.most_in_flight == 8


def test_two_workers_take_turns_with_a_single_call() -> None:
    with ScriptedJudge(lambda _: Answer("[[5]]", delay=0.05)) as judge:
        runs = workers_of_two_runs(judge, 1, (600, 600))
        threads = [at_work(run, f"test:{run.pk}:1") for run in runs]
        wait_until(lambda: all(Run.objects.get(pk=run.pk).done for run in runs))
        assert not any(Run.objects.get(pk=run.pk).ended for run in runs)
        for run, thread in zip(runs, threads, strict=True):
            stopping.run_cancel(run)
            thread.join(TIMEOUT)
    assert judge.server.most_in_flight == 1


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    row = an_endpoint(project, "http://127.0.0.1:9/v1", concurrency=10)
    limiter.ensure_row(key_of(row))
    return row


def key_of(endpoint: Endpoint) -> str:
    return f"{limiter.KEY}{endpoint.pk}"


def exchanged(
    endpoint: Endpoint, owner: str, *, claim: int | None = None, in_flight: int = 0, **more: Any
) -> Allowance:
    """What a worker may do after it reported; by default it has requests waiting."""
    key = key_of(endpoint)
    return limiter.exchange([Report(key, endpoint.pk, 16, in_flight, claim, **more)], owner)[key]


def share_of(endpoint: Endpoint, owner: str, **report: Any) -> int:
    return exchanged(endpoint, owner, **report).share


def state(endpoint: Endpoint) -> EndpointLoad:
    return EndpointLoad.objects.get(key=key_of(endpoint))


def test_an_overload_halves_the_calls_of_all_workers_together(endpoint: Endpoint) -> None:
    assert share_of(endpoint, "one:1:1") == 10
    assert share_of(endpoint, "one:1:1", news=News(overloaded=True)) == 5
    assert share_of(endpoint, "two:1:1") == 0
    assert share_of(endpoint, "one:1:1", news=News(overloaded=True)) in (2, 3)
    assert share_of(endpoint, "two:1:1") in (2, 3)


def test_calls_in_flight_are_not_given_to_another_worker(endpoint: Endpoint) -> None:
    assert share_of(endpoint, "one:1:1") == 10
    assert share_of(endpoint, "two:1:1") == 0
    assert share_of(endpoint, "one:1:1", in_flight=7) == 5
    assert share_of(endpoint, "two:1:1") == 3


def test_a_worker_that_has_nothing_waiting_keeps_only_its_calls_in_flight(endpoint: Endpoint) -> None:
    share_of(endpoint, "one:1:1")
    share_of(endpoint, "two:1:1")
    share_of(endpoint, "one:1:1", claim=2, in_flight=2)
    assert share_of(endpoint, "two:1:1") == 8


def test_a_worker_that_needs_no_call_releases_its_share(endpoint: Endpoint) -> None:
    share_of(endpoint, "one:1:1")
    share_of(endpoint, "one:1:1", claim=0, ended=True)
    assert share_of(endpoint, "two:1:1") == 10


def test_the_share_of_a_silent_worker_returns(endpoint: Endpoint) -> None:
    EndpointLoad.objects.update(workers={"one:1:1": [limiter.now() - 16, 10, None]})
    assert share_of(endpoint, "two:1:1") == 10


def test_the_share_of_a_dead_worker_is_released(endpoint: Endpoint) -> None:
    share_of(endpoint, "one:1:1")
    assert limiter.release_dead() == 1
    assert state(endpoint).workers == {}


def test_a_call_from_a_page_is_released_only_when_it_is_silent(endpoint: Endpoint) -> None:
    share_of(endpoint, f"{limiter.MANUAL}1", claim=1, single=True)
    assert limiter.release_dead() == 0


def test_a_changed_limit_applies_at_once(endpoint: Endpoint) -> None:
    Endpoint.objects.update(concurrency=4)
    assert share_of(endpoint, "one:1:1") == 4


def test_all_workers_find_an_endpoint_down_and_up_again(endpoint: Endpoint) -> None:
    tries = [Try(number, answered=False, first=True) for number in range(20)]
    problem = Problem("server_error", "no", 500)
    exchanged(endpoint, "one:1:1", news=News(tries=tries[:10], problem=problem))
    assert exchanged(endpoint, "two:1:1", news=News(tries=tries[10:])).status.down_for is not None
    status = limiter.read_status([key_of(endpoint)])[key_of(endpoint)]
    assert (status.failed, len(status.recent), status.problem) == (20, 20, problem)
    answer = [Try(99, answered=True, first=True)]
    assert exchanged(endpoint, "one:1:1", news=News(tries=answer)).status.down_for is None


def test_all_workers_wait_as_long_as_the_server_asked(endpoint: Endpoint) -> None:
    exchanged(endpoint, "one:1:1", news=News(closed_for=60.0))
    assert exchanged(endpoint, "two:1:1").status.closed_for == pytest.approx(60, abs=5)


def test_all_workers_take_from_one_bucket(endpoint: Endpoint) -> None:
    key = key_of(endpoint)
    assert limiter.take(key, [(2.0, 0.0)] * 3)[0] == 1
    count, wait = limiter.take(key, [(2.0, 0.0)] * 3)
    assert (count, wait) == (0, pytest.approx(1.0, abs=0.5))


def test_tokens_that_were_guessed_too_high_are_given_back(endpoint: Endpoint) -> None:
    key = key_of(endpoint)
    limiter.take(key, [(0.0, 30.0)])
    assert limiter.take(key, [(0.0, 1.0)], -20.0) == (0, pytest.approx(9, abs=0.5))


def test_the_times_are_the_databases() -> None:
    assert limiter.now() == pytest.approx(time.time(), abs=5)
    assert connection.vendor in ("sqlite", "postgresql")
