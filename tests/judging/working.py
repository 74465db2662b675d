"""Real run workers for tests, in the current thread or in separate threads, and runs for them."""

from __future__ import annotations

import threading

from django.db import connections

from evalsite.accounts.models import Project
from judging.core.judges.client import RetryPolicy
from judging.endpoints.models import Endpoint
from judging.engine import run_worker
from judging.records.models import Run
from tests.deadlines import TIMEOUT
from tests.make import a_metric, a_run, a_version

PRODUCTION_RETRIES = RetryPolicy(base_seconds=0.01)  # outage limit as in production
QUICK = RetryPolicy(base_seconds=0.01, max_outage_seconds=0.2)


def work(run: Run, owner: str = "test:1:1", *, policy: RetryPolicy = QUICK, **options: float) -> Run:
    """Run one worker on `run` in this thread; return the reloaded run."""
    run_worker.work(owner, stop=threading.Event(), only=run.pk, policy=policy, **options)
    return Run.objects.get(pk=run.pk)


def at_work(run: Run, owner: str = "test:1:1", *, policy: RetryPolicy = QUICK) -> threading.Thread:
    """Start a worker in a new thread."""

    def target() -> None:
        work(run, owner, policy=policy)
        connections.close_all()

    thread = threading.Thread(target=target)
    thread.start()
    return thread


def workers(run: Run, count: int, policy: RetryPolicy = QUICK) -> list[threading.Thread]:
    """Start `count` workers in separate threads, each with its own connections and slots."""
    return [at_work(run, f"test:{n}:1", policy=policy) for n in range(1, count + 1)]


def worked_by(run: Run, count: int) -> Run:
    """Run `count` workers on `run` concurrently; return the reloaded run."""
    for thread in workers(run, count):
        thread.join(TIMEOUT)
    return Run.objects.get(pk=run.pk)


def an_endpoint(project: Project, url: str, **fields: object) -> Endpoint:
    return Endpoint.objects.create(project=project, name="judge", url=url, model="scripted", **fields)


def run_on(endpoint: Endpoint, rows: int, models: tuple[str, ...] = ("alpha",), **options: object) -> Run:
    """A run whose judge model uses this endpoint."""
    version = a_version(endpoint.project, rows=rows, models=models)
    return a_run(version, a_metric(endpoint.url, endpoint=endpoint.pk), **options)


def fullest(times: list[float], window: float) -> int:
    times = sorted(times)
    return max(sum(start <= one < start + window for one in times) for start in times)
