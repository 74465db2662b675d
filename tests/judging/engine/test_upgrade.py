"""Wake-up tasks queued by an earlier release under a removed name are harmless: pending work is in tables."""

from __future__ import annotations

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from evalsite.models import SentMessage
from evalsite.tasks import celery, workers
from evalsite.tasks.database import SiteWorker
from judging.engine.run_worker import judge_runs

GONE = "judging.engine.run_worker.pump"


@pytest.mark.django_db(transaction=True)
def test_a_worker_on_the_database_goes_on_with_the_next_task() -> None:
    DBTaskResult.objects.create(
        task_path=GONE,
        queue_name=workers.RUNS,
        backend_name="default",
        args_kwargs={"args": [], "kwargs": {}},
        enqueued_at=timezone.now(),
    )
    judge_runs.enqueue()
    SiteWorker(
        queue_names=[workers.RUNS],
        interval=0.01,
        batch=True,
        backend_name="default",
        startup_delay=False,
        max_tasks=None,
        worker_id="test",
        excluded_queue_names=[],
    ).run()
    states = dict(DBTaskResult.objects.values_list("task_path", "status"))
    assert states == {GONE: "FAILED", judge_runs.module_path: "SUCCESSFUL"}


@pytest.mark.django_db
def test_a_message_at_the_broker_is_forgotten() -> None:
    SentMessage.objects.create(task=GONE, arguments="{}", queue=workers.RUNS)
    celery.run(GONE, {})
    assert not SentMessage.objects.exists()
