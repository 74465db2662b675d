"""Task engine that stores tasks in our own database, polled four times a second; needs no other service."""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from types import FrameType
from typing import Any

from django.db import DatabaseError, close_old_connections
from django.utils import timezone
from django_tasks.base import Task
from django_tasks_db.management.commands.db_worker import Worker
from django_tasks_db.models import DBTaskResult

from evalsite.tasks import workers

POLL_SECONDS = 0.25
WORKED_SECONDS = 10.0  # a worker that ran this long is not failing repeatedly


def enqueue(task: Task[..., Any], arguments: dict[str, int | str]) -> None:
    """Add a task, unless the same one is pending."""
    same = {f"args_kwargs__kwargs__{name}": value for name, value in arguments.items()}
    if not DBTaskResult.objects.ready().filter(task_path=task.module_path, **same).exists():
        task.enqueue(**arguments)


def waiting(queue: str) -> tuple[int, datetime | None]:
    """The number of pending tasks and the time of the oldest."""
    ready = DBTaskResult.objects.ready().filter(queue_name=queue)
    return ready.count(), ready.order_by("enqueued_at").values_list("enqueued_at", flat=True).first()


def tidy(queue: str) -> None:
    """Delete tasks that ended or were started more than a day ago; the latter belong to killed workers."""
    long_ago = timezone.now() - timedelta(days=1)
    DBTaskResult.objects.finished().filter(finished_at__lt=long_ago).delete()
    DBTaskResult.objects.running().filter(started_at__lt=long_ago).delete()


def connection_error() -> str:
    """Nothing can prevent delivery that would not also break pages."""
    return ""


class SiteWorker(Worker):
    """The worker of django-tasks-db, extended to end long tasks on a stop signal."""

    def shutdown(self, signum: int, frame: FrameType | None) -> None:
        workers.stopping.set()
        super().shutdown(signum, frame)


def work(queue: str) -> None:
    """Process tasks of a queue, one at a time, until SIGTERM."""
    logging.getLogger("django_tasks_db").setLevel(logging.ERROR)
    worker = SiteWorker(
        queue_names=[queue],
        interval=POLL_SECONDS,
        batch=False,
        backend_name="default",
        startup_delay=False,
        max_tasks=None,
        worker_id=workers.owner()[:64],
        excluded_queue_names=[],
    )
    worker.configure_signals()
    backoff = workers.Backoff()
    while worker.running:
        began = time.monotonic()
        try:
            worker.run()
        except DatabaseError as error:
            if time.monotonic() - began > WORKED_SECONDS:
                backoff.succeeded()
            workers.log.warning("The database is unavailable, retrying: %s", error)
            close_old_connections()
            time.sleep(backoff.failed())
