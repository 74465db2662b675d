"""Run workers for tests: real ones, in this thread or in threads of their own, and runs for them to work on."""

from __future__ import annotations

import threading

from django.db import connections

from evalsite.accounts.models import Project
from judging.core.judges.client import RetryPolicy
from judging.endpoints.models import Endpoint
from judging.runs.models import Run
from judging.runs.worker import run_worker
from tests.make import a_metric, a_run, a_version
from tests.patience import PATIENCE

PATIENT = RetryPolicy(base_seconds=0.01)  # waits for a server that is down as long as it does in production
QUICK = RetryPolicy(base_seconds=0.01, max_outage_seconds=0.2)


def work(run: Run, owner: str = "test:1:1", *, policy: RetryPolicy = QUICK, **options: float) -> Run:
    """The run after one worker has worked on it alone."""
    run_worker.work(owner, stop=threading.Event(), only=run.pk, policy=policy, **options)
    return Run.objects.get(pk=run.pk)


def at_work(run: Run, owner: str = "test:1:1", *, policy: RetryPolicy = QUICK) -> threading.Thread:
    """A worker in a thread of its own."""

    def target() -> None:
        work(run, owner, policy=policy)
        connections.close_all()

    thread = threading.Thread(target=target)
    thread.start()
    return thread


def workers(run: Run, count: int, policy: RetryPolicy = QUICK) -> list[threading.Thread]:
    """Workers in threads of their own, each with its own connections and slots."""
    return [at_work(run, f"test:{n}:1", policy=policy) for n in range(1, count + 1)]


def worked_by(run: Run, count: int) -> Run:
    """The run after so many workers have worked on it."""
    for thread in workers(run, count):
        thread.join(PATIENCE)
    return Run.objects.get(pk=run.pk)


def an_endpoint(project: Project, url: str, **fields: object) -> Endpoint:
    return Endpoint.objects.create(project=project, name="judge", url=url, model="scripted", **fields)


def run_on(endpoint: Endpoint, rows: int, models: tuple[str, ...] = ("alpha",), **options: object) -> Run:
    """A run that asks this endpoint."""
    version = a_version(endpoint.project, rows=rows, models=models)
    return a_run(version, a_metric(endpoint.url, endpoint=endpoint.pk), **options)


def fullest(times: list[float], window: float) -> int:
    times = sorted(times)
    return max(sum(start <= one < start + window for one in times) for start in times)
