"""Runs against a scripted judge, worked on by run workers in threads."""

from __future__ import annotations

import threading

from django.db import connections

from evalsite.accounts.models import Project
from judging.core.judges.retry import RetryPolicy
from judging.endpoints.models import Endpoint
from judging.runs import pump
from judging.runs.models import Run
from tests.make import a_metric, a_run, a_version
from tests.patience import PATIENCE

SOON = RetryPolicy(base_seconds=0.01)


def an_endpoint(project: Project, url: str, **fields: object) -> Endpoint:
    return Endpoint.objects.create(project=project, name="judge", url=url, model="scripted", **fields)


def run_on(endpoint: Endpoint, rows: int, models: tuple[str, ...] = ("alpha",), **options: object) -> Run:
    version = a_version(endpoint.project, rows=rows, models=models)
    return a_run(version, a_metric(endpoint.url, endpoint=endpoint.pk), **options)


def workers(run: Run, count: int, policy: RetryPolicy = SOON) -> list[threading.Thread]:
    """Pumps in threads of their own, each with its own connections and slots."""

    def work(owner: str) -> None:
        pump.work(owner, stop=threading.Event(), only=run.pk, policy=policy)
        connections.close_all()

    threads = [threading.Thread(target=work, args=(f"test:{n}:1",)) for n in range(1, count + 1)]
    for thread in threads:
        thread.start()
    return threads


def worked_by(run: Run, count: int) -> Run:
    for thread in workers(run, count):
        thread.join(PATIENCE)
    return Run.objects.get(pk=run.pk)


def fullest(times: list[float], window: float) -> int:
    times = sorted(times)
    return max(sum(start <= one < start + window for one in times) for start in times)
