"""The status page and the Prometheus metrics."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.accounts.models import User
from evalsite.models import WorkerProcess
from evalsite.tasks import workers
from judging import sandboxes
from judging.core.metric_definition import JudgeModel
from judging.endpoints.limiter import endpoint_key
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.engine.stopping import run_stop_at_budget
from judging.records.models import Generation, Judgement, JudgeReply, Run, RunState
from judging.status import selectors
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.people.make import make_evaluation
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["alice", "adam", "rita"])
def test_only_the_sites_administrators_see_it(cast: dict[str, User], client_of: ClientOf, name: str) -> None:
    assert client_of(cast[name]).get("/status/").status_code == 403
    assert client_of(cast["olga"]).get("/status/").status_code == 200


def test_a_living_worker_and_a_gone_one_are_distinguished(olga: User, client_of: ClientOf) -> None:
    workers.heartbeat("runs")
    long_ago = timezone.now() - timedelta(minutes=5)
    WorkerProcess.objects.create(owner="far-away:7:7", queue="data", seen_at=long_ago)
    alive = {worker.host: worker.alive for worker in selectors.workers()}
    assert alive.pop("far-away") is False
    assert list(alive.values()) == [True]
    assert "far-away" in client_of(olga).get("/status/").text


def test_where_all_workers_are_gone_the_page_says_what_to_do(olga: User, client_of: ClientOf) -> None:
    long_ago = timezone.now() - timedelta(minutes=5)
    WorkerProcess.objects.create(owner="far-away:7:7", queue="data", seen_at=long_ago)
    assert "manage.py worker" in client_of(olga).get("/status/").text
    workers.heartbeat("runs")
    assert "manage.py worker" not in client_of(olga).get("/status/").text


def test_a_queue_without_a_worker_is_reported(olga: User, client_of: ClientOf) -> None:
    workers.heartbeat("runs")
    assert {queue.name: queue.obstacle for queue in selectors.queues()} == {"data": "worker", "runs": ""}
    assert "no worker" in client_of(olga).get("/status/").text


def test_workers_that_do_not_reach_the_broker_are_reported(olga: User, client_of: ClientOf) -> None:
    workers.heartbeat("runs")
    WorkerProcess.objects.update(error="broker")
    assert workers.obstacle("runs") == "broker"
    assert "no broker" in client_of(olga).get("/status/").text


def test_an_endpoints_last_error_is_shown(alice: User, olga: User, client_of: ClientOf) -> None:
    project = alice.memberships.get().project
    endpoint = Endpoint.objects.create(project=project, name="flaky", url="http://x/v1", model="m")
    run = a_run(a_version(project, rows=1), a_metric("http://x"))
    metric = run.metrics.get()
    judgement = Judgement.objects.create(run=run, position=0, run_metric=metric, row_id=1, candidate_id=1,
        response_id=1, reason="waiting")  # fmt: skip
    calls = '[{"started_unix": 1.5, "seconds": 1}]'
    JudgeReply.objects.create(
        judgement=judgement, judge=0, endpoint=endpoint, request="", error="timeout_whole", calls=calls
    )
    [seen] = selectors.endpoints()
    assert (seen.replies, seen.failed, seen.last_code, seen.last_at) == (1, 1, "timeout_whole", 1.5)
    assert "flaky" in client_of(olga).get("/status/").text


@pytest.fixture
def endpoint(alice: User) -> Endpoint:
    project = alice.memberships.get().project
    return Endpoint.objects.create(project=project, name="flaky", url="http://x/v1", model="m")


def circuit(endpoint: Endpoint, **state: object) -> None:
    judge = JudgeModel(name="j", url="http://x/v1", model="m", template="", endpoint=endpoint.pk)
    EndpointLoad.objects.create(key=endpoint_key(judge), **state)


def test_an_endpoint_that_is_down_is_reported_though_nobody_asked_it_lately(
    endpoint: Endpoint, olga: User
) -> None:
    circuit(endpoint, down_since=time.time() - 100, problem="connect")
    [seen] = selectors.endpoints()
    assert time.time() - (seen.down_since or 0) == pytest.approx(100, abs=10)
    assert seen.last_code == "connect"
    assert "evalsite_endpoints_down 1\n" in Api(olga).figures().text


def test_an_endpoint_that_answers_and_was_not_asked_lately_is_left_out(endpoint: Endpoint) -> None:
    circuit(endpoint)
    assert selectors.endpoints() == []


def test_an_endpoint_that_is_asked_for_answers_is_shown_too(endpoint: Endpoint) -> None:
    run = a_run(a_version(endpoint.project, rows=1), a_metric("http://x"))
    result = {"state": "failed", "error": "unknown_model", "calls": "[]", "request": "{}", "finished_at": 1.0}
    Generation.objects.create(run=run, response_id=1, attempt=1, endpoint=endpoint, **result)
    [seen] = selectors.endpoints()
    assert (seen.replies, seen.failed, seen.last_code) == (1, 1, "unknown_model")


def test_runs_that_spent_what_they_may_are_reported(alice: User, olga: User, client_of: ClientOf) -> None:
    run = a_run(a_version(alice.memberships.get().project, rows=1), a_metric("http://x"))
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    run_stop_at_budget(run, "budget_calls")
    assert "1 by budget" in client_of(olga).get("/status/").text
    assert "evalsite_runs_stopped_by_budget 1\n" in Api(olga).figures().text


def test_the_part_is_not_the_whole_page(olga: User, client_of: ClientOf) -> None:
    part = client_of(olga).get("/status/", headers={"HX-Request": "true"}).text
    assert 'id="status"' in part
    assert "<html" not in part


def test_figures_are_for_tokens_of_administrators_only(
    client: Client, alice: User, olga: User, client_of: ClientOf
) -> None:
    assert client.get("/metrics").status_code == 401
    assert client_of(olga).get("/metrics").status_code == 401
    assert Api(alice).figures().status_code == 401


def test_figures_are_what_prometheus_reads(olga: User) -> None:
    workers.heartbeat("runs")
    result = Api(olga).figures()
    lines = result.text.splitlines()
    assert result["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'evalsite_worker_up{queue="runs"} 1' in lines
    assert 'evalsite_queue_obstructed{queue="data"} 1' in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families)) == 13


def test_the_level_of_isolation_is_shown_with_when_it_was_tried(olga: User, client_of: ClientOf) -> None:
    found = sandboxes.status()
    page = client_of(olga).get("/status/").text
    assert f"{found.level} / 3" in page
    assert "checked " in page
    assert all(layer in page for layer in found.missing)


def test_what_people_rate_is_no_run_under_way(alice: User, rita: User) -> None:
    make_evaluation(alice.memberships.get().project, [rita])
    assert set(selectors.runs_under_way().values()) == {0}
