"""An endpoint that is down gets no requests, is shown as down, and is used again once it is up."""

from __future__ import annotations

import threading

import pytest

from judging.core.judges import scripted
from judging.core.judges.client import RetryPolicy
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.endpoints import limiter
from judging.endpoints.models import EndpointLoad
from judging.runs.endpoint_outages import down_endpoints
from judging.runs.models import Run, RunState
from judging.runs.worker import run_worker
from tests.deadlines import TIMEOUT, wait_until
from tests.judging.working import an_endpoint, run_on, workers
from tests.make import a_project

pytestmark = [pytest.mark.timed, pytest.mark.django_db(transaction=True)]


def test_an_outage_of_seconds_costs_no_judgement_and_few_calls() -> None:
    def away_for_a_while(asked: Received) -> Answer:
        return scripted.server_error() if away(asked) else Answer("[[5]]", delay=0.05)

    def away(asked: Received) -> bool:
        return 0.5 < asked.at - judge.requests[0].at < 4

    with ScriptedJudge(away_for_a_while) as judge:
        run = run_on(an_endpoint(a_project(), judge.url, concurrency=8), 300)
        threads = workers(
            run, 2, RetryPolicy()
        )  # production pauses: on a busy machine, workers learn of each other's state late
        wait_until(lambda: bool(down_endpoints(Run.objects.get(pk=run.pk))))
        (down,) = down_endpoints(Run.objects.get(pk=run.pk))
        for thread in threads:
            thread.join(TIMEOUT)
        in_the_outage = [asked for asked in judge.requests if away(asked)]
    assert (down.name, "answers every request with an error" in down.why) == ("judge", True)
    assert Run.objects.get(pk=run.pk).scored == 300
    assert len(in_the_outage) < 40


def test_failed_tries_are_not_counted_as_interrupted_when_their_worker_ends() -> None:
    with ScriptedJudge(scripted.server_error()) as judge:
        run = run_on(an_endpoint(a_project(), judge.url), 20)
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk, life=2)
    run.refresh_from_db()
    assert (run.calls, run.calls_again) == (run.calls_failed, 0)
    assert run.calls > 0


def test_all_workers_together_send_one_probe() -> None:
    with ScriptedJudge(scripted.server_error()) as judge:
        endpoint = an_endpoint(a_project(), judge.url)
        key = f"endpoint {endpoint.pk}"
        limiter.ensure_row(key)
        EndpointLoad.objects.update(down_since=limiter.now() - 5, next_try_at=limiter.now() - 1)
        assert [limiter.claim_probe(key, 1), limiter.claim_probe(key, 1)] == [True, False]


def test_a_run_of_a_command_waits_no_longer_than_its_policy_says() -> None:
    with ScriptedJudge(scripted.server_error()) as judge:
        run = run_on(an_endpoint(a_project(), judge.url, concurrency=8), 300)
        policy = RetryPolicy(base_seconds=0.01, max_outage_seconds=1.0)
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk, policy=policy)
        assert len(judge.requests) < 100
    assert set(run.judgements.values_list("state", "reason")) == {("error", "server_error")}


def test_a_refusal_that_is_about_one_request_closes_nothing() -> None:
    def choosy(asked: Received) -> Answer:
        return scripted.refusal(400, "content_filter") if "alpha" in asked.prompt else Answer("[[5]]")

    with ScriptedJudge(choosy) as judge:
        run = run_on(an_endpoint(a_project(), judge.url), 40)
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)
    assert EndpointLoad.objects.get().down_since == 0
    assert Run.objects.get(pk=run.pk).state == RunState.FINISHED
